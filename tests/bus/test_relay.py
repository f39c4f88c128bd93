"""The relay: nothing is lost, nothing is sent out of a transaction, and a bus in trouble is left in peace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from matoolkit.bus.errors import BusBusy, BusError, BusUnavailable, MessageTooLarge, TopicNotFound
from matoolkit.bus.outbox import Lag, Outbox
from matoolkit.bus.relay import Relay, RelaySettings
from matoolkit.store.schema import dead_messages
from tests.bus.lines import START, job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.bus.port import Outgoing
    from matoolkit.clock import ManualClock
    from matoolkit.store.database import Database


class Killed(Exception):
    """The process ends here."""


class Namespace:
    """Takes what it is handed, knows ids again, and fails when it is told to."""

    def __init__(self) -> None:
        self.arrived: dict[str, str] = {}
        self.calls: list[int] = []
        self.failures: list[Exception | None] = []
        self.dies_after_taking = False
        self.largest = 100

    def deliver(self, topic: str, messages: Sequence[Outgoing]) -> list[int | None]:
        self.calls.append(len(messages))
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        for each in messages:
            if len(each.body) > self.largest:
                raise MessageTooLarge(f"{topic}: too large")
            self.arrived.setdefault(each.message_id or "", each.body)
        if self.dies_after_taking:
            raise Killed
        return [None if each.deliver_at is None else len(self.calls) for each in messages]


@dataclass
class Desk:
    """A relay with what it stands between."""

    database: Database
    clock: ManualClock
    namespace: Namespace
    outbox: Outbox
    relay: Relay

    def write(self, *bodies: str, topic: str = "worker-jobs") -> None:
        self.publish(*(job(body, message_id=body[:20]) for body in bodies), topic=topic)

    def publish(self, *messages: Outgoing, topic: str = "worker-jobs") -> None:
        with self.database.transaction() as tx:
            self.outbox.publish(tx, topic, messages)


@pytest.fixture
def desk(database: Database, clock: ManualClock) -> Desk:
    outbox, namespace = Outbox(clock), Namespace()
    relay = Relay(database, outbox, namespace, clock, RelaySettings(set_size=3))
    return Desk(database, clock, namespace, outbox, relay)


def test_everything_is_sent_set_by_set_in_its_order(desk: Desk) -> None:
    desk.write(*"abcd")
    desk.write(*"ef", topic="worker-results")
    assert desk.relay.lag() == Lag(6, START)
    assert [desk.relay.work(), desk.relay.work(), desk.relay.work()] == [3, 3, 0]
    assert "".join(desk.namespace.arrived.values()) == "abcdef"
    assert desk.namespace.calls == [3, 1, 2]
    assert desk.relay.lag() == Lag(0, None)


@pytest.mark.parametrize("after", [False, True], ids=["before sending", "before saying so"])
def test_a_relay_that_is_killed_loses_nothing_and_another_goes_on(desk: Desk, after: bool) -> None:
    desk.write(*"abc")
    desk.namespace.dies_after_taking = after
    desk.namespace.failures = [] if after else [Killed()]
    with pytest.raises(Killed):
        desk.relay.work()
    desk.namespace.dies_after_taking = False
    other = Relay(desk.database, desk.outbox, desk.namespace, desk.clock)
    assert other.work() == 0, "still the first one's"
    desk.clock.advance(seconds=60)
    assert other.work() == 3
    assert list(desk.namespace.arrived) == ["a", "b", "c"]
    assert desk.relay.lag().waiting == 0


@pytest.mark.parametrize(
    ("error", "pauses"),
    [
        (BusUnavailable("away"), [1, 2, 4, 8]),
        (BusBusy("50009"), [10, 10, 10, 10]),
        (TopicNotFound("gone"), [1, 2, 4, 8]),
    ],
)
def test_a_bus_in_trouble_is_asked_ever_more_rarely(desk: Desk, error: BusError, pauses: list[int]) -> None:
    desk.write(*"ab")
    for pause in pauses:
        desk.namespace.failures = [error]
        with pytest.raises(type(error)):
            desk.relay.work()
        desk.clock.advance(seconds=pause, milliseconds=-1)
        assert desk.relay.work() == 0
        desk.clock.advance(milliseconds=1)
    assert desk.relay.work() == 2
    desk.namespace.failures = [BusUnavailable()]
    desk.write("c")
    with pytest.raises(BusUnavailable):
        desk.relay.work()
    desk.clock.advance(seconds=1)
    assert desk.relay.work() == 1, "all is forgotten once something was sent"


def test_what_was_sent_before_the_failure_is_not_sent_again(desk: Desk) -> None:
    desk.write("a")
    desk.write("b", topic="worker-results")
    desk.namespace.failures = [None, BusUnavailable("away")]
    with pytest.raises(BusUnavailable):
        desk.relay.work()
    assert desk.relay.lag().waiting == 1
    desk.clock.advance(seconds=1)
    assert desk.relay.work() == 1
    assert desk.namespace.calls == [1, 1, 1]


def test_one_too_large_is_put_aside_and_its_neighbours_go_on(desk: Desk) -> None:
    desk.write("a", "x" * 101, "c")
    assert desk.relay.work() == 2
    assert list(desk.namespace.arrived) == ["a", "c"]
    with desk.database.reading() as tx:
        row = tx.connection.execute(dead_messages.select()).one()
    assert (row.topic, row.reason, row.error) == ("worker-jobs", "TooLarge", "worker-jobs: too large")
    assert row.body == "x" * 101
    assert desk.relay.lag().waiting == 0


def test_what_is_for_later_stays_by_its_sequence(desk: Desk) -> None:
    later = job("later", message_id="later", deliver_at=START + timedelta(minutes=1))
    desk.publish(job("now"), later)
    assert desk.relay.work() == 2
    assert desk.relay.lag().waiting == 0
    with desk.database.transaction() as tx:
        assert desk.outbox.withdraw(tx, "worker-jobs", ["later"]) == (0, [1])
    desk.clock.advance(minutes=1)
    assert desk.relay.work() == 0


def test_a_rest_ends_when_something_is_written(desk: Desk) -> None:
    assert desk.relay.work() == 0
    desk.write("a")
    desk.relay.rest(60)
    assert desk.relay.work() == 1
    desk.relay.wake()
    desk.relay.rest(60)
    desk.relay.rest(0.01)
