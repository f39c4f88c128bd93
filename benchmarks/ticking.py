"""One measurement of the scheduler in a process of its own: `python -m benchmarks.ticking '<assignment>'`."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks import machine
from benchmarks.product import Watched
from matoolkit.batches.announcing import Announcer
from matoolkit.bus import EmbeddedBus, Names
from matoolkit.clock import ManualClock
from matoolkit.hosts.sources import source_settings
from matoolkit.scheduler import Scheduler
from matoolkit.scheduler.sources import open_source
from matoolkit.store import runbooks
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGED = 100
_NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)
_COLUMNS = ("UserPrincipalName", "DisplayName", "Department", "Office", "EmployeeId", "Licensed", "MovesAt")
_QUERY = f"SELECT {', '.join(_COLUMNS)} FROM people"
_RUNBOOK = f"""
name: tick
data_source:
  type: sql
  connection: SQL_TICK
  query: {_QUERY}
  primary_key: UserPrincipalName
  batch_time_column: MovesAt
phases:
  - name: move
    offset: T-0
    steps:
      - {{name: move, worker_id: worker-01, function: Move-It, params: {{Who: "{{{{UserPrincipalName}}}}"}}}}
"""
_LISTED = "SELECT member_key_folded, data_json FROM batch_members WHERE batch_id = 1 AND status = 'active'"


class Assignment(msgspec.Struct, frozen=True):
    """What a process measures, in an empty migrated database."""

    url: str
    source: str
    members: int
    repeat: int


class Findings(msgspec.Struct):
    """What it found: seconds, and the most memory it held at any time."""

    creation: float = 0.0
    plain: list[float] = []
    unchanged: list[float] = []
    changed: list[float] = []
    longest: float = 0.0
    peak_mb: float | None = None


def main(assignment: Assignment) -> Findings:
    """Make the people, have them found, then measure ticks and the plain script in turns."""
    findings = Findings()
    _make_people(assignment)
    database = open_database(assignment.url)
    watched = Watched(database)
    clock = ManualClock(_NOW)
    bus = EmbeddedBus(database, clock)
    environment = {"SQL_TICK": in_file(Path(assignment.source)).render_as_string(hide_password=False)}
    settings = source_settings(environment)
    scheduler = Scheduler(watched, Announcer(bus), clock, lambda source: open_source(source, settings), me="benchmark")
    with database.transaction() as tx:
        bus.declare(tx, Names().topology())
        runbooks.publish(tx, name="tick", yaml_content=_RUNBOOK, now=_NOW, by="benchmark")

    def tick() -> None:
        clock.advance(minutes=5)
        scheduler.beat()
        scheduler.tick()

    findings.creation = _seconds(tick)
    _insist(database, assignment.members)
    tick()
    for number in range(assignment.repeat):
        # In turns, so that a busy moment of the machine does not fall on one of them alone.
        findings.plain.append(_seconds(lambda: _plain(assignment)))
        findings.unchanged.append(_seconds(tick))
        _change(assignment, number)
        findings.changed.append(_seconds(tick))
    _insist(database, assignment.members)
    # On its own, so that the plain script's memory is not in it.
    machine.reset_peak_memory()
    tick()
    findings.peak_mb = machine.peak_memory_mb()
    findings.longest = max(watched.longest.values())
    return findings


def _plain(assignment: Assignment) -> int:
    """What anybody would write: read both, and compare each row as JSON."""
    listed = dict(_listed(assignment.url))
    differing = 0
    with closing(sqlite3.connect(assignment.source)) as source:
        for row in source.execute(_QUERY):
            data = json.dumps(dict(zip(_COLUMNS, row, strict=True)), separators=(",", ":"), ensure_ascii=False)
            differing += listed.get(row[0].casefold()) != data
    if differing > CHANGED:
        raise AssertionError(f"{differing} rows differ")
    return differing


def _listed(url: str) -> list[Any]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(_LISTED).fetchall()
    import psycopg

    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1)) as connection:
        return connection.execute(_LISTED).fetchall()


def _make_people(assignment: Assignment) -> None:
    date = (_NOW + timedelta(days=30)).isoformat()
    rows = (
        (f"user{number}@contoso.example", f"Ada Lovelace {number}", "Research", "Zürich", number, None, date)
        for number in range(assignment.members)
    )
    with closing(sqlite3.connect(assignment.source)) as source, source:
        source.execute(f"CREATE TABLE people ({', '.join(_COLUMNS)})")
        source.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(_COLUMNS))})", rows)


def _change(assignment: Assignment, number: int) -> None:
    with closing(sqlite3.connect(assignment.source)) as source, source:
        source.execute(
            "UPDATE people SET Department = ? WHERE EmployeeId % (? / ?) = 0",
            (f"Department {number}", assignment.members, CHANGED),
        )


def _insist(database: Any, members: int) -> None:
    with database.reading() as tx:
        found = tx.connection.exec_driver_sql("SELECT status, count(*) FROM batch_members GROUP BY status").all()
    if [tuple(row) for row in found] != [("active", members)]:
        raise AssertionError(f"the members are {found}")


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    print(msgspec.json.encode(main(msgspec.json.decode(sys.argv[1], type=Assignment))).decode(), flush=True)
