"""Two at the same time: one stands still at a point of a transaction while the other runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import contextmanager
from enum import Enum, auto
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from matoolkit.bus import EmbeddedBus
from matoolkit.store.database import Database, Transaction, open_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Executable

    from tests.orchestrator.driver import Wave

Action = Callable[["Wave"], object]
_AT_MOST = 20.0
_WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")


class Moment(Enum):
    """Points that every transaction has; others are named by the statement after which they are."""

    BEFORE_COMMIT = auto()
    AFTER_COMMIT = auto()


class Halt:
    """A place where a rival stands still, once, until it is let go."""

    def __init__(self, at: Executable | Moment, passing: int = 0) -> None:
        self._at = at
        self._passing = passing
        self.arrived = Event()
        self.released = Event()

    def reached(self, point: Executable | Moment) -> None:
        """Stand still if this is the place, and it was passed often enough."""
        if point is not self._at or self.arrived.is_set():
            return
        if self._passing:
            self._passing -= 1
            return
        self.arrived.set()
        assert self.released.wait(_AT_MOST)


class HaltingDatabase(Database):
    """The same database through connections of its own."""

    halt: Halt | None = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with super().transaction() as tx:
            run = tx.execute

            def execute(statement: Executable, **parameters: Any) -> Any:
                answer = run(statement, **parameters)
                self._reached(statement)
                return answer

            tx.execute = execute  # type: ignore[method-assign]
            yield tx
            self._reached(Moment.BEFORE_COMMIT)
        self._reached(Moment.AFTER_COMMIT)

    def _reached(self, point: Executable | Moment) -> None:
        if self.halt is not None:
            self.halt.reached(point)


class Duel:
    """A wave, and two who act on it through connections of their own, handling one message at a time."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self._databases = [
            HaltingDatabase(open_database(wave.database.engine.url, durable=False).engine) for _ in range(2)
        ]
        self._rivals: list[Wave] = []

    def begin(self) -> None:
        """From here on the two are there; the first look into the queues, which locks messages, is behind them."""
        for database in self._databases:
            # What was made ready for this kind of database is ready for them too.
            database._prepared = self.wave.database._prepared
            rival = copy.copy(self.wave)
            rival.database, rival.bus = database, EmbeddedBus(database, self.wave.clock)
            rival.boot(set_size=1)
            assert results(rival) + events(rival) == 0, "begin before the messages are sent that are fought for"
            self._rivals.append(rival)

    def fight(self, first: Action, at: Executable | Moment, second: Action, *, passing: int = 0) -> bool:
        """`first` stands still at a point, `second` runs until it is done or has to wait, and both come to their end.

        Whether `second` was done before `first` went on.
        """
        one, other = self._rivals
        database = self._databases[0]
        halt = database.halt = Halt(at, passing)
        failures: list[BaseException] = []
        halted = Thread(target=_noting, args=(failures, first, one))
        passer = Thread(target=_noting, args=(failures, second, other))
        halted.start()
        while halted.is_alive() and not halt.arrived.wait(0.01):
            pass
        assert halt.arrived.is_set(), f"the point was not reached: {failures}"
        passer.start()
        _until_done_or_waiting(passer, self.wave.database)
        was_done = not passer.is_alive()
        halt.released.set()
        for each in (halted, passer):
            each.join(_AT_MOST)
            assert not each.is_alive()
        database.halt = None
        assert failures == []
        return was_done

    def close(self) -> None:
        """Give back the connections."""
        for rival in self._rivals:
            rival.bus.close()
        for database in self._databases:
            database.close()


def results(wave: Wave) -> int:
    """Handle one result."""
    return wave.orchestrators[0].handle_results()


def events(wave: Wave) -> int:
    """Handle one event."""
    return wave.orchestrators[0].handle_events()


def _noting(failures: list[BaseException], action: Action, wave: Wave) -> None:
    try:
        action(wave)
    except BaseException as error:  # noqa: BLE001 - told to the test
        failures.append(error)


def _until_done_or_waiting(thread: Thread, database: Database) -> None:
    """PostgreSQL shows who waits for a lock; on SQLite whoever is not done soon waits for its turn to write."""
    if database.dialect == "sqlite":
        thread.join(0.05)
        return
    end = monotonic() + _AT_MOST
    while thread.is_alive() and monotonic() < end:
        with database.engine.connect() as connection:
            if connection.execute(_WAITING).scalar_one():
                return
        thread.join(0.005)
