"""Loops go on whatever happens, and end when they are told to."""

from __future__ import annotations

import logging
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.bus import EmbeddedBus, Names
from matoolkit.clock import SystemClock
from matoolkit.hosts.loops import Loop, Loops
from matoolkit.store.errors import DatabaseUnavailable, SchemaMismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matoolkit.store.database import Database

SECONDS = 30


class Pauses(Event):
    """Stands in for what a loop waits on, notes how long it would have waited, and lets it go on at once."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        if timeout is not None:
            self.taken.append(timeout)
        return self.is_set()


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def loops(pauses: Pauses) -> Iterator[Loops]:
    made = Loops()
    made._stopping = pauses
    yield made
    assert made.stop(SECONDS)


class Scripted:
    """Work that goes as written, says when all of that is over, and then rests."""

    def __init__(self, *script: int | Exception) -> None:
        self._script = list(script)
        self.done = Event()
        self.rests = 0
        self._resting = Event()

    def work(self) -> int:
        if not self._script:
            self.done.set()
            return 0
        step = self._script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    def rest(self) -> None:
        self.rests += 1
        if self.done.is_set():
            self._resting.wait(SECONDS)

    def end(self) -> None:
        self._resting.set()


def run(loops: Loops, *script: int | Exception) -> Scripted:
    scripted = Scripted(*script)
    loops._wakers.append(scripted.end)
    loops.start(Loop("scripted", scripted.work, scripted.rest))
    assert scripted.done.wait(SECONDS)
    return scripted


def test_rests_only_when_there_was_nothing_to_do(loops: Loops, pauses: Pauses) -> None:
    scripted = run(loops, 3, 1, 0, 2)
    loops.stop(SECONDS)
    assert scripted.rests == 2
    assert pauses.taken == []


def test_goes_on_after_an_error_that_may_be_tried_again_waiting_longer_each_time(
    loops: Loops, pauses: Pauses, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        run(loops, *(DatabaseUnavailable("the server is gone") for _ in range(8)))
    assert pauses.taken == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert "the server is gone; trying again in 0.05 s" in caplog.text


def test_starts_with_the_shortest_pause_again_once_something_went_well(loops: Loops, pauses: Pauses) -> None:
    away = DatabaseUnavailable("the server is gone")
    run(loops, away, away, 1, away)
    assert pauses.taken == [0.05, 0.1, 0.05]


@pytest.mark.parametrize("error", [SchemaMismatch("too old"), ValueError("a fault of the program")])
def test_goes_on_after_any_other_error_and_tells_it_with_its_traceback(
    loops: Loops, pauses: Pauses, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    run(loops, error, 1)
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert pauses.taken == [0.05]


def test_goes_on_when_resting_fails(loops: Loops) -> None:
    rested: SimpleQueue[str] = SimpleQueue()

    def rest() -> None:
        rested.put("tried")
        raise DatabaseUnavailable("the server is gone")

    loops.start(Loop("restless", lambda: 0, rest))
    assert [rested.get(timeout=SECONDS) for _ in range(3)] == ["tried"] * 3


def test_a_pause_is_short_again_once_work_went_well_however_long_the_rest_after_it(
    loops: Loops, pauses: Pauses
) -> None:
    away = DatabaseUnavailable("the server is gone")
    script: list[int | Exception] = [away, away, 0, away, 1]
    done = Event()

    def work() -> int:
        step = script.pop(0) if script else 1
        if not script:
            done.set()
        if isinstance(step, Exception):
            raise step
        return step

    def rest() -> None:
        raise away

    loops.start(Loop("restless", work, rest))
    assert done.wait(SECONDS)
    assert pauses.taken[:4] == [0.05, 0.1, 0.05, 0.1]


def test_stop_ends_every_loop_and_what_waits_at_an_interval(loops: Loops) -> None:
    began: SimpleQueue[str] = SimpleQueue()
    loops._stopping = Event()
    loops.every("hourly", 3600, lambda: began.put("hourly"))
    loops.every("daily", 86400, lambda: began.put("daily"))
    assert {began.get(timeout=SECONDS), began.get(timeout=SECONDS)} == {"hourly", "daily"}
    assert loops.stop(SECONDS)
    assert loops.stopping
    assert began.empty()


def test_stop_ends_a_pause_after_an_error() -> None:
    loops, failed = Loops(), Event()

    def fail() -> int:
        failed.set()
        raise DatabaseUnavailable("the server is gone")

    loops.start(Loop("failing", fail, lambda: None))
    assert failed.wait(SECONDS)
    assert loops.stop(SECONDS)


def test_stop_tells_when_a_loop_does_not_end() -> None:
    loops, began, let_go = Loops(), Event(), Event()

    def hang() -> int:
        began.set()
        let_go.wait(SECONDS)
        return 0

    loops.start(Loop("hanging", hang, lambda: None))
    assert began.wait(SECONDS)
    assert not loops.stop(0.01)
    let_go.set()
    assert loops.stop(SECONDS)


def test_stop_wakes_who_waits_for_messages(database: Database) -> None:
    bus, names = EmbeddedBus(database, SystemClock()), Names()
    with database.transaction() as tx:
        bus.declare(tx, names.topology())
    subscription = names.topology().subscriptions[0].subscription
    waiting: SimpleQueue[str] = SimpleQueue()
    loops = Loops()
    for name in ("first", "second"):
        loops.consume(name, _nothing(waiting, name), bus, [subscription])
    assert {waiting.get(timeout=SECONDS), waiting.get(timeout=SECONDS)} == {"first", "second"}
    assert loops.stop(SECONDS)


def _nothing(waiting: SimpleQueue[str], name: str) -> Callable[[], int]:
    def work() -> int:
        waiting.put(name)
        return 0

    return work


def test_a_loop_does_not_keep_the_process_alive(loops: Loops, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    def thread(**settings: Any) -> Thread:
        made.append(settings)
        return Thread(**settings)

    monkeypatch.setattr("matoolkit.hosts.loops.Thread", thread)
    run(loops)
    assert [settings["daemon"] for settings in made] == [True]
