"""What goes wrong with a namespace, and what becomes of messages then."""

from __future__ import annotations

import pytest

from matoolkit.bus.errors import BusBusy, BusDenied, BusUnavailable, LockLost, MessageTooLarge
from matoolkit.bus.port import Outgoing
from matoolkit.bus.service_bus.bus import ServiceBus
from tests.bus.lines import EVENTS, NAMES, WORKER_1, job
from tests.bus.service_bus_line import ServiceBusLine, links_to
from tests.doubles.service_bus.faults import Fault
from tests.doubles.service_bus.server import PREMIUM_LARGEST, STANDARD_LARGEST

JOBS = NAMES.jobs
ONCE_AND_THE_SDKS_OWN_ATTEMPT = 2


@pytest.mark.parametrize("fault", [Fault.DETACH, Fault.DROP_CONNECTION, Fault.DROP_AFTER_ACCEPTING, Fault.SERVER_BUSY])
def test_what_passes_is_tried_again_and_the_message_arrives_once(line: ServiceBusLine, fault: Fault) -> None:
    line.publish(JOBS, job("before", message_id="step-1"))
    line.namespace.faults.plan(fault)
    line.publish(JOBS, job("a", message_id="step-2"), job("b", message_id="step-3"))
    assert line.namespace.faults.happened[fault] == 1
    assert line.bodies(WORKER_1) == ["before", "a", "b"]


def test_a_throttled_namespace_is_an_error_to_try_again_later(line: ServiceBusLine) -> None:
    line.namespace.faults.plan(Fault.SERVER_BUSY, ONCE_AND_THE_SDKS_OWN_ATTEMPT)
    with pytest.raises(BusBusy, match=r"worker-jobs: .*50009") as busy:
        line.publish(JOBS, job("a"))
    assert busy.value.retryable
    line.publish(JOBS, job("a"))
    assert line.bodies(WORKER_1) == ["a"]


def test_who_is_not_let_in_is_told(line: ServiceBusLine) -> None:
    links = links_to(line.namespace)
    bus = ServiceBus(links, line.clock)
    line.namespace.faults.plan(Fault.REFUSE_TOKEN, 10)
    with pytest.raises(BusDenied, match="worker-jobs"), bus.transaction() as tx:
        bus.publish(tx, JOBS, [job("a")])
    line.namespace.faults.clear()
    with bus.transaction() as tx:
        bus.publish(tx, JOBS, [job("b")])
    bus.disconnect()
    assert line.bodies(WORKER_1) == ["b"]


def test_a_settlement_whose_answer_is_lost_is_made_by_its_lock(line: ServiceBusLine) -> None:
    line.publish(EVENTS.topic, "a", "b")
    first, second = line.receive(EVENTS)
    line.namespace.faults.plan(Fault.SILENT_SETTLING)
    line.complete(first)
    assert line.namespace.faults.happened[Fault.SILENT_SETTLING] == 1
    line.abandon(second)
    assert [(each.body, each.delivery_count) for each in line.receive(EVENTS)] == [("b", 2)]
    line.clock.advance(days=1)
    assert line.bodies(EVENTS) == ["b"]


def test_locks_outlive_the_connection(line: ServiceBusLine) -> None:
    line.publish(EVENTS.topic, "a", "b", "c")
    a, b, c = line.receive(EVENTS)
    line.namespace.kill()
    with pytest.raises(BusUnavailable) as away:
        line.publish(EVENTS.topic, "lost")
    assert away.value.retryable
    with pytest.raises(BusUnavailable):
        line.complete(a)
    line.namespace.restart()
    line.complete(a)
    line.renew(b)
    line.dead_letter(c)
    with pytest.raises(LockLost):
        line.complete(a)
    line.publish(EVENTS.topic, "d")
    assert line.bodies(EVENTS) == ["d"]
    assert [each.body for each in line.dead(EVENTS)] == ["c"]


def test_who_waits_waits_through_a_restart(line: ServiceBusLine) -> None:
    line.namespace.kill()
    assert not line.bus.wait([EVENTS], 0.2)
    line.namespace.restart()
    line.publish(EVENTS.topic, "a")
    assert line.bus.wait([EVENTS], 30)
    assert line.bodies(EVENTS) == ["a"]


def test_a_message_larger_than_the_tier_allows_is_refused_by_name(line: ServiceBusLine) -> None:
    line.namespace.largest_message = STANDARD_LARGEST
    links = links_to(line.namespace)
    bus = ServiceBus(links, line.clock)
    try:
        with pytest.raises(MessageTooLarge, match="worker-jobs") as refused, bus.transaction() as tx:
            bus.publish(tx, JOBS, [job("before", message_id="1"), job("x" * 262_100, message_id="2")])
        assert not refused.value.retryable
        with bus.transaction() as tx:
            bus.publish(tx, JOBS, [job("x" * 200_000), job("y" * 200_000), Outgoing("nobody's")])
        assert [body[0] for body in line.bodies(WORKER_1)] == ["b", "x", "y"]
    finally:
        bus.disconnect()
        line.namespace.largest_message = PREMIUM_LARGEST


def test_what_travels_ahead_is_locked_from_then_on(line: ServiceBusLine) -> None:
    """Who asked for more than there was gets what comes later, and holds it whether it receives or not."""
    with line.bus.transaction() as tx:
        assert line.bus.receive(tx, EVENTS, 10) == []
    line.publish(EVENTS.topic, "a")
    assert line.namespace.ready(EVENTS.topic, EVENTS.name) == 0
    with line.bus.transaction() as tx:
        received = line.bus.receive(tx, EVENTS, 10)
    assert [each.body for each in received] == ["a"]
    line.complete(*received)
