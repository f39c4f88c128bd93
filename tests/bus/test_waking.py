"""Conformance: who waits is woken when there is something, and by nothing else. Bounds are wide: what hangs fails."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from matoolkit.bus.embedded import EmbeddedBus
from matoolkit.bus.port import Outgoing, Subscription
from matoolkit.clock import ManualClock, SystemClock
from matoolkit.store.database import Database, open_database
from tests.bus.lines import EVENTS, RESULTS, TOPOLOGY, WORKER_1, WORKER_2, Line, job

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = 30.0
"""Seconds nobody waits in a test that passes."""


@pytest.fixture
def live(database: Database) -> Iterator[Line]:
    """A bus under real time: PostgreSQL's own, the machine's on SQLite."""
    bus = EmbeddedBus(database)
    with bus.transaction() as tx:
        bus.declare(tx, TOPOLOGY)
    yield Line(bus, ManualClock(datetime.now(UTC)))
    bus.close()


@pytest.fixture
def neighbour(database: Database) -> Iterator[Line]:
    """Another process on the same database: it shares no memory with the first."""
    other = open_database(database.engine.url.render_as_string(hide_password=False))
    bus = EmbeddedBus(other)
    yield Line(bus, ManualClock(datetime.now(UTC)))
    bus.close()
    other.close()


class Watched:
    """A wait in a thread, which tells when it sleeps."""

    def __init__(self, bus: EmbeddedBus, subscriptions: list[Subscription], timeout: float = LONG) -> None:
        self.sleeps = 0
        self.asleep = threading.Event()
        self._signals = bus._signals
        self._original = bus._signals.wait
        self._signals.wait = self._wait  # type: ignore[assignment, method-assign]
        threads = ThreadPoolExecutor(1)
        self.result: Future[bool] = threads.submit(bus.wait, subscriptions, timeout)
        threads.shutdown(wait=False)

    def _wait(self, *arguments: object) -> object:
        self.sleeps += 1
        self.asleep.set()
        return self._original(*arguments)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return self.result.result(LONG)


@contextmanager
def sleeping(line: Line, *subscriptions: Subscription, timeout: float = LONG) -> Iterator[Watched]:
    """A wait that found nothing and sleeps; on PostgreSQL also one whose listener is listening."""
    bus = line.bus
    assert isinstance(bus, EmbeddedBus)
    if bus._database.dialect == "postgresql":
        noted = bus._signals.noted()
        bus._waiting._listen()
        bus._signals.wait([], noted._replace(everything=0), LONG)
    watched = Watched(bus, list(subscriptions), timeout)
    assert watched.asleep.wait(LONG)
    yield watched
    bus.close()
    watched.result.result(LONG)


def test_what_is_there_needs_no_waiting(live: Line) -> None:
    live.publish(EVENTS.topic, "a")
    assert live.bus.wait([EVENTS], LONG)


def test_one_of_several_subscriptions_is_enough(live: Line) -> None:
    live.publish(RESULTS.topic, "a")
    assert live.bus.wait([EVENTS, RESULTS], LONG)


def test_nothing_comes_within_the_time(live: Line) -> None:
    assert not live.bus.wait([EVENTS], 0)
    assert not live.bus.wait([EVENTS], 0.01)


def test_a_commit_in_this_process_wakes(live: Line) -> None:
    with sleeping(live, WORKER_1) as waiting:
        live.publish(WORKER_1.topic, job("a"))
        assert waiting


def test_what_is_not_committed_wakes_nobody(live: Line) -> None:
    with sleeping(live, EVENTS) as waiting:
        slept = waiting.sleeps

        def die() -> None:
            with live.bus.transaction() as tx:
                live.bus.publish(tx, EVENTS.topic, [Outgoing("a")])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            die()
        if live.bus._database.dialect == "postgresql":  # type: ignore[attr-defined]
            with live.bus.transaction() as tx:
                live.bus.publish(tx, EVENTS.topic, [Outgoing("b")])
                assert not waiting.result.done()
        assert waiting.sleeps == slept
        assert not waiting.result.done()


def test_others_messages_do_not_end_the_wait(live: Line) -> None:
    with sleeping(live, WORKER_1) as waiting:
        live.publish(EVENTS.topic, "a")
        live.publish(WORKER_2.topic, job("b", "2"))
        assert not waiting.result.done()
        live.publish(WORKER_1.topic, job("c", "1"))
        assert waiting


def test_what_is_abandoned_wakes(live: Line) -> None:
    live.publish(EVENTS.topic, "a")
    (message,) = live.receive(EVENTS)
    with sleeping(live, EVENTS) as waiting:
        live.abandon(message)
        assert waiting


def test_what_is_resubmitted_wakes(live: Line) -> None:
    live.publish(EVENTS.topic, "a")
    (message,) = live.receive(EVENTS)
    live.dead_letter(message)
    with sleeping(live, EVENTS) as waiting:
        with live.bus.transaction() as tx:
            live.bus.resubmit(tx, EVENTS, [message.sequence])
        assert waiting


def test_a_scheduled_message_ends_the_wait_when_it_is_due(live: Line) -> None:
    due = datetime.now(UTC) + timedelta(seconds=0.3)
    with sleeping(live, EVENTS) as waiting:
        live.publish(EVENTS.topic, Outgoing("a", deliver_at=due))
        assert waiting
        assert waiting.sleeps <= 3, "woken to see it, and asleep until it is due"
    assert datetime.now(UTC) >= due
    assert [message.body for message in live.receive(EVENTS)] == ["a"]


def test_a_lock_that_ends_ends_the_wait(live: Line) -> None:
    live.publish(EVENTS.topic, "a")
    live.receive(EVENTS, lock_for=timedelta(seconds=0.3))
    with sleeping(live, EVENTS) as waiting:
        assert waiting
        assert waiting.sleeps == 1
    assert [message.delivery_count for message in live.receive(EVENTS)] == [2]


@pytest.mark.parametrize("verb", ["wake", "close"])
def test_a_wait_can_be_ended(live: Line, verb: str) -> None:
    with sleeping(live, EVENTS) as waiting:
        getattr(live.bus, verb)()
        assert not waiting


def test_a_closed_bus_waits_no_more_but_works(live: Line) -> None:
    live.bus.close()
    live.publish(EVENTS.topic, "a")
    assert not live.bus.wait([EVENTS], LONG)
    live.complete(*live.receive(EVENTS))
    live.bus.close()


def test_a_signal_between_looking_and_sleeping_is_not_missed(live: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = live.bus
    assert isinstance(bus, EmbeddedBus)
    look = bus._waiting._look
    looks = 0

    def look_then_publish(subscriptions: object) -> object:
        nonlocal looks
        looks += 1
        seen = look(subscriptions)  # type: ignore[arg-type]
        if looks == 1:
            live.publish(EVENTS.topic, "a")
        return seen

    monkeypatch.setattr(bus._waiting, "_look", look_then_publish)
    assert bus.wait([EVENTS], LONG)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
class TestOtherProcesses:
    """What only PostgreSQL has: others who publish."""

    def test_a_commit_elsewhere_wakes(self, live: Line, neighbour: Line) -> None:
        with sleeping(live, EVENTS) as waiting:
            with neighbour.bus.transaction() as tx:
                neighbour.bus.publish(tx, EVENTS.topic, [Outgoing("a")])
                neighbour.bus.publish(tx, EVENTS.topic, [Outgoing("b")])
                assert not waiting.result.done()
            assert waiting

    def test_what_is_abandoned_elsewhere_wakes(self, live: Line, neighbour: Line) -> None:
        live.publish(EVENTS.topic, "a")
        (message,) = neighbour.receive(EVENTS)
        with sleeping(live, EVENTS) as waiting:
            neighbour.abandon(message)
            assert waiting

    def test_a_subscription_made_elsewhere_a_moment_ago_counts(self, live: Line, neighbour: Line) -> None:
        live.publish(WORKER_1.topic, job("nobody", "9"))
        rule = TOPOLOGY.subscriptions[-1].__class__(WORKER_1.topic, "worker-9")
        neighbour.declare(rule)
        live.publish(WORKER_1.topic, job("somebody", "9"))
        assert neighbour.bodies(rule.subscription) == ["somebody"]

    def test_what_another_transaction_holds_is_not_asked_for_all_the_time(self, live: Line, neighbour: Line) -> None:
        live.publish(EVENTS.topic, "a")
        with neighbour.bus.transaction() as tx:
            assert neighbour.bus.receive(tx, EVENTS, 1)
            rounds, ends = 0, time.monotonic() + 0.5
            while time.monotonic() < ends:
                assert live.bus.wait([EVENTS], LONG)
                assert live.receive(EVENTS) == []
                rounds += 1
            tx.connection.rollback()
        assert rounds < 15
        assert live.bus.wait([EVENTS], LONG)
        assert live.bodies(EVENTS) == ["a"]

    def test_time_is_the_databases(self, live: Line, database: Database) -> None:
        """A host whose clock is an hour ahead expires nobody's lock: without a clock it is not asked."""
        ahead = EmbeddedBus(database, ManualClock(SystemClock().now() + timedelta(hours=1)))
        live.publish(EVENTS.topic, "a")
        (message,) = live.receive(EVENTS)
        assert abs(message.locked_until - datetime.now(UTC) - timedelta(seconds=60)) < timedelta(seconds=5)
        assert live.bodies(EVENTS) == []
        with ahead.transaction() as tx:
            assert ahead.receive(tx, EVENTS, 1), "which is what a clock of one's own would do"
