"""Two orchestrators and two workers under load on one PostgreSQL, with a gauge of what they get done."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from threading import Condition
from typing import TYPE_CHECKING, Any

from matoolkit.batches.announcing import Announcer
from matoolkit.batches.making import create_batch
from matoolkit.bus import EmbeddedBus, Names, Topology
from matoolkit.clock import SystemClock
from matoolkit.hosts.loops import Loops
from matoolkit.orchestrator import Orchestrator
from matoolkit.runbooks import load_runbook
from matoolkit.scheduler.due import start_due_phases
from matoolkit.simulation.noop import NoopWorker
from matoolkit.store import runbooks
from matoolkit.store.database import Database, open_database
from matoolkit.store.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 5
MEMBERS = 500
"""Of each batch."""
_UNDER_WAY = 4 * MEMBERS * STEPS
"""How many steps are kept waiting, so that nobody ever has to."""
_LOCK = timedelta(seconds=8)
_RUNBOOK = """
name: wave
data_source: {type: sql, connection: SQL_X, query: q, primary_key: Key, batch_time_column: Time}
phases:
  - name: move
    offset: T-0
    steps:
""" + "\n".join(
    f"      - {{name: step-{index}, worker_id: worker-01, function: Do-Nothing, params: {{User: '{{{{Key}}}}'}}}}"
    for index in range(STEPS)
)


class Gauge:
    """How many steps were done, and when."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._done: list[tuple[float, int]] = []
        self.total = 0

    def add(self, steps: int) -> None:
        """Steps that are safely done."""
        with self._changed:
            self._done.append((time.monotonic(), steps))
            self.total += steps
            self._changed.notify_all()

    def watch(self, seconds: float) -> float:
        """Steps a second over the time to come."""
        begin = time.monotonic()
        self.until(begin + seconds)
        return self.rate(begin, begin + seconds)

    def until(self, moment: float) -> None:
        """Let time pass."""
        with self._changed:
            self._changed.wait_for(lambda: time.monotonic() >= moment, max(0.0, moment - time.monotonic()))

    def moves(self, timeout: float) -> bool:
        """Whether anything more was done before the time was over."""
        with self._changed:
            before = self.total
            return self._changed.wait_for(lambda: self.total != before, timeout)

    def rate(self, begin: float, end: float) -> float:
        """Steps a second between two moments."""
        with self._changed:
            return sum(steps for at, steps in self._done if begin < at <= end) / (end - begin)

    def is_back(self, rate: float, window: float, since: float, patience: float) -> float | None:
        """After how many seconds the work of a whole window was done at a rate again; None if it never was."""
        while True:
            now = time.monotonic()
            if now - since >= window and self.rate(now - window, now) >= rate:
                return now - since
            if now - since > patience:
                return None
            self.moves(0.05)


@dataclass
class Member:
    """One orchestrator and one worker, with connections of their own."""

    database: Database
    bus: EmbeddedBus
    orchestrator: Orchestrator
    loops: Loops


class Crew:
    """All of them, and who keeps them busy."""

    def __init__(self, url: str, *, orchestrators: int = 2) -> None:
        self.gauge = Gauge()
        self.clock = SystemClock()
        self.batches = 0
        self._feeding = Loops()
        self._home = open_database(url)
        bus = EmbeddedBus(self._home)
        self._announcer = Announcer(bus)
        migrate(self._home)
        names = Names()
        self._rule = names.worker("worker-01", _LOCK)
        with self._home.transaction() as tx:
            bus.declare(tx, names.topology(_LOCK))
            bus.declare(tx, Topology(subscriptions=(self._rule,)))
            runbooks.publish(tx, name="wave", yaml_content=_RUNBOOK, now=self.clock.now(), by="test")
        self.members = [self._member(open_database(url)) for _ in range(orchestrators)]

    def start(self) -> None:
        """Set everybody to work."""
        self._feeding.every("feeder", 0.05, self._feed)
        for each in self.members:
            one = each.orchestrator
            each.loops.consume("events", one.handle_events, each.bus, [one.events_subscription])
            each.loops.consume("results", self._counted(one), each.bus, [one.results_subscription])
            each.loops.every("reconciliation", 10, one.reconcile)
            subscription = self._rule.subscription
            worker = NoopWorker(each.bus, subscription, self.clock)
            each.loops.consume("worker", worker.work, each.bus, [subscription])

    def finish(self, patience: float) -> bool:
        """No more work; whether everything there is was done before nothing moved for so long."""
        self._feeding.stop()
        while not self._is_over():
            if not self.gauge.moves(patience) and not self._is_over():
                return False
        return True

    def stop(self) -> bool:
        """Have everybody end; whether all did."""
        ended = [each.loops.stop() for each in self.members]
        ended.append(self._feeding.stop())
        for each in self.members:
            each.database.close()
        self._home.close()
        return all(ended)

    def ask(self, question: str) -> list[Any]:
        """What the database says."""
        with self._home.reading() as tx:
            return list(tx.connection.exec_driver_sql(question))

    @property
    def home(self) -> Database:
        """Where whoever looks on looks."""
        return self._home

    def _is_over(self) -> bool:
        return not self.ask("SELECT 1 FROM batches WHERE status <> 'completed' LIMIT 1")

    def _feed(self) -> None:
        """Begin further batches while too little is to be done, each in one transaction."""
        while self.batches * MEMBERS * STEPS - self.gauge.total < _UNDER_WAY:
            now = self.clock.now()
            with self._home.transaction() as tx:
                (published,) = runbooks.active(tx)
                found = [(key, f'{{"Key": "{key}"}}') for key in map(str, range(MEMBERS))]
                runbook = load_runbook(published.yaml_content)
                create_batch(tx, self._announcer, published, runbook, start_time=now, members=found, now=now)
                start_due_phases(tx, self._announcer, now)
            self.batches += 1

    def _counted(self, orchestrator: Orchestrator) -> Callable[[], int]:
        def work() -> int:
            handled = orchestrator.handle_results()
            self.gauge.add(handled)
            return handled

        return work

    def _member(self, database: Database) -> Member:
        bus = EmbeddedBus(database)
        return Member(database, bus, Orchestrator(database, bus, self.clock), Loops())
