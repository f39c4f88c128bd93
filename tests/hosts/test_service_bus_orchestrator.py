"""An orchestrator on Service Bus, step by step: what it cannot handle, what it is told twice, what its workers lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select, update

from matoolkit.batches.announcing import Announcer
from matoolkit.bus import Outgoing
from matoolkit.bus.errors import MessageTooLarge
from matoolkit.bus.outbox import Outbox
from matoolkit.bus.relay import Relay
from matoolkit.clock import SystemClock
from matoolkit.hosts.service_bus import RefusedJobs
from matoolkit.orchestrator import Orchestrator
from matoolkit.scheduler.due import start_due_phases
from matoolkit.simulation.noop import NoopWorker
from matoolkit.store import schema
from tests.bus.service_bus_line import Shared, broken_sockets_closed
from tests.hosts import outcomes
from tests.hosts.service_bus_crew import NAMES, TOPOLOGY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matoolkit.bus import Received
    from matoolkit.bus.service_bus.bus import ServiceBus
    from matoolkit.store.database import Database, Transaction
    from tests.doubles.service_bus.server import Namespace

WORKER = NAMES.worker(outcomes.WORKERS[0]).subscription


@dataclass
class Bench:
    """One of each part, moved by hand."""

    database: Database
    namespace: Namespace
    bus: ServiceBus
    relay: Relay
    orchestrator: Orchestrator
    worker: NoopWorker
    clock: SystemClock

    def begin(self, people: int) -> None:
        """A wave whose first jobs are out."""
        announcer = Announcer(self.bus)
        outcomes.begin(self.database, announcer, self.clock, people)
        self.pump()
        with self.database.transaction() as tx:
            start_due_phases(tx, announcer, self.clock.now())
        self.orchestrate()

    def orchestrate(self) -> None:
        """Relay and orchestrator, until neither has anything to do."""
        while self.relay.work() + self.orchestrator.handle_events() + self.orchestrator.handle_results():
            pass

    def pump(self) -> None:
        """The same, with the worker."""
        self.orchestrate()
        while self.worker.work():
            self.orchestrate()

    def statuses(self, step: str) -> list[str]:
        with self.database.reading() as tx:
            chosen = select(schema.step_executions.c.status).where(schema.step_executions.c.step_name == step)
            return sorted(tx.connection.execute(chosen.order_by(schema.step_executions.c.id)).scalars())

    def rows(self, table: Any) -> list[Any]:
        with self.database.reading() as tx:
            return list(tx.connection.execute(select(table).order_by(table.c.id)))


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    with broken_sockets_closed():
        shared = Shared(SystemClock())
        yield shared
        shared.close()


@pytest.fixture
def bench(sqlite_database: Database, shared: Shared) -> Bench:
    clock = SystemClock()
    outbox = Outbox(clock)
    bus = shared.bus(clock, outbox)
    shared.namespace.declare(TOPOLOGY)
    return Bench(
        sqlite_database,
        shared.namespace,
        bus,
        Relay(sqlite_database, outbox, bus, clock),
        Orchestrator(sqlite_database, bus, clock),
        NoopWorker(bus, WORKER, clock, function=outcomes.function),
        clock,
    )


def test_a_bad_result_is_put_aside_and_its_neighbours_go_on(bench: Bench) -> None:
    bench.begin(6)
    with bench.database.transaction() as tx:
        tx.connection.execute(
            update(schema.batch_members)
            .where(schema.batch_members.c.member_key == "person003")
            .values(worker_data_json="{broken")
        )
    bench.pump()
    (aside,) = bench.rows(schema.dead_messages)
    assert (aside.topic, aside.reason) == (NAMES.results, "HandlerFailed")
    assert bench.statuses("create").count("dispatched") == 1
    # One more of them stumbles at first, and may have been tried again by now.
    assert bench.statuses("invite").count("succeeded") in {4, 5}
    assert not bench.bus.wait([bench.orchestrator.results_subscription], 0.1)


def test_what_was_committed_and_not_settled_is_handled_again_and_changes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.begin(4)
    while bench.worker.work():
        pass
    monkeypatch.setattr(bench.bus, "complete", _forget)
    assert bench.orchestrator.handle_results() == 4
    monkeypatch.undo()
    before = bench.rows(schema.step_executions)
    bench.namespace.call(lambda: _expire_locks(bench.namespace))
    assert bench.orchestrator.handle_results() == 4
    assert bench.rows(schema.step_executions) == before
    bench.pump()
    assert bench.statuses("invite").count("succeeded") >= 3


def test_jobs_a_worker_gave_up_become_failures_with_their_reason(bench: Bench) -> None:
    bench.begin(3)
    with bench.bus.transaction() as tx:
        jobs = bench.bus.receive(tx, WORKER, 10)
        bench.bus.dead_letter(tx, jobs, "MaxDeliveryCountExceeded", "the worker died of it")
    assert len(jobs) == 3
    assert bench.orchestrator.drain() == 3
    assert bench.orchestrator.drain() == 0
    steps = [each for each in bench.rows(schema.step_executions) if each.step_name == "create"]
    assert [each.retry_count for each in steps] == [1, 1, 1]
    assert all("MaxDeliveryCountExceeded" in each.error_message for each in steps)


def test_messages_of_ours_that_were_given_up_are_put_aside(bench: Bench) -> None:
    bench.begin(1)
    with bench.bus.transaction() as tx:
        bench.bus.complete(tx, bench.bus.receive(tx, WORKER, 10))
    while bench.relay.work():
        pass
    results = bench.orchestrator.results_subscription
    with bench.bus.transaction() as tx:
        bench.bus.publish(tx, NAMES.results, [Outgoing("lost")])
    with bench.bus.transaction() as tx:
        bench.bus.dead_letter(tx, bench.bus.receive(tx, results, 1), "Poison", "why")
    assert bench.orchestrator.drain() == 1
    (aside,) = bench.rows(schema.dead_messages)
    assert (aside.topic, aside.reason, aside.error, aside.body) == (NAMES.results, "Poison", "why", "lost")
    with bench.bus.transaction() as tx:
        assert bench.bus.dead_letters(tx, results, 10) == []


def test_what_an_outage_gave_up_is_sent_once_more_and_then_put_aside(bench: Bench) -> None:
    bench.begin(2)
    while bench.worker.work():
        pass
    results = bench.orchestrator.results_subscription
    for again in range(2):
        with bench.bus.transaction() as tx:
            found = bench.bus.receive(tx, results, 10)
            bench.bus.dead_letter(tx, found, "MaxDeliveryCountExceeded", "the database was away")
        assert [each.message_id.startswith("again-") for each in found] == [bool(again)] * 2
        assert bench.orchestrator.drain() == 2
        while bench.relay.work():
            pass
    assert [each.reason for each in bench.rows(schema.dead_messages)] == ["MaxDeliveryCountExceeded"] * 2


def test_a_job_the_namespace_does_not_take_fails_its_step_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox, send = bench.relay._outbox, bench.bus.deliver
    monkeypatch.setattr(bench.relay, "_refused", RefusedJobs(outbox, NAMES))

    def deliver(topic: str, messages: Sequence[Outgoing]) -> list[int | None]:
        if any((each.message_id or "").startswith("step-1") for each in messages):
            raise MessageTooLarge("worker-jobs: larger than the tier takes")
        return send(topic, messages)

    monkeypatch.setattr(bench.bus, "deliver", deliver)
    bench.begin(2)
    first, _ = (each for each in bench.rows(schema.step_executions) if each.step_name == "create")
    assert first.retry_count == 1, "it failed, and is tried again like any other"
    assert "the job could not be sent: worker-jobs: larger than the tier takes" in first.error_message
    assert [each.reason for each in bench.rows(schema.dead_messages)] == ["TooLarge"]


def _forget(tx: Transaction, messages: Sequence[Received]) -> None:
    """The process dies before it can say that it is done."""


def _expire_locks(namespace: Namespace) -> None:
    for topic in namespace.broker.topics.values():
        for subscription in topic.subscriptions.values():
            for message in subscription.queue.messages.values():
                message.locked_until = min(message.locked_until, 1)
