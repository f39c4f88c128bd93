"""The parts as threads of a process, whether they are alone in it or all together."""

from __future__ import annotations

import logging
import os
import socket
from functools import partial
from typing import TYPE_CHECKING

from matoolkit.batches.announcing import Announcer
from matoolkit.hosts.sources import source_settings
from matoolkit.hosts.ticking import Ticking
from matoolkit.orchestrator import Orchestrator
from matoolkit.scheduler import Scheduler
from matoolkit.scheduler.sources import open_source
from matoolkit.store.errors import StoreError
from matoolkit.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.bus import Bus, Publisher
    from matoolkit.clock import Clock
    from matoolkit.hosts.loops import Loops
    from matoolkit.orchestrator import Settings as OrchestratorSettings
    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler import Settings as SchedulerSettings
    from matoolkit.scheduler.sources import Source
    from matoolkit.store.database import Database
    from matoolkit.telemetry import Telemetry

log = logging.getLogger(__name__)

_TIDIED_EVERY_SECONDS = 15.0


class SchedulerPart:
    """A scheduler with its threads."""

    def __init__(
        self,
        database: Database,
        publisher: Publisher,
        clock: Clock,
        *,
        topic: str,
        environment: Mapping[str, str],
        beat_seconds: float,
        settings: SchedulerSettings | None = None,
        sources: Callable[[DataSource], Source] | None = None,
        telemetry: Telemetry = SILENT,
    ) -> None:
        """Take what it works on; without `sources`, data sources are found by the environment's variables."""
        self.scheduler = Scheduler(
            database,
            Announcer(publisher, topic, telemetry),
            clock,
            sources or partial(open_source, settings=source_settings(environment)),
            me=f"{socket.gethostname()}:{os.getpid()}",
            settings=settings,
        )
        self._ticking = Ticking(self.scheduler, beat_seconds, telemetry=telemetry)

    def start(self, loops: Loops) -> None:
        """Begin."""
        self._ticking.start(loops)

    def once(self, between: Callable[[], object]) -> None:
        """What is due now, for who has no threads; see `Ticking.once`."""
        self._ticking.once(between)

    def stopped(self) -> None:
        """Its threads have ended: another one may lead at once."""
        try:
            self.scheduler.step_down()
        except StoreError as error:
            log.warning("the lead was not given back, and is free when its time is over: %s", error)


class OrchestratorPart:
    """An orchestrator with its threads: events, results, and the timer on which it looks for what is stuck."""

    def __init__(
        self,
        database: Database,
        bus: Bus,
        clock: Clock,
        settings: OrchestratorSettings | None = None,
        telemetry: Telemetry = SILENT,
    ) -> None:
        self.orchestrator = Orchestrator(database, bus, clock, settings, telemetry)
        self._database, self._bus = database, bus

    def start(self, loops: Loops) -> None:
        """Begin."""
        orchestrator, bus = self.orchestrator, self._bus
        full = orchestrator.settings.set_size
        loops.consume("events", orchestrator.handle_events, bus, [orchestrator.events_subscription], full=full)
        loops.consume("results", orchestrator.handle_results, bus, [orchestrator.results_subscription], full=full)
        loops.every("reconcile", _TIDIED_EVERY_SECONDS, self.tidy)

    def stopped(self) -> None:
        """Its threads have ended, and it has nothing to give back."""

    def tidy(self) -> None:
        """Find what is stuck, and what the bus gave up."""
        self.orchestrator.drain()
        self.orchestrator.reconcile()
        with self._database.transaction() as tx:
            self._bus.sweep(tx)
