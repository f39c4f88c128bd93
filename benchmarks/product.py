"""The product as it is measured: everything in one process, with real workers whose functions do nothing."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Event, current_thread
from typing import TYPE_CHECKING

from matoolkit.batches.announcing import Announcer
from matoolkit.batches.making import create_batch
from matoolkit.bus import EmbeddedBus, Names, Topology
from matoolkit.clock import SystemClock
from matoolkit.hosts.garbage import keep_what_is_there
from matoolkit.hosts.loops import Loops
from matoolkit.hosts.worker_host import Manner, WorkerHost
from matoolkit.orchestrator import Orchestrator
from matoolkit.runbooks import load_runbook
from matoolkit.scheduler.due import start_due_phases
from matoolkit.store import batches, phases, runbooks
from matoolkit.store.database import Database, open_database
from matoolkit.store.states import BatchStatus
from matoolkit.worker.registry import Registry, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matoolkit.store.database import Transaction

PARALLELISM = 64
CROWD, ALONE = "worker-01", "worker-02"
"""The workers, and the runbooks whose steps are theirs: one for the wave, one for who comes alone."""
_LONGEST_PAUSE = 600.0


class Watched(Database):
    """A database that knows how long the longest transaction of each thread was."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.engine)
        self._inner = database
        self.longest: dict[str, float] = {}

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """From when it has begun until it is committed."""
        with self._inner.transaction() as tx:
            begun = time.perf_counter()
            yield tx
        name = current_thread().name
        self.longest[name] = max(self.longest.get(name, 0), time.perf_counter() - begun)


class Engine:
    """The product in one process: a thread for events, one for results, one for each worker."""

    def __init__(self, url: str, steps: int) -> None:
        self.steps, self.results, self.progressed = steps, 0, Event()
        self.milestones: dict[int, Callable[[], None]] = {}
        self.database = open_database(url)
        self.watched = Watched(self.database)
        self.bus = EmbeddedBus(self.database)
        self.clock = SystemClock()
        self.orchestrator = Orchestrator(self.watched, self.bus, self.clock)
        self.loops = Loops()
        names = Names()
        rules = [names.worker(worker) for worker in (CROWD, ALONE)]
        with self.database.transaction() as tx:
            self.bus.declare(tx, names.topology())
            self.bus.declare(tx, Topology(subscriptions=tuple(rules)))
            for worker in (CROWD, ALONE):
                runbooks.publish(
                    tx, name=worker, yaml_content=runbook(worker, steps), now=self.clock.now(), by="benchmark"
                )
        registry = Registry()
        registry.add([described("Do-Nothing", do_nothing)], "benchmark")
        manner = Manner(parallelism=PARALLELISM)
        self._workers = [WorkerHost(self.bus, rule, registry, self.clock, manner=manner) for rule in rules]
        keep_what_is_there()

    def run(self) -> None:
        """Start the threads."""
        orchestrator = self.orchestrator
        loops, bus, full = self.loops, self.bus, orchestrator.settings.set_size
        loops.consume("events", orchestrator.handle_events, bus, [orchestrator.events_subscription], full=full)
        loops.consume("results", self._handle_results, bus, [orchestrator.results_subscription], full=full)
        for worker in self._workers:
            loops.serve("worker", worker.run, worker.stop)

    def load(self, worker: str, members: int) -> int:
        """A batch whose only phase is due."""
        now = self.clock.now()
        with self.database.transaction() as tx:
            published = next(each for each in runbooks.active(tx) if each.name == worker)
            return create_batch(
                tx,
                Announcer(self.bus),
                published,
                load_runbook(published.yaml_content),
                start_time=now,
                members=[member(number) for number in range(members)],
                now=now,
            )

    def start_phases(self) -> None:
        """What the scheduler's tick does."""
        with self.database.transaction() as tx:
            start_due_phases(tx, Announcer(self.bus), self.clock.now())

    def finish(self, batch: int, results: int) -> float:
        """When, by the performance counter, a batch was over, which takes so many results."""
        wanted = self.results + results
        while True:
            if not self.progressed.wait(_LONGEST_PAUSE):
                raise TimeoutError("nothing moves any more")
            self.progressed.clear()
            if self.results >= wanted and self.is_over(batch):
                return time.perf_counter()

    def is_over(self, batch: int) -> bool:
        """Whether a batch has ended; that it ended well is insisted on."""
        with self.database.reading() as tx:
            status = batches.read(tx, [batch])[batch].status
        if status not in (BatchStatus.ACTIVE, BatchStatus.COMPLETED):
            raise AssertionError(f"the batch is {status}")
        return status == BatchStatus.COMPLETED

    def is_expanded(self, batch: int) -> bool:
        """Whether every member's steps are written."""
        with self.database.reading() as tx:
            return all(each.expanded_at is not None for each in phases.of_batches(tx, [batch])[batch])

    def _handle_results(self) -> int:
        handled = self.orchestrator.handle_results()
        if handled:
            self.results += handled
            self.progressed.set()
            for reached in [results for results in self.milestones if results <= self.results]:
                self.milestones.pop(reached)()
        return handled


async def do_nothing(UserPrincipalName: str, DisplayName: str) -> bool:  # noqa: N803 - as runbooks write them
    return bool(UserPrincipalName and DisplayName)


_FUNCTION = "function: Do-Nothing, params: {UserPrincipalName: '{{Key}}', DisplayName: '{{Name}}'}}"
_HEAD = """
data_source: {type: sql, connection: SQL_X, query: q, primary_key: Key, batch_time_column: Time}
phases:
  - name: move
    offset: T-0
    steps:
"""


def runbook(worker: str, steps: int) -> str:
    """A phase of no-op steps with two templated parameters each."""
    lines = [f"      - {{name: step-{index}, worker_id: {worker}, {_FUNCTION}" for index in range(steps)]
    return f"name: {worker}{_HEAD}" + "\n".join(lines)


def member(number: int) -> tuple[str, str]:
    """A member's key and data."""
    key = f"user{number}@contoso.example"
    return key, f'{{"Key":"{key}","Name":"Ada Lovelace {number}","Department":"Research","Region":"EUR"}}'
