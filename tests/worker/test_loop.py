"""Places, locks, time, and the ends of a worker; on the real bus."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.bus import EmbeddedBus
from matoolkit.store.errors import DatabaseUnavailable
from matoolkit.worker import FunctionContext, TimedOut
from matoolkit.worker import worker as loop
from tests.worker.workplace import SECONDS, Gate, Workplace, doing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database, Transaction


# Places --------------------------------------------------------------------------------------------------------------


def test_as_many_jobs_run_as_there_are_places_and_no_more_are_taken(workplace: Workplace, gate: Gate) -> None:
    workplace.send(*(workplace.job() for _ in range(10)))
    with workplace.working(doing(gate.wait), parallelism=4):
        gate.until_entered(4)
        depth = workplace.jobs()
        assert (depth.ready, depth.locked, gate.entered) == (6, 4, 4)
        gate.open()
        workplace.results(10)
    assert workplace.jobs().locked == 0


def test_a_place_that_is_free_is_filled_while_others_are_busy(workplace: Workplace, gate: Gate) -> None:
    async def do(Wait: bool) -> None:  # noqa: N803 - as runbooks write it
        if Wait:
            await gate.wait()

    workplace.send(*(workplace.job(parameters={"Wait": str(number < 3)}) for number in range(20)))
    with workplace.working(doing(do), parallelism=4):
        gate.until_entered(3)
        assert len(workplace.results(17)) == 17
        assert workplace.no_results()
        gate.open()
        workplace.results(3)


def test_plain_functions_run_at_the_same_time(workplace: Workplace) -> None:
    together = threading.Barrier(4)
    workplace.send(*(workplace.job() for _ in range(4)))
    with workplace.working(doing(lambda: together.wait(SECONDS) >= 0), parallelism=4):
        assert {each.status for each in workplace.results(4)} == {"success"}


def test_jobs_that_come_later_are_taken_at_once(workplace: Workplace) -> None:
    with workplace.working(doing(lambda: None)):
        for _ in range(5):
            workplace.send(workplace.job())
            workplace.result()


# Locks ---------------------------------------------------------------------------------------------------------------


def test_locks_are_kept_although_a_function_blocks_everything(database: Database) -> None:
    workplace = Workplace(database, lock=0.9)
    begun, go_on = threading.Event(), threading.Event()

    async def block() -> None:  # what no coroutine should do
        begun.set()
        go_on.wait(SECONDS)

    workplace.send(workplace.job())
    with workplace.working(doing(block)):
        assert begun.wait(SECONDS)
        renewals, last, ends = 0, workplace.locked_until(), time.monotonic() + SECONDS
        # Longer than the lock's own duration, so that without renewals somebody else could have had it.
        while renewals < 4:
            assert time.monotonic() < ends
            if (now := workplace.locked_until()) != last:
                renewals, last = renewals + 1, now
        assert workplace.take() == []
        go_on.set()
        assert workplace.result().status == "success"
    assert workplace.no_results()
    workplace.bus.close()


def test_who_lost_the_lock_is_cancelled_and_does_not_report(database: Database, gate: Gate) -> None:
    workplace = Workplace(database, lock=0.6)
    workplace.send(workplace.job())
    with workplace.working(doing(gate.wait)) as working:
        gate.until_entered()
        with workplace.database.transaction() as tx:  # as a database that was away for longer than the lock
            tx.connection.exec_driver_sql(
                "UPDATE bus_messages SET delivery_count = delivery_count + 1 WHERE delivery_count > 0"
            )
        ends = time.monotonic() + SECONDS
        while not gate.left_by_cancellation:
            assert time.monotonic() < ends
        working.host.stop()
        working.join()
    assert workplace.no_results()
    workplace.bus.close()


def test_a_result_whose_lock_is_lost_is_left_to_who_has_it(workplace: Workplace, gate: Gate) -> None:
    """The other one takes the job while this one's function is at its end; both results would differ."""
    workplace.send(workplace.job(), workplace.job(job_id="step-99", idempotency_key="step-99"))
    with workplace.working(doing(gate.wait)):
        gate.until_entered(2)
        with workplace.database.transaction() as tx:
            tx.connection.exec_driver_sql(
                "UPDATE bus_messages SET delivery_count = delivery_count + 1 WHERE message_id = 'step-1'"
            )
        gate.open()
        assert workplace.result().job_id == "step-99"
    assert workplace.no_results()


class SlowToSay(EmbeddedBus):
    """Settles jobs, and takes its time to say so."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.settled, self.go_on = threading.Event(), threading.Event()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with super().transaction() as tx:
            yield tx
        if self.settled.is_set():
            self.go_on.wait(SECONDS)

    def complete(self, tx: Transaction, messages: Any) -> None:
        super().complete(tx, messages)
        self.settled.set()


def test_a_job_that_is_being_settled_is_not_taken_for_lost(
    workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    """Locks are renewed beside it, and cannot be for what has just been settled."""
    bus = SlowToSay(workplace.database)
    workplace.send(workplace.job())
    with workplace.working(doing(lambda: None), bus=bus) as working:
        assert bus.settled.wait(SECONDS)
        worker = working.host._worker
        assert worker is not None
        (message,) = worker.held.to_renew(time.monotonic())
        worker.lost([message])
        looked = threading.Event()
        worker._tell(looked.set)
        assert looked.wait(SECONDS)
        bus.go_on.set()
        assert workplace.result().status == "success"
    assert "its lock is lost" not in caplog.text
    bus.close()


# Time ----------------------------------------------------------------------------------------------------------------


def test_a_function_is_cancelled_when_its_time_is_over(workplace: Workplace, gate: Gate) -> None:
    workplace.send(workplace.job(timeout_seconds=1))
    with workplace.working(doing(gate.wait)):
        result = workplace.result()
    assert result.error is not None
    assert result.error.type == "TimedOut"
    assert "1 seconds" in result.error.message
    assert gate.left_by_cancellation == 1
    assert 900 <= result.duration_ms <= 10_000


def test_queueing_is_no_part_of_the_time(workplace: Workplace) -> None:
    async def do() -> None:
        await asyncio.sleep(0.6)

    workplace.send(*(workplace.job(timeout_seconds=1) for _ in range(3)))
    with workplace.working(doing(do), parallelism=1):
        assert {each.status for each in workplace.results(3)} == {"success"}


def test_a_thread_that_goes_on_past_its_time_is_reported_and_keeps_its_place(workplace: Workplace) -> None:
    told, go_on = threading.Event(), threading.Event()

    def do(ctx: FunctionContext) -> None:
        ctx.cancelled.wait(SECONDS)
        with pytest.raises(TimedOut):
            ctx.check()
        told.set()
        go_on.wait(SECONDS)

    workplace.send(workplace.job(timeout_seconds=1), workplace.job("Do-More"))
    with workplace.working(doing(do), doing(lambda: None, "Do-More"), parallelism=1) as working:
        first = workplace.result()
        assert first.error is not None
        assert first.error.type == "TimedOut"
        assert told.wait(SECONDS)
        assert workplace.jobs().ready == 1
        ends = time.monotonic() + SECONDS
        while (health := working.host.health()).http_status != 503:
            assert time.monotonic() < ends
        assert "1 of 1 places are held by functions that go on past their time" in health.reasons
        go_on.set()
        assert workplace.result().function_name == "Do-More"
    assert workplace.no_results()


def test_a_coroutine_that_does_not_let_itself_be_cancelled_is_reported_once(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "STUBBORN", 0.1)
    go_on, ended = threading.Event(), threading.Event()

    async def do() -> bool:
        while not go_on.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        ended.set()
        return True

    workplace.send(workplace.job(timeout_seconds=1))
    with workplace.working(doing(do)):
        result = workplace.result()
        assert result.error is not None
        assert result.error.type == "TimedOut"
        go_on.set()
        assert ended.wait(SECONDS)
    assert workplace.no_results()


def test_no_time_at_all_is_too_little(workplace: Workplace) -> None:
    async def do() -> None:
        await asyncio.sleep(SECONDS)

    workplace.send(workplace.job(timeout_seconds=0))
    with workplace.working(doing(do)):
        result = workplace.result()
    assert result.error is not None
    assert result.error.type == "TimedOut"


# The ends of a worker ------------------------------------------------------------------------------------------------


def test_it_ends_when_there_is_nothing_to_do_for_a_while(workplace: Workplace) -> None:
    workplace.send(workplace.job())
    with workplace.working(doing(lambda: None), idle_seconds=0.3) as working:
        working.join()
    assert workplace.result().status == "success"


def test_who_works_is_not_idle(workplace: Workplace) -> None:
    async def do() -> None:
        await asyncio.sleep(1.2)

    workplace.send(workplace.job())
    with workplace.working(doing(do), idle_seconds=0.3) as working:
        working.join()
    assert workplace.result().status == "success"


def test_told_to_stop_it_lets_jobs_end_and_takes_no_more(workplace: Workplace, gate: Gate) -> None:
    workplace.send(*(workplace.job() for _ in range(4)))
    with workplace.working(doing(gate.wait), parallelism=2) as working:
        gate.until_entered(2)
        working.host.stop()
        gate.open()
        working.join()
    assert {each.status for each in workplace.results(2)} == {"success"}
    assert workplace.jobs().ready == 2


def test_what_does_not_end_in_time_is_given_back(workplace: Workplace, gate: Gate) -> None:
    async def swallow() -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError as error:
            raise ValueError("this is how some libraries answer to a cancel") from error

    functions = (doing(gate.wait), doing(swallow, "Do-Swallow"), doing(lambda: None, "Do-Nothing"))
    workplace.send(workplace.job(), workplace.job("Do-Swallow"), workplace.job("Do-Nothing"))
    with workplace.working(*functions, grace_seconds=1) as working:
        gate.until_entered(2)
        assert workplace.result().function_name == "Do-Nothing"
        began = time.monotonic()
        working.host.stop()
        working.join()
        assert time.monotonic() - began < 2
    assert workplace.no_results()
    given_back = workplace.take()
    assert [each.delivery_count for each in given_back] == [2, 2]


def test_a_thread_that_does_not_end_is_given_back_and_not_waited_for(workplace: Workplace) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def do() -> None:
        begun.set()
        go_on.wait(SECONDS)

    workplace.send(workplace.job())
    with workplace.working(doing(do), grace_seconds=0.5) as working:
        assert begun.wait(SECONDS)
        working.host.stop()
        working.join()
        assert len(workplace.take()) == 1
        go_on.set()
    assert workplace.no_results()


def test_told_twice_it_ends_at_once(workplace: Workplace, gate: Gate) -> None:
    workplace.send(workplace.job())
    with workplace.working(doing(gate.wait), grace_seconds=600) as working:
        gate.until_entered()
        working.host.stop()
        working.host.stop()
        working.join()
    assert workplace.no_results()
    assert len(workplace.take()) == 1


def test_told_before_it_begins_it_ends(workplace: Workplace) -> None:
    host = workplace.host(doing(lambda: None))
    host.stop()
    assert host.run() == "stopped"


# Without a bus -------------------------------------------------------------------------------------------------------


class Flaky(EmbeddedBus):
    """Refuses transactions as long as it is away; after a commit too, when told so."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.refuse = self.refuse_after = 0
        self.refused = threading.Semaphore(0)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        if self.refuse:
            self._refuse("refuse")
        with super().transaction() as tx:
            yield tx
        if self.refuse_after and threading.current_thread().name.startswith("clerk"):
            self._refuse("refuse_after")

    def _refuse(self, how: str) -> None:
        setattr(self, how, getattr(self, how) - 1)
        self.refused.release()
        raise DatabaseUnavailable("the server is gone")


def test_results_wait_for_a_bus_that_is_away(
    workplace: Workplace, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    bus = Flaky(workplace.database)
    workplace.send(workplace.job())
    with caplog.at_level(logging.WARNING), workplace.working(doing(gate.wait), bus=bus):
        gate.until_entered()
        bus.refuse = 3
        gate.open()
        for _ in range(3):
            assert bus.refused.acquire(timeout=SECONDS)
        assert workplace.result().status == "success"
    assert "the server is gone; trying again in 0.05 s" in caplog.text
    assert "the server is gone; trying again in 0.20 s" in caplog.text
    bus.close()


def test_a_commit_whose_answer_is_lost_reports_once(workplace: Workplace, gate: Gate) -> None:
    bus = Flaky(workplace.database)
    workplace.send(workplace.job())
    with workplace.working(doing(gate.wait), bus=bus):
        gate.until_entered()
        bus.refuse_after = 1
        gate.open()
        assert workplace.result().status == "success"
        assert bus.refused.acquire(timeout=SECONDS)
        bus.wake()
    assert workplace.no_results()
    bus.close()


def test_a_worker_that_cannot_reach_the_bus_still_ends_in_time(workplace: Workplace, gate: Gate) -> None:
    bus = Flaky(workplace.database)
    workplace.send(workplace.job())
    with workplace.working(doing(gate.wait), bus=bus, grace_seconds=1) as working:
        gate.until_entered()
        bus.refuse = 1_000_000
        working.host.stop()
        working.join()
    bus.close()


def test_the_health_of_a_worker_whose_bus_is_away_says_so(workplace: Workplace, gate: Gate) -> None:
    bus = Flaky(workplace.database)
    with workplace.working(doing(gate.wait), bus=bus) as working:
        bus.refuse = 4
        workplace.send(workplace.job())
        bus.wake()
        reasons: Any = ()
        ends = time.monotonic() + SECONDS
        while not any("the server is gone" in each for each in reasons):
            assert time.monotonic() < ends
            reasons = working.host.health().reasons
        gate.until_entered()
        gate.open()
        workplace.result()
    bus.close()
