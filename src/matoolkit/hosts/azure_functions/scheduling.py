"""The scheduler when a timer calls it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.clock import SystemClock
from matoolkit.hosts.azure_functions.opening import Opening
from matoolkit.hosts.azure_functions.settings import every, insist
from matoolkit.hosts.parts import SchedulerPart
from matoolkit.hosts.scheduler import SchedulerSettings
from matoolkit.hosts.shared import chosen_database, shared
from matoolkit.hosts.telling import telling
from matoolkit.scheduler import Settings as Rhythm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack

    from matoolkit.hosts.shared import Shared

_BEATS_OF_A_LEASE = 4


class Scheduling:
    """One scheduler; however many instances there are, one leads."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._settings: SchedulerSettings = SchedulerSettings.read(environment)
        self._where = self._settings.whereabouts(chosen_database(None, environment, self._settings.database))
        insist(self._where.service_bus, SchedulerSettings.service_bus_namespace.name)
        self.schedule = every(self._settings.poll_tick, SchedulerSettings.poll_tick.name)
        self._opened = Opening(self._open)

    def run(self) -> None:
        """What is due, and the tick to its end when it is time for one."""
        found, part = self._opened()
        part.once(found.relay)

    def close(self) -> None:
        """Leave what was opened."""
        self._opened.close()

    def _open(self, closing: ExitStack) -> tuple[Shared, SchedulerPart]:
        settings, rhythm = self._settings, Rhythm()
        telemetry = closing.enter_context(telling(self._environment, "scheduler", with_log=False))
        found = closing.enter_context(shared(self._where))
        # Between two calls nobody keeps the lease.
        lease = max(rhythm.lease, settings.poll_tick * _BEATS_OF_A_LEASE, timedelta(seconds=1))
        part = SchedulerPart(
            found.database,
            found.publisher,
            SystemClock(),
            topic=settings.topic,
            environment=self._environment,
            beat_seconds=settings.poll_tick.total_seconds(),
            settings=Rhythm(tick=settings.tick, lease=lease),
            telemetry=telemetry,
        )
        closing.callback(part.stopped)
        return found, part
