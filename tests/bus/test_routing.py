"""Conformance: which subscriptions a message reaches, when, in which order, and which messages are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from matoolkit.bus.errors import (
    InvalidMessage,
    InvalidTopology,
    MessageTooLarge,
    SubscriptionNotFound,
    TopicNotFound,
)
from matoolkit.bus.outgoing import LARGEST_BODY
from matoolkit.bus.port import Outgoing, Subscription
from matoolkit.bus.topology import Filter, SubscriptionRule, Topology
from tests.bus.lines import EVENTS, NAMES, RESULTS, START, WORKER_1, WORKER_2, Line, filtered, job

JOBS = NAMES.jobs


def test_a_message_arrives_as_it_was_sent(line: Line) -> None:
    body = '{"name": "Zoë \\u0000 \\ud83d\\ude00", "quote": "\'", "emoji": "😀"}\n'
    line.publish(EVENTS.topic, Outgoing(body, {"MessageType": "phase-due", "Name": "Zoë"}, "phase-7"))
    (message,) = line.receive(EVENTS)
    assert (message.topic, message.subscription, message.message_id) == (
        "orchestrator-events",
        "orchestrator",
        "phase-7",
    )
    assert message.body == body
    assert message.properties == {"MessageType": "phase-due", "Name": "Zoë"}
    assert message.delivery_count == 1
    assert message.enqueued_at == START
    assert message.locked_until == START + timedelta(seconds=60)


def test_a_filter_lets_through_what_has_the_value(line: Line) -> None:
    line.publish(JOBS, job("a", "1"), job("b", "2"), job("c", "1"))
    assert line.bodies(WORKER_1) == ["a", "c"]
    assert line.bodies(WORKER_2) == ["b"]


def test_a_filter_compares_exactly(line: Line) -> None:
    line.declare(filtered(JOBS, "worker-x", "WorkerId", "x"))
    line.publish(JOBS, job("a", "X"), job("b", " x"), job("c", "x1"), Outgoing("d"), Outgoing("e", {"workerid": "x"}))
    assert line.bodies(Subscription(JOBS, "worker-x")) == []


def test_without_a_filter_everything_arrives_and_each_subscription_has_its_own_copy(line: Line) -> None:
    everything = NAMES.worker(None)
    line.declare(everything)
    line.publish(JOBS, job("a", "1"), job("b", "none of these"))
    copies = line.receive(everything.subscription)
    assert [message.body for message in copies] == ["a", "b"]
    line.complete(*copies)
    assert line.bodies(WORKER_1) == ["a"]


def test_what_no_filter_lets_through_is_dropped(line: Line) -> None:
    line.publish(JOBS, job("lost", "3"))
    line.declare(NAMES.worker("3"))
    line.publish(JOBS, job("found", "3"))
    assert line.bodies(NAMES.worker("3").subscription) == ["found"]


def test_a_topic_without_subscriptions_takes_messages_and_drops_them(line: Line) -> None:
    with line.bus.transaction() as tx:
        line.bus.remove(tx, RESULTS)
    line.publish(RESULTS.topic, Outgoing("a", message_id="a"), "b")
    with pytest.raises(SubscriptionNotFound, match=r"orchestrator of topic worker-results"):
        line.receive(RESULTS)


def test_a_removed_subscription_takes_its_messages_along(line: Line) -> None:
    line.publish(JOBS, job("a"), job("b", "2"))
    with line.bus.transaction() as tx:
        line.bus.remove(tx, WORKER_1)
        line.bus.remove(tx, WORKER_1)
    line.declare(NAMES.worker("1"))
    assert line.bodies(WORKER_1) == []
    assert line.bodies(WORKER_2) == ["b"]


def test_declaring_again_keeps_messages_and_takes_over_new_rules(line: Line) -> None:
    line.publish(JOBS, job("a"))
    line.declare(SubscriptionRule(JOBS, "worker-1", Filter("WorkerId", "one"), lock_duration=timedelta(seconds=5)))
    line.publish(JOBS, job("b", "1"), job("c", "one"))
    received = line.receive(WORKER_1)
    assert [message.body for message in received] == ["a", "c"]
    assert received[0].locked_until == START + timedelta(seconds=5)


@pytest.mark.parametrize(
    "rule",
    [
        SubscriptionRule(JOBS, "with space"),
        SubscriptionRule(JOBS, ""),
        SubscriptionRule(JOBS, "x", Filter("Worker'Id", "1")),
        SubscriptionRule(JOBS, "x", max_delivery_count=0),
        SubscriptionRule(JOBS, "x", lock_duration=timedelta(0)),
    ],
)
def test_a_rule_no_bus_could_carry_is_refused(line: Line, rule: SubscriptionRule) -> None:
    with pytest.raises(InvalidTopology):
        line.declare(rule)


def test_unknown_topics_and_subscriptions_are_named(line: Line) -> None:
    with pytest.raises(TopicNotFound, match="no topic nowhere"):
        line.publish("nowhere", "a")
    with pytest.raises(TopicNotFound), line.bus.transaction() as tx:
        line.bus.declare(tx, Topology(subscriptions=(SubscriptionRule("nowhere", "x"),)))
    nobody = Subscription(JOBS, "nobody")
    with pytest.raises(SubscriptionNotFound, match="nobody of topic worker-jobs"):
        line.receive(nobody)
    with pytest.raises(SubscriptionNotFound):
        line.dead(nobody)
    with pytest.raises(SubscriptionNotFound):
        line.bus.wait([nobody], 0)


def test_an_id_is_a_duplicate_for_ten_minutes_to_the_millisecond(line: Line) -> None:
    line.publish(JOBS, job("first", message_id="step-1"))
    line.clock.advance(minutes=9, seconds=59, milliseconds=999)
    line.publish(JOBS, job("too early", message_id="step-1"), job("other", message_id="step-2"))
    line.clock.advance(milliseconds=1)
    line.publish(JOBS, job("second", message_id="step-1"))
    assert line.bodies(WORKER_1) == ["first", "other", "second"]
    line.clock.advance(minutes=9, seconds=59)
    line.publish(JOBS, job("third", message_id="step-1"))
    assert "third" not in line.bodies(WORKER_1), "the window began anew"


def test_a_duplicate_does_not_lengthen_the_window(line: Line) -> None:
    line.publish(JOBS, job("first", message_id="step-1"))
    line.clock.advance(minutes=9)
    line.publish(JOBS, job("duplicate", message_id="step-1"))
    line.clock.advance(minutes=1)
    line.publish(JOBS, job("second", message_id="step-1"))
    assert line.bodies(WORKER_1) == ["first", "second"]


def test_duplicates_within_one_publish_and_one_transaction(line: Line) -> None:
    with line.bus.transaction() as tx:
        line.bus.publish(tx, JOBS, [job("a", message_id="x"), job("b", message_id="x"), job("c"), job("d")])
        line.bus.publish(tx, JOBS, [job("e", message_id="x"), job("f", message_id="y")])
    assert line.bodies(WORKER_1) == ["a", "c", "d", "f"]


def test_an_id_stays_taken_when_its_message_is_gone_and_is_free_in_another_topic(line: Line) -> None:
    line.publish(JOBS, job("a", message_id="x"))
    line.complete(*line.receive(WORKER_1))
    line.publish(JOBS, job("again", message_id="x"))
    line.publish(RESULTS.topic, Outgoing("elsewhere", message_id="x"))
    assert line.bodies(WORKER_1) == []
    assert line.bodies(RESULTS) == ["elsewhere"]


def test_messages_without_an_id_get_different_ones(line: Line) -> None:
    line.publish(RESULTS.topic, "same", "same")
    first, second = line.receive(RESULTS)
    assert first.message_id != second.message_id


def test_a_scheduled_message_is_there_when_its_time_has_come_and_not_before(line: Line) -> None:
    at = START + timedelta(minutes=5, microseconds=1)
    line.publish(EVENTS.topic, Outgoing("later", deliver_at=at), Outgoing("past", deliver_at=START - timedelta(days=1)))
    assert line.bodies(EVENTS) == ["past"]
    line.clock.advance(minutes=5)
    assert "later" not in line.bodies(EVENTS), "not even a microsecond early"
    line.clock.advance(milliseconds=1)
    later = next(message for message in line.receive(EVENTS) if message.body == "later")
    assert later.enqueued_at == START + timedelta(minutes=5, milliseconds=1)


def test_a_scheduled_message_can_be_withdrawn(line: Line) -> None:
    at = START + timedelta(minutes=5)
    line.declare(NAMES.worker(None))
    line.publish(JOBS, *(job(name, message_id=name, deliver_at=at) for name in "abc"), job("now", message_id="now"))
    with line.bus.transaction() as tx:
        assert line.bus.cancel_scheduled(tx, JOBS, ["c", "a", "now", "unknown"]) == 2
        assert line.bus.cancel_scheduled(tx, JOBS, ["a"]) == 0
        assert line.bus.cancel_scheduled(tx, JOBS, []) == 0
        assert line.bus.cancel_scheduled(tx, RESULTS.topic, ["b"]) == 0
    line.clock.set(at)
    assert line.bodies(WORKER_1) == ["now", "b"]


def test_a_message_under_way_is_not_withdrawn(line: Line) -> None:
    line.publish(JOBS, job("a", message_id="a"))
    line.receive(WORKER_1)
    with line.bus.transaction() as tx:
        assert line.bus.cancel_scheduled(tx, JOBS, ["a"]) == 0


def test_order_is_that_of_publishing(line: Line) -> None:
    line.publish(EVENTS.topic, *(str(number) for number in range(50)))
    with line.bus.transaction() as tx:
        line.bus.publish(tx, EVENTS.topic, [Outgoing(str(number)) for number in range(50, 60)])
        line.bus.publish(tx, EVENTS.topic, [Outgoing(str(number)) for number in range(60, 70)])
    line.clock.advance(seconds=1)
    line.publish(EVENTS.topic, "70")
    parts = [line.bodies(EVENTS, limit=30), line.bodies(EVENTS, limit=30), line.bodies(EVENTS, limit=30)]
    assert [len(part) for part in parts] == [30, 30, 11]
    assert [body for part in parts for body in part] == [str(number) for number in range(71)]


def test_a_body_may_have_256_kilobytes_and_no_more(line: Line) -> None:
    largest = "ä" * (LARGEST_BODY // 2)
    line.publish(JOBS, job(largest), job("x" * LARGEST_BODY))
    assert [len(body) for body in line.bodies(WORKER_1)] == [LARGEST_BODY // 2, LARGEST_BODY]
    for body in (largest + "x", "x" * (LARGEST_BODY + 1)):
        with pytest.raises(MessageTooLarge, match=r"type Set-Thing for topic worker-jobs .* 262,145 bytes") as refused:
            line.publish(JOBS, job("before"), job(body))
        assert not refused.value.retryable
    assert line.bodies(WORKER_1) == []


@pytest.mark.parametrize(
    "message",
    [
        Outgoing("a\0b"),
        Outgoing("a", {"Name": "a\0b"}),
        Outgoing("a", {"Na\0me": "b"}),
        Outgoing("a", message_id="a\0"),
        Outgoing("a", message_id=""),
        Outgoing("a", message_id="x" * 129),
        Outgoing("\ud800"),
        Outgoing("a", {"Name": "\ud800"}),
        Outgoing("a", deliver_at=START.replace(tzinfo=None)),
    ],
)
def test_what_not_every_database_can_hold_is_refused(line: Line, message: Outgoing) -> None:
    with pytest.raises(InvalidMessage, match="type unknown for topic orchestrator-events"):
        line.publish(EVENTS.topic, message)


def test_publishing_nothing_does_nothing(line: Line) -> None:
    line.publish(EVENTS.topic)
    assert line.bodies(EVENTS) == []


def test_a_large_set_is_published_in_a_constant_number_of_statements(line: Line) -> None:
    line.publish(JOBS, *(job(f"body {number}", message_id=f"step-{number}") for number in range(3000)))
    # In any order: Service Bus promises none.
    assert sorted(line.bodies(WORKER_1, limit=3000)) == sorted(f"body {number}" for number in range(3000))
