"""Two orchestrators, two workers, a scheduler and two relays on one database and one Service Bus."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Condition
from typing import TYPE_CHECKING

from matoolkit.batches.announcing import Announcer
from matoolkit.bus import Names, Topology
from matoolkit.bus.outbox import Outbox
from matoolkit.bus.relay import Relay, RelaySettings
from matoolkit.bus.service_bus.bus import ServiceBus
from matoolkit.clock import SystemClock
from matoolkit.hosts.loops import Loop, Loops
from matoolkit.orchestrator import Orchestrator
from matoolkit.orchestrator.work import Settings
from matoolkit.scheduler.due import ask_due_polls, start_due_phases
from matoolkit.simulation.noop import NoopWorker
from tests.bus.service_bus_line import links_to
from tests.hosts import outcomes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.bus.port import Outgoing
    from matoolkit.messages import WorkerJob, WorkerResult
    from matoolkit.store.database import Database
    from tests.doubles.service_bus.server import Namespace

_LOCK = timedelta(seconds=4)
_HOLD = timedelta(seconds=2)
NAMES = Names()
TOPOLOGY = Topology(
    topics=NAMES.topology().topics,
    subscriptions=(
        *NAMES.topology(_LOCK).subscriptions,
        *(NAMES.worker(each, _LOCK) for each in outcomes.WORKERS),
    ),
)


class Killed(Exception):
    """A relay's process ends where it stands."""


@dataclass
class Mortal:
    """What a relay hands messages to, until it is killed: before it sends, or after, before it can say so."""

    bus: ServiceBus
    before: frozenset[int] = frozenset()
    after: frozenset[int] = frozenset()
    calls: int = 0
    deaths: int = 0

    def deliver(self, topic: str, messages: Sequence[Outgoing]) -> list[int | None]:
        self.calls += 1
        if self.calls in self.before:
            self._die()
        sequences = self.bus.deliver(topic, messages)
        if self.calls in self.after:
            self._die()
        return sequences

    def _die(self) -> None:
        self.deaths += 1
        raise Killed


class ServiceBusCrew:
    """All of them."""

    def __init__(self, database: Database, namespace: Namespace, *, kill_relays: bool = False) -> None:
        self.database = database
        self.clock = SystemClock()
        self.jobs: Counter[str] = Counter()
        self.loops = Loops(look_again_seconds=2)
        self._changed = Condition()
        self._namespace = namespace
        self._buses: list[ServiceBus] = []
        namespace.declare(TOPOLOGY)
        before, after = (frozenset({2, 9}), frozenset({5, 12})) if kill_relays else (frozenset(), frozenset())
        self.carriers = [Mortal(self._bus(), before, after), Mortal(self._bus(), before, after)]

    def start(self, people: int) -> None:
        """Begin a wave."""
        outbox = Outbox(self.clock)
        announcer = Announcer(outbox)
        outcomes.begin(self.database, announcer, self.clock, people)
        for carrier in self.carriers:
            settings = RelaySettings(set_size=40, hold_for=_HOLD)
            relay = Relay(self.database, outbox, carrier, self.clock, settings)
            self.loops.start(Loop("relay", relay.work, partial(relay.rest, 0.2)))
        for _ in range(2):
            bus = self._bus(Outbox(self.clock))
            one = Orchestrator(self.database, bus, self.clock, Settings(stall_after=timedelta(seconds=30)))
            self.loops.consume("events", one.handle_events, bus, [one.events_subscription])
            self.loops.consume("results", one.handle_results, bus, [one.results_subscription])
            self.loops.every("drain", 2.0, one.drain)
            self.loops.every("reconcile", 2.0, one.reconcile)
        for worker_id in outcomes.WORKERS:
            bus = self._bus()
            subscription = NAMES.worker(worker_id).subscription
            worker = NoopWorker(bus, subscription, self.clock, function=self._run)
            self.loops.consume(worker_id, worker.work, bus, [subscription])
        self.loops.every("tick", 0.5, lambda: self._tick(announcer))

    def until_jobs(self, count: int, patience: float) -> bool:
        """Whether so many jobs were run before patience ended."""
        with self._changed:
            return self._changed.wait_for(lambda: self.jobs.total() >= count, patience)

    def until_over(self, patience: float) -> bool:
        """Whether the wave ended before patience did."""
        return outcomes.wait_until_over(self.database, patience)

    def stop(self) -> bool:
        """End; whether all did."""
        ended = self.loops.stop()
        with ThreadPoolExecutor(len(self._buses)) as threads:
            for ending in [threads.submit(bus.disconnect) for bus in self._buses]:
                ending.result()
        return ended

    def _bus(self, outbox: Outbox | None = None) -> ServiceBus:
        bus = ServiceBus(links_to(self._namespace, known=TOPOLOGY), self.clock, outbox)
        self._buses.append(bus)
        return bus

    def _run(self, job: WorkerJob) -> WorkerResult:
        with self._changed:
            self.jobs[job.job_id] += 1
            self._changed.notify_all()
        return outcomes.function(job)

    def _tick(self, announcer: Announcer) -> None:
        now = self.clock.now()
        with self.database.transaction() as tx:
            start_due_phases(tx, announcer, now)
        with self.database.transaction() as tx:
            ask_due_polls(tx, announcer, now)
