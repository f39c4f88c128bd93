"""Conformance: what is received is locked, settled, renewed, lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from matoolkit.bus.errors import BusError, LockLost
from matoolkit.bus.port import Outgoing, Received
from matoolkit.bus.topology import SubscriptionRule
from tests.bus.lines import EVENTS, NAMES, RESULTS, START, Line

Verb = Callable[[Line, Received], object]

SETTLING: dict[str, Verb] = {
    "complete": lambda line, message: line.complete(message),
    "abandon": lambda line, message: line.abandon(message),
    "dead-letter": lambda line, message: line.dead_letter(message),
    "renew": lambda line, message: line.renew(message),
}


@pytest.fixture(params=list(SETTLING.values()), ids=list(SETTLING))
def settle(request: pytest.FixtureRequest) -> Verb:
    verb: Verb = request.param
    return verb


def test_what_is_locked_is_seen_by_nobody_else(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b", "c")
    assert line.bodies(EVENTS, limit=2) == ["a", "b"]
    assert line.bodies(EVENTS) == ["c"]
    assert line.bodies(EVENTS) == []


def test_what_is_completed_is_gone(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b")
    line.complete(*line.receive(EVENTS))
    line.complete()
    line.clock.advance(days=1)
    assert line.bodies(EVENTS) == []


def test_a_lock_that_ends_gives_the_message_back_with_its_count(line: Line) -> None:
    line.publish(EVENTS.topic, "a")
    line.receive(EVENTS)
    line.clock.advance(seconds=59, milliseconds=999)
    assert line.bodies(EVENTS) == []
    line.clock.advance(milliseconds=1)
    (again,) = line.receive(EVENTS)
    assert (again.body, again.delivery_count, again.enqueued_at) == ("a", 2, START)


def test_a_lock_may_be_asked_for_by_its_length(line: Line) -> None:
    line.publish(EVENTS.topic, "a")
    """Of a bus in the database; elsewhere it is as long as the subscription says."""
    (message,) = line.receive(EVENTS, lock_for=timedelta(minutes=5))
    length = timedelta(minutes=5) if line.bus.in_database else timedelta(minutes=1)
    assert message.locked_until == START + length
    line.clock.set(START + length - timedelta(milliseconds=1))
    assert line.bodies(EVENTS) == []


def test_what_is_abandoned_is_ready_at_its_old_place(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b", "c")
    line.clock.advance(seconds=1)
    first, _ = line.receive(EVENTS, limit=2)
    line.abandon(first)
    again, last = line.receive(EVENTS)
    assert (again.body, again.delivery_count, last.body, last.delivery_count) == ("a", 2, "c", 1)


def test_what_comes_back_is_older_than_what_was_sent_since(line: Line) -> None:
    line.declare(SubscriptionRule(EVENTS.topic, EVENTS.name, lock_duration=timedelta(seconds=10)))
    line.publish(EVENTS.topic, "a", "b")
    line.receive(EVENTS)
    line.clock.advance(seconds=5)
    line.publish(EVENTS.topic, "c")
    line.clock.advance(seconds=10)
    assert line.bodies(EVENTS) == ["a", "b", "c"]


def test_renewing_locks_from_now_on(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b")
    messages = line.receive(EVENTS)
    line.clock.advance(seconds=50)
    assert line.renew(*messages) == START + timedelta(seconds=110)
    line.clock.advance(seconds=50)
    assert line.bodies(EVENTS) == []
    length = timedelta(minutes=10) if line.bus.in_database else timedelta(minutes=1)
    assert line.renew(*messages, lock_for=timedelta(minutes=10)) == START + timedelta(seconds=100) + length
    line.clock.advance(seconds=length.total_seconds() - 1)
    line.complete(*messages)


def test_a_lock_is_lost_at_its_end(line: Line, settle: Verb) -> None:
    line.publish(EVENTS.topic, Outgoing("a", message_id="phase-7"))
    (message,) = line.receive(EVENTS)
    line.clock.advance(seconds=60)
    with pytest.raises(LockLost, match=r"phase-7 of orchestrator-events/orchestrator \(delivery 1\)") as lost:
        settle(line, message)
    assert lost.value.lost == (message,)
    assert not lost.value.retryable
    assert line.bodies(EVENTS) == ["a"]


def test_a_lock_is_lost_when_another_took_the_message(line: Line, settle: Verb) -> None:
    line.publish(EVENTS.topic, "a")
    (mine,) = line.receive(EVENTS)
    line.clock.advance(seconds=60)
    (theirs,) = line.receive(EVENTS)
    with pytest.raises(LockLost):
        settle(line, mine)
    settle(line, theirs)


@pytest.mark.parametrize("end", ["complete", "abandon", "dead-letter"])
def test_a_lock_is_lost_when_the_message_was_settled(line: Line, settle: Verb, end: str) -> None:
    line.publish(EVENTS.topic, "a")
    (message,) = line.receive(EVENTS)
    SETTLING[end](line, message)
    with pytest.raises(LockLost):
        settle(line, message)


def test_settling_is_for_all_or_none(line: Line, settle: Verb) -> None:
    """In the database; elsewhere what could be settled is, and `LockLost` names the rest."""
    line.publish(EVENTS.topic, "a", "b", "c")
    (lost,) = line.receive(EVENTS, limit=1)
    line.clock.advance(seconds=30)
    held = line.receive(EVENTS)
    line.clock.advance(seconds=30)
    with pytest.raises(LockLost) as error, line.bus.transaction() as tx:
        line.bus.complete(tx, [held[0], lost, held[1]])
    assert error.value.lost == (lost,)
    for message in held:
        if line.bus.in_database:
            settle(line, message)
        else:
            with pytest.raises(LockLost):
                settle(line, message)


def test_renewing_says_which_were_renewed_and_they_are_if_that_is_committed(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b")
    (lost,) = line.receive(EVENTS, limit=1)
    line.clock.advance(seconds=30)
    (held,) = line.receive(EVENTS, limit=1)
    line.clock.advance(seconds=30)
    with line.bus.transaction() as tx:
        with pytest.raises(LockLost) as error:
            line.bus.renew(tx, [lost, held])
        assert (error.value.lost, error.value.renewed) == ((lost,), (held,))
    line.clock.advance(seconds=59)
    line.complete(held)


def test_messages_of_several_deliveries_and_subscriptions_are_settled_together(line: Line) -> None:
    line.publish(EVENTS.topic, "a")
    line.publish(RESULTS.topic, "r")
    line.abandon(*line.receive(EVENTS))
    line.publish(EVENTS.topic, "b")
    messages = [*line.receive(EVENTS), *line.receive(RESULTS)]
    assert [message.delivery_count for message in messages] == [2, 1, 1]
    line.complete(*messages, *messages)
    line.clock.advance(days=1)
    assert line.bodies(EVENTS) == line.bodies(RESULTS) == []


def test_the_lock_of_a_message_that_is_gone_means_no_later_one(line: Line) -> None:
    """Sequences are never used again, not even that of the last row."""
    line.publish(EVENTS.topic, "a")
    (mine,) = line.receive(EVENTS)
    line.clock.advance(seconds=60)
    line.complete(*line.receive(EVENTS))
    line.publish(EVENTS.topic, "b")
    (other,) = line.receive(EVENTS)
    assert other.sequence != mine.sequence
    with pytest.raises(LockLost):
        line.complete(mine)
    line.complete(other)


def test_a_clock_that_is_set_back_makes_nothing_abandoned_look_locked(line: Line) -> None:
    line.publish(EVENTS.topic, "a")
    line.clock.advance(seconds=30)
    (message,) = line.receive(EVENTS)
    line.abandon(message)
    line.clock.advance(seconds=-10)
    assert line.bodies(EVENTS) == ["a"]


def test_taking_sending_and_fetching_are_one_transaction(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b", "c")
    first = line.receive(EVENTS, limit=1)
    with line.bus.transaction() as tx:
        line.bus.complete(tx, first)
        line.bus.publish(tx, NAMES.results, [Outgoing("about a")])
        second = line.bus.receive(tx, EVENTS, 1)
        line.bus.complete(tx, second)
        third = line.bus.receive(tx, EVENTS, 1)
    assert [message.body for message in (*second, *third)] == ["b", "c"]
    line.complete(*third)
    assert line.bodies(RESULTS) == ["about a"]


class Crash(Exception):
    """The process that works dies before its commit."""


def test_what_is_not_committed_never_was(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b")
    (first,) = line.receive(EVENTS, limit=1)

    def die() -> None:
        with line.bus.transaction() as tx:
            line.bus.complete(tx, [first])
            line.bus.publish(tx, NAMES.results, [Outgoing("about a", message_id="x")])
            assert line.bus.receive(tx, EVENTS, 1)
            raise Crash

    with pytest.raises(Crash):
        die()
    assert line.bodies(RESULTS) == []
    # A bus elsewhere has handed it out, whatever became of that.
    handed_out = 1 if line.bus.in_database else 2
    assert [(each.body, each.delivery_count) for each in line.receive(EVENTS)] == [("b", handed_out)]
    line.complete(first)
    line.publish(NAMES.results, Outgoing("sent after all", message_id="x"))
    assert line.bodies(RESULTS) == ["sent after all"]


def test_what_is_taken_is_gone_with_the_commit(line: Line) -> None:
    if not line.bus.in_database:
        with pytest.raises(BusError, match="cannot be taken"), line.bus.transaction() as tx:
            line.bus.take(tx, EVENTS, 1)
        return
    line.publish(EVENTS.topic, "a", "b", "c")
    with line.bus.transaction() as tx:
        assert [message.body for message in line.bus.take(tx, EVENTS, 2)] == ["a", "b"]
        line.bus.publish(tx, RESULTS.topic, [Outgoing("about a and b")])
    line.clock.advance(days=1)
    assert line.bodies(EVENTS) == ["c"]
    assert line.bodies(RESULTS) == ["about a and b"]


@pytest.mark.parametrize("line", ["sqlite", "postgresql"], indirect=True)
def test_what_is_taken_and_undone_was_not_delivered(line: Line) -> None:
    line.publish(EVENTS.topic, "a", Outgoing("late", time_to_live=timedelta(seconds=1)), "b")
    line.clock.advance(seconds=1)

    def die() -> None:
        with line.bus.transaction() as tx:
            assert [message.body for message in line.bus.take(tx, EVENTS, 10)] == ["a", "b"]
            raise Crash

    with pytest.raises(Crash):
        die()
    assert [(message.body, message.delivery_count) for message in line.receive(EVENTS)] == [("a", 1), ("b", 1)]
