"""All the parts in one process on one database: scheduler, orchestrator and a worker, each in threads of its own."""

from __future__ import annotations

import os
import socket
from functools import partial
from typing import TYPE_CHECKING

from matoolkit.batches.announcing import Announcer
from matoolkit.bus import EmbeddedBus, Names, Subscription, Topology
from matoolkit.hosts.loops import Loops
from matoolkit.hosts.sources import source_settings
from matoolkit.hosts.ticking import Ticking
from matoolkit.orchestrator import Orchestrator
from matoolkit.scheduler import Scheduler
from matoolkit.scheduler.sources import open_source
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
        self.orchestrator = Orchestrator(database, self.bus, clock)
        self._noop = NoopWorker(self.bus, self._jobs, clock, function=function)
        self.worker = None if worker is None else worker(self.bus, everybody)
        """The real one, where the host has one; functions only pretend otherwise."""
        self.scheduler = Scheduler(
            database,
            self.announcer,
            clock,
            sources or partial(open_source, settings=source_settings(os.environ)),
            me=f"{socket.gethostname()}:{os.getpid()}",
            settings=scheduling,
        )
        self._ticking = Ticking(self.scheduler, beat_seconds)
        self._loops = Loops(look_again_seconds=look_again_seconds)

    def start(self) -> None:
        """Begin."""
        orchestrator, bus, loops = self.orchestrator, self.bus, self._loops
        full = orchestrator.settings.set_size
        loops.consume("events", orchestrator.handle_events, bus, [orchestrator.events_subscription], full=full)
        loops.consume("results", orchestrator.handle_results, bus, [orchestrator.results_subscription], full=full)
        if self.worker is None:
            loops.consume("worker", self._noop.work, bus, [self._jobs])
        else:
            loops.serve("worker", self.worker.run, self.worker.stop)
        self._ticking.start(loops)
        loops.every("reconcile", 15.0, self._tidy)

    def stop(self) -> bool:
        """End, each part after what it is doing; whether all of them did."""
        stopped = self._loops.stop()
        self.scheduler.step_down()
        return stopped

    def _tidy(self) -> None:
        self.orchestrator.drain()
        self.orchestrator.reconcile()
        with self.database.transaction() as tx:
            self.bus.sweep(tx)
