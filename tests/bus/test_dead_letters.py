"""Conformance: what is set aside, why, and what becomes of it; housekeeping and counting."""

from __future__ import annotations

from datetime import timedelta

import pytest

from matoolkit.bus.port import DeadReason, Depth, Outgoing, SweepReport
from matoolkit.bus.topology import SubscriptionRule
from tests.bus.lines import EVENTS, NAMES, RESULTS, START, WORKER_1, WORKER_2, Line, job

JOBS = NAMES.jobs


def test_a_dead_letter_says_what_it_was_and_why(line: Line) -> None:
    line.publish(EVENTS.topic, Outgoing("a", {"MessageType": "phase-due"}, "phase-7"))
    line.clock.advance(seconds=5)
    (message,) = line.receive(EVENTS)
    line.clock.advance(seconds=5)
    line.dead_letter(message, reason="Unreadable", description="line 1\nline 2 \0 \ud800")
    (dead,) = line.dead(EVENTS)
    assert (dead.sequence, dead.topic, dead.subscription) == (message.sequence, EVENTS.topic, EVENTS.name)
    assert (dead.message_id, dead.body, dead.properties) == ("phase-7", "a", {"MessageType": "phase-due"})
    assert (dead.reason, dead.description) == ("Unreadable", "line 1\nline 2 \ufffd ?")
    assert (dead.delivery_count, dead.enqueued_at, dead.dead_at) == (1, START, START + timedelta(seconds=10))
    line.clock.advance(days=30)
    assert line.bodies(EVENTS) == []


def test_a_reason_and_description_of_any_length_are_cut(line: Line) -> None:
    line.publish(EVENTS.topic, "a")
    line.dead_letter(*line.receive(EVENTS), reason="r" * 1000, description="d" * 10_000)
    (dead,) = line.dead(EVENTS)
    assert (len(dead.reason), len(dead.description)) == (256, 4096)


def test_after_the_tenth_delivery_comes_the_dead_letter(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b")
    for delivery in range(1, 11):
        messages = line.receive(EVENTS)
        assert [message.delivery_count for message in messages] == [delivery, delivery]
        if delivery % 2:
            line.clock.advance(seconds=60)
        else:
            line.abandon(*messages)
    line.publish(EVENTS.topic, "c")
    assert line.bodies(EVENTS, limit=2) == ["c"], "what is set aside does not stand in the way"
    dead = line.dead(EVENTS)
    assert [(each.body, each.reason, each.delivery_count) for each in dead] == [
        ("a", DeadReason.MAX_DELIVERY_COUNT, 10),
        ("b", DeadReason.MAX_DELIVERY_COUNT, 10),
    ]


def test_the_number_of_deliveries_is_the_subscriptions(line: Line) -> None:
    line.declare(SubscriptionRule(JOBS, "worker-1", max_delivery_count=1))
    line.publish(JOBS, job("a"))
    line.abandon(*line.receive(WORKER_1))
    assert line.bodies(WORKER_1) == []
    assert [dead.delivery_count for dead in line.dead(WORKER_1)] == [1]


@pytest.mark.parametrize("swept", [True, False])
def test_what_nobody_takes_in_time_is_set_aside(line: Line, swept: bool) -> None:
    line.publish(
        JOBS,
        job("own time", time_to_live=timedelta(minutes=5)),
        job("topic's time"),
        job("at most the topic's", time_to_live=timedelta(days=365)),
        job("counted from delivery", time_to_live=timedelta(minutes=5), deliver_at=START + timedelta(days=7)),
    )

    def look() -> list[str]:
        if swept:
            with line.bus.transaction() as tx:
                line.bus.sweep(tx)
        else:
            line.abandon(*line.receive(WORKER_1))
        return [dead.body for dead in line.dead(WORKER_1)]

    line.clock.advance(minutes=4, seconds=59, milliseconds=999)
    assert look() == []
    line.clock.advance(milliseconds=1)
    assert look() == ["own time"]
    line.clock.set(START + timedelta(days=7))
    assert look() == ["own time", "topic's time", "at most the topic's"]
    line.clock.advance(minutes=5)
    assert look()[-1] == "counted from delivery"
    assert {dead.reason for dead in line.dead(WORKER_1)} == {DeadReason.TIME_TO_LIVE}
    assert line.dead(WORKER_1)[0].delivery_count == (0 if swept else 1)


def test_who_holds_a_message_may_finish_it_past_its_time(line: Line) -> None:
    line.publish(JOBS, job("a", time_to_live=timedelta(seconds=30)))
    (message,) = line.receive(WORKER_1)
    line.clock.advance(seconds=31)
    with line.bus.transaction() as tx:
        assert line.bus.sweep(tx) == SweepReport(expired=0, forgotten_ids=0)
    line.renew(message)
    line.clock.advance(seconds=31)
    line.complete(message)


def test_a_sweep_does_as_much_as_it_may(line: Line) -> None:
    line.publish(JOBS, *(job(str(n), message_id=str(n), time_to_live=timedelta(minutes=1)) for n in range(5)))
    line.clock.advance(minutes=10, milliseconds=-1)
    reports = []
    for _ in range(3):
        with line.bus.transaction() as tx:
            reports.append(line.bus.sweep(tx, limit=2))
    line.clock.advance(milliseconds=1)
    for _ in range(3):
        with line.bus.transaction() as tx:
            reports.append(line.bus.sweep(tx, limit=3))
    if not line.bus.in_database:
        assert set(reports) == {SweepReport(0, 0)}, "it is done without being asked"
        return
    assert reports == [SweepReport(*did) for did in ((2, 0), (2, 0), (1, 0), (0, 3), (0, 2), (0, 0))]


def test_a_receive_that_finds_only_what_is_over_goes_on_to_what_is_not(line: Line) -> None:
    line.publish(JOBS, *(job(str(number), time_to_live=timedelta(seconds=1)) for number in range(7)), job("good"))
    line.clock.advance(seconds=1)
    assert line.bodies(WORKER_1, limit=2) == ["good"]
    assert len(line.dead(WORKER_1)) == 7


def test_dead_letters_are_read_page_by_page_each_subscription_its_own(line: Line) -> None:
    line.publish(JOBS, *(job(str(number)) for number in range(5)), job("other", "2"))
    line.dead_letter(*line.receive(WORKER_1))
    line.dead_letter(*line.receive(WORKER_2))
    page = line.dead(WORKER_1, limit=3)
    rest = line.dead(WORKER_1, limit=3, after=page[-1].sequence)
    assert [[dead.body for dead in each] for each in (page, rest)] == [["0", "1", "2"], ["3", "4"]]


def test_what_is_resubmitted_is_a_new_message_under_a_new_id(line: Line) -> None:
    line.publish(JOBS, *(job(name, message_id=f"step-{name}") for name in "abc"))
    old = line.receive(WORKER_1)
    line.dead_letter(*old)
    line.clock.advance(minutes=1)
    with line.bus.transaction() as tx:
        sequences = [old[2].sequence, old[0].sequence]
        assert line.bus.resubmit(tx, WORKER_2, sequences) == 0, "another subscription's"
        assert line.bus.resubmit(tx, WORKER_1, [*sequences, 12345]) == 2
        assert line.bus.resubmit(tx, WORKER_1, sequences) == 0, "already back"
        assert line.bus.resubmit(tx, WORKER_1, []) == 0
    again = line.receive(WORKER_1)
    assert [message.body for message in again] == ["a", "c"]
    assert [message.delivery_count for message in again] == [1, 1]
    assert again[0].properties == old[0].properties
    assert again[0].enqueued_at == START + timedelta(minutes=1)
    assert not {message.message_id for message in again} & {message.message_id for message in old}
    assert [dead.body for dead in line.dead(WORKER_1)] == ["b"]


def test_what_is_taken_is_gone_unless_the_transaction_is_undone(line: Line) -> None:
    line.publish(JOBS, *(job(name, message_id=name) for name in "abc"))
    line.dead_letter(*line.receive(WORKER_1), reason="Broken", description="why")

    def take(limit: int, *, fail: bool = False) -> list[str]:
        with line.bus.transaction() as tx:
            taken = line.bus.take_dead(tx, WORKER_1, limit)
            assert {(dead.reason, dead.description) for dead in taken} <= {("Broken", "why")}
            if fail:
                raise ZeroDivisionError
        return [dead.body for dead in taken]

    with pytest.raises(ZeroDivisionError):
        take(2, fail=True)
    assert [take(2), take(2), take(2)] == [["a", "b"], ["c"], []]


def test_depth_counts_what_lies_where(line: Line) -> None:
    """Elsewhere what is scheduled is in no subscription yet, and what is locked counts as ready."""
    beside = line.bus.in_database
    with line.bus.transaction() as tx:
        assert line.bus.depth(tx, WORKER_1) == Depth(0, 0, 0, 0, None)
    line.publish(JOBS, job("later", deliver_at=START + timedelta(days=1)))
    with line.bus.transaction() as tx:
        assert line.bus.depth(tx, WORKER_1) == Depth(0, 1 if beside else 0, 0, 0, None)
        assert line.bus.next_due(tx, WORKER_1) == (START + timedelta(days=1) if beside else None)
        assert line.bus.next_due(tx, WORKER_2) is None
    line.publish(JOBS, *(job(name) for name in "abcd"))
    line.clock.advance(seconds=1)
    line.publish(JOBS, job("e"), job("other", "2"))
    a, b, c = line.receive(WORKER_1, limit=3)
    line.dead_letter(a)
    line.abandon(b)
    with line.bus.transaction() as tx:
        ready, scheduled, locked = (3, 1, 1) if beside else (4, 0, 0)
        assert line.bus.depth(tx, WORKER_1) == Depth(ready, scheduled, locked, dead=1, oldest_enqueued_at=START)
        assert line.bus.next_due(tx, WORKER_1) == START
    line.complete(c, *line.receive(WORKER_1))
    with line.bus.transaction() as tx:
        assert line.bus.depth(tx, WORKER_1) == Depth(0, scheduled, 0, dead=1, oldest_enqueued_at=None)
        assert line.bus.depth(tx, RESULTS) == Depth(0, 0, 0, 0, None)
