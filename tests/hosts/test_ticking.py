"""The scheduler's threads: a source that hangs delays nobody, and nothing piles up."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from matoolkit.batches.announcing import Announcer
from matoolkit.bus import EmbeddedBus, Names
from matoolkit.clock import ManualClock
from matoolkit.hosts.ticking import Ticking
from matoolkit.scheduler import Scheduler
from matoolkit.scheduler.sources import Chunk
from matoolkit.store import runbooks
from matoolkit.store.schema import batch_members, batches
from matoolkit.store.schema import runbooks as runbooks_table
from tests.orchestrator.runbooks import runbook

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from matoolkit.runbooks.model import DataSource
    from matoolkit.store.database import Database

NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)
_SOON = 20.0
"""Seconds after which something that must happen is taken not to."""


@dataclass
class Tap:
    """A source that answers when it is let."""

    open: Event = field(default_factory=Event)
    asked: Event = field(default_factory=Event)
    times: int = 0
    keys: list[str] = field(default_factory=lambda: ["a"])

    def read(self) -> Generator[Chunk]:
        self.times += 1
        rows = [(key, NOW + timedelta(hours=2)) for key in self.keys]
        self.asked.set()
        assert self.open.wait(_SOON)
        yield Chunk(("Key", "Start"), rows)


class House:
    """A scheduler with two runbooks, one of whose sources may hang."""

    def __init__(self, database: Database, **ticking: Any) -> None:
        self.database, self.clock = database, ManualClock(NOW)
        self.taps = {"SQL_FAST": Tap(), "SQL_SLOW": Tap()}
        self.taps["SQL_FAST"].open.set()
        bus = EmbeddedBus(database, self.clock)
        self.scheduler = Scheduler(database, Announcer(bus), self.clock, self._open, me="house")
        self.ticking = Ticking(self.scheduler, **{"beat_seconds": 0.01, **ticking})
        with database.transaction() as tx:
            bus.declare(tx, Names().topology())
            for name in ("fast", "slow"):
                text = runbook({"move T-0": ["copy"]})
                text = text.replace("name: wave", f"name: {name}").replace("SQL_WAVES", f"SQL_{name.upper()}")
                runbooks.publish(tx, name=name, yaml_content=text, now=NOW, by="anna")

    def _open(self, data_source: DataSource) -> Tap:
        return self.taps[data_source.connection]

    def turn(self, until: Callable[[], bool]) -> None:
        """Let the loop go round until something is so."""
        for _ in range(2_000):
            if until():
                return
            self.ticking.work()
        raise AssertionError("it never came to that")

    def rows(self, table: Any) -> list[Any]:
        with self.database.reading() as tx:
            return list(tx.connection.execute(table.select().order_by(table.c.id)))

    def error(self, name: str) -> str | None:
        found: dict[str, str | None] = {row.name: row.last_error for row in self.rows(runbooks_table)}
        return found[name]

    def tick(self) -> None:
        """Five minutes pass, and a tick is due."""
        self.clock.advance(minutes=5)
        self.ticking.beat()


@pytest.fixture
def house(sqlite_database: Database) -> House:
    return House(sqlite_database)


def test_a_hung_source_delays_nobody_else(house: House) -> None:
    slow = house.taps["SQL_SLOW"]
    house.tick()
    house.turn(lambda: len(house.rows(batches)) == 1)
    assert not slow.open.is_set()
    house.taps["SQL_FAST"].keys.append("b")
    house.tick()
    house.turn(lambda: len(house.rows(batch_members)) == 2)
    assert slow.times == 1, "a source that has not answered is not asked again"
    slow.open.set()
    house.turn(lambda: len(house.rows(batches)) == 2)


def test_a_hung_source_delays_no_due_phase(house: House) -> None:
    house.taps["SQL_SLOW"].open.set()
    house.tick()
    house.turn(lambda: len(house.rows(batches)) == 2)
    house.taps["SQL_SLOW"].open.clear()
    house.taps["SQL_SLOW"].asked.clear()
    house.tick()
    house.turn(house.taps["SQL_SLOW"].asked.is_set)
    house.clock.advance(hours=2)
    house.ticking.beat()
    from matoolkit.store.schema import phase_executions

    assert [row.status for row in house.rows(phase_executions)] == ["dispatched", "dispatched"]
    house.taps["SQL_SLOW"].open.set()


def test_a_source_that_does_not_answer_in_time_is_reported_and_its_late_answer_not_used(
    sqlite_database: Database,
) -> None:
    house = House(sqlite_database, patience_seconds=0.0)
    slow = house.taps["SQL_SLOW"]
    del house.taps["SQL_FAST"].keys[:]
    house.tick()
    house.turn(lambda: house.error("slow") is not None)
    assert house.error("slow") == "the data source was not read: no answer after 0 seconds"
    slow.open.set()
    house.turn(lambda: not house.ticking._asked)
    assert house.rows(batches) == []
    assert house.error("slow") is not None


def test_ticks_that_come_due_while_one_is_under_way_are_one(house: House) -> None:
    house.taps["SQL_SLOW"].open.set()
    for _ in range(5):
        house.tick()
    house.turn(lambda: len(house.rows(batches)) == 2)
    house.turn(lambda: not house.ticking._asked)
    assert {tap.times for tap in house.taps.values()} == {1}


def test_a_source_is_asked_on_a_thread_of_its_own(house: House) -> None:
    house.tick()
    worker = Thread(target=lambda: house.turn(lambda: len(house.rows(batches)) == 1))
    worker.start()
    worker.join(_SOON)
    assert not worker.is_alive()
    assert house.taps["SQL_SLOW"].asked.wait(_SOON)
    house.taps["SQL_SLOW"].open.set()


def test_who_does_not_lead_asks_nobody(house: House, sqlite_database: Database) -> None:
    other = House.__new__(House)
    other.__dict__ |= house.__dict__
    house.tick()
    bus = EmbeddedBus(sqlite_database, house.clock)
    second = Ticking(Scheduler(sqlite_database, Announcer(bus), house.clock, house._open, me="second"), 0.01)
    second.beat()
    second.work()
    assert all(tap.times == 0 for tap in house.taps.values())


def test_called_by_a_timer_a_tick_is_seen_to_its_end(house: House) -> None:
    house.taps["SQL_SLOW"].open.set()
    house.clock.advance(minutes=5)
    house.ticking.once(lambda: None)
    assert len(house.rows(batches)) == 2
    asked = [tap.times for tap in house.taps.values()]
    house.ticking.once(lambda: None)
    assert [tap.times for tap in house.taps.values()] == asked, "no tick is due yet"


def test_called_by_a_timer_a_hung_source_holds_the_call_for_its_time_and_no_longer(sqlite_database: Database) -> None:
    house, between = House(sqlite_database, patience_seconds=0.5), []
    house.clock.advance(minutes=5)
    house.ticking.once(lambda: between.append(len(house.rows(batches))))
    assert between[-1] == 1, "what the other source said was applied"
    assert len(between) > 3, "what is published meanwhile is sent meanwhile"
    house.ticking.once(lambda: None)
    assert "no answer after 0.5 seconds" in (house.error("slow") or "")
    house.taps["SQL_SLOW"].open.set()
