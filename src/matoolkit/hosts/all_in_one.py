"""All the parts in one process on one database: scheduler, orchestrator and a worker, each in threads of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.batches.announcing import Announcer
from matoolkit.bus import EmbeddedBus, Names, Subscription, Topology
from matoolkit.hosts.loops import Loops
from matoolkit.orchestrator import Orchestrator
from matoolkit.scheduler.due import ask_due_polls, start_due_phases
from matoolkit.simulation.noop import NoopWorker

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.clock import Clock
    from matoolkit.messages import WorkerJob, WorkerResult
    from matoolkit.store.database import Database


class AllInOne:
    """Everything that a wave needs."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        function: Callable[[WorkerJob], WorkerResult] | None = None,
        tick_seconds: float = 1.0,
        look_again_seconds: float = 30.0,
    ) -> None:
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
        self.worker = NoopWorker(self.bus, self._jobs, clock, function=function)
        self._tick_seconds = tick_seconds
        self._loops = Loops(look_again_seconds=look_again_seconds)

    def start(self) -> None:
        """Begin."""
        orchestrator, bus, loops = self.orchestrator, self.bus, self._loops
        full = orchestrator.settings.set_size
        loops.consume("events", orchestrator.handle_events, bus, [orchestrator.events_subscription], full=full)
        loops.consume("results", orchestrator.handle_results, bus, [orchestrator.results_subscription], full=full)
        loops.consume("worker", self.worker.work, bus, [self._jobs])
        loops.every("tick", self._tick_seconds, self._tick)
        loops.every("reconcile", 15.0, self._tidy)

    def stop(self) -> bool:
        """End, each part after what it is doing; whether all of them did."""
        return self._loops.stop()

    def _tick(self) -> None:
        now = self.clock.now()
        with self.database.transaction() as tx:
            start_due_phases(tx, self.announcer, now)
        with self.database.transaction() as tx:
            ask_due_polls(tx, self.announcer, now)

    def _tidy(self) -> None:
        self.orchestrator.drain()
        self.orchestrator.reconcile()
        with self.database.transaction() as tx:
            self.bus.sweep(tx)
