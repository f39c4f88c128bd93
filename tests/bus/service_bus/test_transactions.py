"""Service Bus beside a database: published through the outbox, settled after the commit, and never undoing one."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from matoolkit.bus.errors import LockLost
from matoolkit.bus.outbox import Outbox
from matoolkit.bus.port import Outgoing
from matoolkit.bus.relay import Relay
from matoolkit.bus.service_bus.bus import ServiceBus
from matoolkit.bus.service_bus.unit import NoDatabase
from tests.bus.lines import EVENTS, NAMES, RESULTS, START, WORKER_1, job

if TYPE_CHECKING:
    from matoolkit.store.database import Database
    from tests.bus.service_bus_line import ServiceBusLine, Shared


@pytest.fixture
def store(sqlite_store: Database) -> Database:
    return sqlite_store


def relay(store: Database, line: ServiceBusLine) -> Relay:
    assert isinstance(line.bus, ServiceBus)
    return Relay(store, Outbox(line.clock), line.bus, line.clock)


def test_what_is_published_leaves_with_the_relay_once_it_is_committed(line: ServiceBusLine, store: Database) -> None:
    def die() -> None:
        with store.transaction() as tx:
            line.bus.publish(tx, NAMES.jobs, [job("never")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        die()
    with store.transaction() as tx:
        line.bus.publish(tx, NAMES.jobs, [job("a"), job("b", time_to_live=timedelta(minutes=1))])
        line.bus.publish(tx, RESULTS.topic, [Outgoing("about a")])
    assert line.bodies(WORKER_1) == []
    assert relay(store, line).work() == 3
    assert line.bodies(WORKER_1) == ["a", "b"]
    assert line.bodies(RESULTS) == ["about a"]


def test_what_was_scheduled_through_the_relay_is_withdrawn_by_anybody(line: ServiceBusLine, store: Database) -> None:
    at = START + timedelta(minutes=5)
    with store.transaction() as tx:
        line.bus.publish(tx, NAMES.jobs, [job(name, message_id=name, deliver_at=at) for name in "abc"])
    assert relay(store, line).work() == 3
    with store.transaction() as tx:
        line.bus.publish(tx, NAMES.jobs, [job("d", message_id="d", deliver_at=at)])
    with store.transaction() as tx:
        assert line.bus.cancel_scheduled(tx, NAMES.jobs, ["a", "c", "d", "unknown"]) == 3
    assert relay(store, line).work() == 0
    line.clock.set(at)
    assert line.bodies(WORKER_1) == ["b"]


def test_messages_are_settled_after_the_commit_and_not_without_it(line: ServiceBusLine, store: Database) -> None:
    line.publish(EVENTS.topic, "a", "b", "c")
    a, b, c = line.receive(EVENTS)

    def die() -> None:
        with store.transaction() as tx:
            line.bus.complete(tx, [a, b, c])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        die()
    with store.transaction() as tx:
        line.bus.complete(tx, [a])
        line.bus.abandon(tx, [b])
        line.bus.dead_letter(tx, [c], "Broken")
        assert line.bodies(EVENTS) == []
    assert line.bodies(EVENTS) == ["b"]
    assert [each.reason for each in line.dead(EVENTS)] == ["Broken"]


def test_a_lock_known_to_be_lost_undoes_the_transaction(line: ServiceBusLine, store: Database) -> None:
    line.publish(EVENTS.topic, "a")
    (message,) = line.receive(EVENTS)
    line.clock.advance(seconds=60)

    def handle() -> None:
        with store.transaction() as tx:
            line.bus.publish(tx, NAMES.jobs, [job("twice")])
            line.bus.complete(tx, [message])

    with pytest.raises(LockLost):
        handle()
    assert relay(store, line).work() == 0


def test_a_bus_that_is_away_after_the_commit_undoes_nothing(
    line: ServiceBusLine, store: Database, caplog: pytest.LogCaptureFixture
) -> None:
    line.publish(EVENTS.topic, "a")
    (message,) = line.receive(EVENTS)
    with caplog.at_level(logging.WARNING), store.transaction() as tx:
        line.bus.publish(tx, NAMES.jobs, [job("b")])
        line.bus.complete(tx, [message])
        line.namespace.kill()
    assert "delivered again" in caplog.text
    line.namespace.restart()
    assert relay(store, line).work() == 1
    line.clock.advance(seconds=60)
    assert [(each.body, each.delivery_count) for each in line.receive(EVENTS)] == [("a", 2)]


def test_dead_letters_taken_in_a_transaction_that_was_undone_are_taken_again(
    line: ServiceBusLine, store: Database
) -> None:
    line.publish(EVENTS.topic, "a", "b", "c")
    line.dead_letter(*line.receive(EVENTS), reason="Broken")

    def take(limit: int, *, fail: bool = False) -> list[str]:
        with store.transaction() as tx:
            taken = [each.body for each in line.bus.take_dead(tx, EVENTS, limit)]
            if fail:
                raise ZeroDivisionError
        return taken

    with pytest.raises(ZeroDivisionError):
        take(10, fail=True)
    assert [take(1), take(10), take(10)] == [["a"], ["b", "c"], []]


def test_without_an_outbox_nothing_is_published_within_a_transaction(
    line: ServiceBusLine, store: Database, namespace: Shared
) -> None:
    bus = ServiceBus(namespace.links, line.clock)
    with pytest.raises(NoDatabase), store.transaction() as tx:
        bus.publish(tx, NAMES.jobs, [job("a")])
