"""All the parts of the engine in one process on one database: scheduler, orchestrator and a worker, in threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from matoolkit.batches.announcing import Announcer
from matoolkit.bus import EmbeddedBus, Names
from matoolkit.clock import SystemClock
from matoolkit.hosts.loops import Loops
from matoolkit.hosts.parts import OrchestratorPart, SchedulerPart
from matoolkit.hosts.places import take_place
from matoolkit.scheduler import Settings as Scheduling
from matoolkit.scheduler.lease import NAME as LEASE
from matoolkit.store import leases
from matoolkit.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.bus import SubscriptionRule
    from matoolkit.clock import Clock
    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler.sources import Source
    from matoolkit.store.database import Database
    from matoolkit.telemetry import Telemetry

_LOCK_SECONDS = 60.0
_GRACE_SECONDS = 30.0


class Hand(Protocol):
    """Who runs the jobs."""

    def run(self) -> object:
        """Work until stopped."""

    def stop(self) -> None:
        """End after what runs, within the time it gives itself. From any thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How time passes, and how often it is looked at."""

    clock: Clock = field(default_factory=SystemClock)
    speed: float = 1.0
    """How much faster than the machine's the clock runs: what is to last a while for the machine lasts longer by it."""
    beat_seconds: float = 5.0
    look_again_seconds: float = 30.0
    scheduling: Scheduling = field(default_factory=Scheduling)

    @property
    def lock_duration(self) -> timedelta:
        """How long a message may be in somebody's hands."""
        return timedelta(seconds=_LOCK_SECONDS * self.speed)


class AllInOne:
    """Everything that a wave needs."""

    def __init__(
        self,
        database: Database,
        pace: Pace,
        *,
        worker: Callable[[EmbeddedBus, SubscriptionRule], Hand],
        worker_id: str | None = None,
        environment: Mapping[str, str],
        sources: Callable[[DataSource], Source] | None = None,
        telemetry: Telemetry = SILENT,
    ) -> None:
        """Take what it works on; `sources` are found by the environment's variables unless they are given."""
        self.database, self.clock = database, pace.clock
        # Who shares a database goes by its time; a file is one process's, which may have a time of its own.
        self.bus = EmbeddedBus(database, pace.clock if database.dialect == "sqlite" else None)
        self.announcer = Announcer(self.bus)
        names = Names()
        place = names.worker(worker_id, pace.lock_duration)
        with database.transaction() as tx:
            self.bus.declare(tx, names.topology(pace.lock_duration))
        take_place(database, self.bus, names, place)
        self.worker = worker(self.bus, place)
        self._orchestrator = OrchestratorPart(database, self.bus, pace.clock, telemetry=telemetry)
        self._scheduler = SchedulerPart(
            database,
            self.bus,
            pace.clock,
            topic=names.events,
            environment=environment,
            beat_seconds=pace.beat_seconds,
            settings=pace.scheduling,
            sources=sources,
            telemetry=telemetry,
        )
        self._loops = Loops(look_again_seconds=pace.look_again_seconds, telemetry=telemetry)

    def bury(self) -> int:
        """Give back what a process that is known to be dead had in its hands; how many messages that was."""
        with self.database.transaction() as tx:
            leases.free(tx, LEASE)
            return self.bus.release_all(tx)

    def start(self) -> None:
        """Begin."""
        self._orchestrator.start(self._loops)
        self._loops.serve("worker", self.worker.run, self.worker.stop)
        self._scheduler.start(self._loops)

    def stop(self, timeout: float = _GRACE_SECONDS) -> bool:
        """End, each part after what it is doing; whether all of them did."""
        stopped = self._loops.stop(timeout)
        self._scheduler.stopped()
        return stopped
