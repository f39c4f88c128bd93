"""Conformance: who waits is let go when there is something to receive, when told to, and when the time is over."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.bus.lines import EVENTS, NAMES, RESULTS, WORKER_1, WORKER_2, Line, job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from matoolkit.bus.port import Subscription

LONG = 30.0
"""Seconds nobody waits in a test that passes."""


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def waiting(threads: ThreadPoolExecutor, line: Line, *subscriptions: Subscription) -> Future[bool]:
    """A wait in a thread; it may or may not have begun when this returns, and both are right."""
    return threads.submit(line.bus.wait, subscriptions, LONG)


def test_what_is_there_needs_no_waiting_and_is_received_afterwards(line: Line) -> None:
    line.publish(EVENTS.topic, "a", "b")
    assert line.bus.wait([EVENTS], LONG)
    assert line.bus.wait([EVENTS], LONG)
    received = line.receive(EVENTS)
    assert [(message.body, message.delivery_count) for message in received] == [("a", 1), ("b", 1)]
    line.complete(*received)


def test_nothing_comes_within_the_time(line: Line) -> None:
    began = time.monotonic()
    assert not line.bus.wait([EVENTS], 0)
    assert not line.bus.wait([EVENTS, RESULTS], 0.3)
    assert 0.3 <= time.monotonic() - began < LONG


def test_one_of_several_subscriptions_is_enough(line: Line, threads: ThreadPoolExecutor) -> None:
    woken = waiting(threads, line, EVENTS, WORKER_1)
    line.publish(NAMES.jobs, job("others", "2"))
    line.publish(NAMES.jobs, job("mine", "1"))
    assert woken.result(LONG)
    assert line.bodies(WORKER_1) == ["mine"]
    assert line.bodies(WORKER_2) == ["others"]


def test_who_waits_lets_others_publish_and_settle(line: Line, threads: ThreadPoolExecutor) -> None:
    line.publish(EVENTS.topic, "a", "b")
    first, second = line.receive(EVENTS)
    woken = waiting(threads, line, EVENTS)
    line.complete(first)
    line.renew(second)
    assert not woken.done()
    line.abandon(second)
    assert woken.result(LONG)
    assert [(message.body, message.delivery_count) for message in line.receive(EVENTS)] == [("b", 2)]


@pytest.mark.parametrize("times", [1, 3])
def test_closing_ends_every_wait_and_nothing_else(line: Line, threads: ThreadPoolExecutor, times: int) -> None:
    ended = [waiting(threads, line, EVENTS) for _ in range(times)]
    line.bus.close()
    assert [each.result(LONG) for each in ended] == [False] * times
    assert not line.bus.wait([EVENTS], LONG)
    line.publish(EVENTS.topic, "a")
    line.complete(*line.receive(EVENTS))
