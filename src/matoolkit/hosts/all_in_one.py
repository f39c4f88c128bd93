"""All the parts in one process on one database: scheduler, orchestrator and a worker, each in threads of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from matoolkit.batches.announcing import Announcer
from matoolkit.bus import EmbeddedBus, Names, Subscription, Topology
from matoolkit.hosts.loops import Loops
from matoolkit.hosts.parts import OrchestratorPart, SchedulerPart
from matoolkit.simulation.noop import NoopWorker

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.bus import SubscriptionRule
    from matoolkit.clock import Clock
    from matoolkit.hosts.worker_host import WorkerHost
    from matoolkit.messages import WorkerJob, WorkerResult
    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler import Settings
    from matoolkit.scheduler.sources import Source
    from matoolkit.store.database import Database


class AllInOne:
    """Everything that a wave needs."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        function: Callable[[WorkerJob], WorkerResult] | None = None,
        worker: Callable[[EmbeddedBus, SubscriptionRule], WorkerHost] | None = None,
        beat_seconds: float = 1.0,
        look_again_seconds: float = 30.0,
        scheduling: Settings | None = None,
        sources: Callable[[DataSource], Source] | None = None,
    ) -> None:
        """Take what it works on; without `sources`, data sources are found by the environment's variables."""
        self.database = database
        self.clock = clock
        self.bus = EmbeddedBus(database, clock)
        self.announcer = Announcer(self.bus)
        names = Names()
        everybody = names.worker(None)
        with database.transaction() as tx:
            self.bus.declare(tx, names.topology())
            self.bus.declare(tx, Topology(subscriptions=(everybody,)))
        self._jobs: Subscription = everybody.subscription
        self._orchestrator = OrchestratorPart(database, self.bus, clock)
        self._noop = NoopWorker(self.bus, self._jobs, clock, function=function)
        self.worker = None if worker is None else worker(self.bus, everybody)
        """The real one, where the host has one; functions only pretend otherwise."""
        self._scheduler = SchedulerPart(
            database,
            self.bus,
            clock,
            topic=names.events,
            environment=os.environ,
            beat_seconds=beat_seconds,
            settings=scheduling,
            sources=sources,
        )
        self._loops = Loops(look_again_seconds=look_again_seconds)

    def start(self) -> None:
        """Begin."""
        loops = self._loops
        self._orchestrator.start(loops)
        if self.worker is None:
            loops.consume("worker", self._noop.work, self.bus, [self._jobs])
        else:
            loops.serve("worker", self.worker.run, self.worker.stop)
        self._scheduler.start(loops)

    def stop(self) -> bool:
        """End, each part after what it is doing; whether all of them did."""
        stopped = self._loops.stop()
        self._scheduler.stopped()
        return stopped
