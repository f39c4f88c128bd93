"""What the plain drivers reach with the row writes of a step and no engine: the limit an engine is held against.

A step costs seven row writes: its row of 13 columns, with two indexes, is inserted and updated twice; its job message
and its result message are inserted and deleted. 500 steps share three transactions: made and dispatched; run by the
worker (job out, result in); result taken. Making the rows is not timed; putting them into a statement's shape is.
"""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Callable
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from benchmarks.report import take_turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks import Plan
    from benchmarks.report import Measurement, Run

Rows = list[tuple[object, ...]]
Columns = tuple[tuple[str, str], ...]

BATCH = 500
ALONE_STEPS, ALONE_WARM_UP = 500, 50
LONE_MEMBERS, LONE_STEPS = 30, 5


def _columns(names_and_types: str) -> Columns:
    return tuple((name, kind) for name, kind in (pair.split() for pair in names_and_types.split(", ")))


STEPS = _columns(
    "id bigint, phase_execution_id bigint, batch_member_id bigint, step_name text, step_index bigint, worker_id text, "
    "function_name text, params_json text, status text, job_id text, result_json text, dispatched_at timestamptz, "
    "completed_at timestamptz"
)
MESSAGES = _columns("id bigint, message_id text, topic text, worker_id text, body text, enqueued_at timestamptz")
DISPATCHED = _columns(
    "status text, function_name text, params_json text, job_id text, dispatched_at timestamptz, id bigint"
)
FINISHED = _columns("status text, result_json text, completed_at timestamptz, id bigint")
SETTINGS = {"sqlite": "WAL, synchronous=FULL", "postgresql": "fsync=on, synchronous_commit=on"}
WRITTEN = "SELECT count(*), (SELECT count(*) FROM messages) FROM steps WHERE status = 'succeeded' AND job_id > ''"
INDEXES = {"by_phase": "phase_execution_id, batch_member_id, step_index", "by_member": "batch_member_id, status"}


class Style(StrEnum):
    """How the rows of a batch reach the database."""

    ALONE = "one at a time"
    EXECUTEMANY = "executemany"
    VALUES = "values"
    JSON_EACH = "json_each"
    UNNEST = "unnest"
    UNNEST_BINARY = "unnest, binary"
    COPY = "copy and unnest"
    JSONB_TO_RECORDSET = "jsonb_to_recordset"
    JSON_TO_RECORDSET = "json_to_recordset"
    JSON_ARRAY_ELEMENTS = "json_array_elements"


ROW_BY_ROW = (Style.ALONE, Style.EXECUTEMANY)
RECORDSETS = (Style.JSONB_TO_RECORDSET, Style.JSON_TO_RECORDSET)
ARRAYS = (Style.UNNEST, Style.UNNEST_BINARY, Style.COPY)
BATCH_STYLES = {
    "sqlite": (Style.EXECUTEMANY, Style.VALUES, Style.JSON_EACH),
    "postgresql": tuple(style for style in Style if style not in (Style.ALONE, Style.JSON_EACH)),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of some steps, the same for the same numbers."""

    steps: Rows = field(default_factory=list)
    jobs: Rows = field(default_factory=list)
    dispatched: Rows = field(default_factory=list)
    results: Rows = field(default_factory=list)
    finished: Rows = field(default_factory=list)


def make_batch(first: int, count: int, members: int) -> Batch:
    """Steps `first` to `first + count` of a wave in which every member takes its first step before any its second."""
    batch = Batch()
    for number in range(first, first + count):
        index, member = divmod(number, members)
        job_id = f"{number:08x}-5f0e-4d6c-9a51-{member:012x}"
        when = f"2026-03-01 08:{number // 60 % 60:02}:{number % 60:02}.125000+00:00"
        function, user = "Set-ExchangeMailboxPlan", f"member-{member:06}@target.example.com"
        parameters = f'{{"UserPrincipalName":"{user}","MailboxPlan":"ExchangeOnlineEnterprise","Region":"EUR"}}'
        result = f'{{"mailboxGuid":"{job_id}","changed":true}}'
        envelope = (
            f'{{"jobId":"{job_id}","batchId":12,"stepExecutionId":{number},"phaseExecutionId":7,"batchMemberId":{member},'
            f'"functionName":"{function}","idempotencyKey":"step-{number}","firstDispatchedAt":"{when}",'
        )
        job, answer = f'{envelope}"parameters":{parameters}}}', f'{envelope}"status":"Success","result":{result}}}'
        step = (number, 7, member, f"step-{index}", index, "worker-01", function, parameters, "pending")
        batch.steps.append((*step, None, None, None, None))
        batch.jobs.append((2 * number, f"job-{job_id}", "worker-jobs", "worker-01", job, when))
        batch.dispatched.append(("dispatched", function, parameters, job_id, when, number))
        batch.results.append((2 * number + 1, f"result-{job_id}", "worker-results", "worker-01", answer, when))
        batch.finished.append(("succeeded", result, when, number))
    return batch


class Writer:
    """Writes rows over one connection (of either driver: what is used here, they have in common) in one style."""

    def __init__(self, connection: Any, style: Style) -> None:
        self.connection, self.style = connection, style
        self.mark = "?" if isinstance(connection, sqlite3.Connection) else "%s"

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN")
        yield
        self.connection.execute("COMMIT")

    def insert(self, table: str, columns: Columns, rows: Rows) -> None:
        names = ", ".join(name for name, _ in columns)
        if self.style is Style.COPY:
            with self.connection.cursor().copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        elif self.style in ROW_BY_ROW:
            self._each(f"INSERT INTO {table} ({names}) VALUES ({', '.join([self.mark] * len(columns))})", rows)
        else:
            self._together(f"INSERT INTO {table} ({names}) SELECT {names} FROM", "", columns, rows)

    def update_steps(self, columns: Columns, rows: Rows) -> None:
        """The last column is the step's id."""
        names = [name for name, _ in columns[:-1]]
        if self.style in ROW_BY_ROW:
            changes = ", ".join(f"{name} = {self.mark}" for name in names)
            self._each(f"UPDATE steps SET {changes} WHERE id = {self.mark}", rows)
        else:
            changes = ", ".join(f"{name} = r.{name}" for name in names)
            self._together(f"UPDATE steps SET {changes} FROM", "WHERE steps.id = r.id", columns, rows)

    def delete_messages(self, messages: Rows) -> None:
        ids: Rows = [(message[0],) for message in messages]
        if self.style in ROW_BY_ROW:
            self._each(f"DELETE FROM messages WHERE id = {self.mark}", ids)
        else:
            self._together("DELETE FROM messages WHERE id IN (SELECT id FROM", ")", STEPS[:1], ids)

    def _each(self, sql: str, rows: Rows) -> None:
        if self.style is Style.EXECUTEMANY:
            self.connection.cursor().executemany(sql, rows)
        else:
            self.connection.execute(sql, *rows)

    def _together(self, before: str, after: str, columns: Columns, rows: Rows) -> None:
        relation = _relation(self.style, columns, len(rows), self.mark)
        self.connection.execute(f"{before} {relation} {after}", _parameters(self.style, columns, rows))


@cache
def _relation(style: Style, columns: Columns, count: int, mark: str) -> str:
    """The rows as a table `r` within a statement, made of the parameters that `_parameters` gives."""
    names = ", ".join(name for name, _ in columns)
    if style in ARRAYS:
        mark = "%s" if style is Style.UNNEST else "%b"
        return f"unnest({', '.join(f'{mark}::{kind}[]' for _, kind in columns)}) AS r ({names})"
    if style in RECORDSETS:
        typed = ", ".join(f"{name} {kind}" for name, kind in columns)
        return f"{style}({mark}::{style.partition('_')[0]}) AS r ({typed})"
    if style in (Style.JSON_ARRAY_ELEMENTS, Style.JSON_EACH):
        cast = "{}" if style is Style.JSON_EACH else "({})::{}"
        fields = ", ".join(
            cast.format(f"value->>{at}", kind) + f" AS {name}" for at, (name, kind) in enumerate(columns)
        )
        return f"(SELECT {fields} FROM {style}({mark}{'' if style is Style.JSON_EACH else '::json'})) AS r"
    fields = ", ".join(f"column{index} AS {name}" for index, (name, _) in enumerate(columns, 1))
    marks = ", ".join(mark if mark == "?" else f"{mark}::{kind}" for _, kind in columns)
    return f"(SELECT {fields} FROM (VALUES {', '.join([f'({marks})'] * count)}) AS v) AS r"


def _parameters(style: Style, columns: Columns, rows: Rows) -> Sequence[object]:
    if style in ARRAYS:
        return [list(column) for column in zip(*rows, strict=True)]
    if style in RECORDSETS:
        names = [name for name, _ in columns]
        return [msgspec.json.encode([dict(zip(names, row, strict=True)) for row in rows]).decode()]
    if style in (Style.JSON_ARRAY_ELEMENTS, Style.JSON_EACH):
        return [msgspec.json.encode(rows).decode()]
    return list(chain.from_iterable(rows))


Work = Callable[[Writer, Batch], float]


def write_batch(writer: Writer, batch: Batch) -> float:
    """Seconds for the seven row writes of each step, in three transactions."""
    start = time.perf_counter()
    with writer.transaction():
        writer.insert("steps", STEPS, batch.steps)
        writer.insert("messages", MESSAGES, batch.jobs)
        writer.update_steps(DISPATCHED, batch.dispatched)
    with writer.transaction():
        writer.delete_messages(batch.jobs)
        writer.insert("messages", MESSAGES, batch.results)
    with writer.transaction():
        writer.delete_messages(batch.results)
        writer.update_steps(FINISHED, batch.finished)
    return time.perf_counter() - start


def insert_jobs(writer: Writer, batch: Batch) -> float:
    """Seconds for the one statement, its commit left out."""
    with writer.transaction():
        start = time.perf_counter()
        writer.insert("messages", MESSAGES, batch.jobs)
        return time.perf_counter() - start


def dispatch_steps(writer: Writer, batch: Batch) -> float:
    """Seconds for the one statement, its commit and the making of the steps left out."""
    with writer.transaction():
        Writer(writer.connection, Style.EXECUTEMANY).insert("steps", STEPS, batch.steps)
        start = time.perf_counter()
        writer.update_steps(DISPATCHED, batch.dispatched)
        return time.perf_counter() - start


@contextmanager
def _connected(plan: Plan, store: str) -> Iterator[Any]:
    """A connection as durable as the product's, on empty tables."""
    if store == "sqlite":
        connection: Any = sqlite3.connect(plan.folder / "raw.sqlite", isolation_level=None)
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    else:
        connection = psycopg.connect(plan.postgresql_url or "", autocommit=True)
        if connection.execute("SHOW fsync").fetchone() != ("on",):
            raise RuntimeError("these figures mean nothing with fsync off")
    for table, columns in (("steps", STEPS), ("messages", MESSAGES)):
        kinds = ", ".join(f"{name} {kind}" for name, kind in columns)
        kinds = kinds.replace("bigint", "INTEGER").replace("timestamptz", "TEXT") if store == "sqlite" else kinds
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"CREATE TABLE {table} ({kinds}, PRIMARY KEY (id))")
    for name, columns_of_index in INDEXES.items():
        connection.execute(f"CREATE INDEX {name} ON steps ({columns_of_index})")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)" if store == "sqlite" else "CHECKPOINT")
    with closing(connection):
        yield connection


def raw_limits(plan: Plan) -> Iterator[Measurement]:
    """Steps a second in each style; and what the steps of one lone member cost, each in three transactions."""
    alone = min(plan.total_steps, ALONE_STEPS)
    for store in plan.stores:
        runs = _in_each_style(plan, store, write_batch)
        runs[Style.ALONE] = alone, partial(_times, plan, store, write_batch, Style.ALONE, alone)
        runs["lone member"] = LONE_STEPS, partial(_lone_member, plan, store)
        yield from take_turns(f"raw/{store}", store, SETTINGS[store], runs, repeat=plan.repeat, ratio_to="executemany")


def parameter_styles(plan: Plan) -> Iterator[Measurement]:
    """What it takes to pass 500 rows of six columns to one statement: a "step" is a row here."""
    for store in plan.stores:
        for verb, work in (("insert", insert_jobs), ("update", dispatch_steps)):
            name, runs = f"rows/{store}/{verb}", _in_each_style(plan, store, work)
            yield from take_turns(name, store, SETTINGS[store], runs, repeat=plan.repeat, ratio_to="executemany")


def _in_each_style(plan: Plan, store: str, work: Work) -> dict[str, tuple[int, Run]]:
    steps = plan.total_steps
    return {style: (steps, partial(_times, plan, store, work, style, steps)) for style in BATCH_STYLES[store]}


def _lone_member(plan: Plan, store: str) -> list[float]:
    """The median member's seconds, of several that come one after another."""
    times = _times(plan, store, write_batch, Style.ALONE, LONE_MEMBERS * LONE_STEPS)
    return [statistics.median(sum(times[first : first + LONE_STEPS]) for first in range(0, len(times), LONE_STEPS))]


def _times(plan: Plan, store: str, work: Work, style: Style, steps: int) -> list[float]:
    """Seconds for each batch of those that make up `steps`, the warm-up done and left out."""
    size, warm_up = (1, ALONE_WARM_UP) if style is Style.ALONE else (BATCH, BATCH)
    end = warm_up + steps
    with _connected(plan, store) as connection:
        batches = (make_batch(first, min(size, end - first), plan.members) for first in range(0, end, size))
        times = [work(Writer(connection, style), batch) for batch in batches]
        succeeded, left = connection.execute(WRITTEN).fetchone()
    if work is write_batch and (succeeded, left) != (end, 0):
        raise AssertionError(f"{style}: {succeeded} of {end} steps succeeded, {left} messages are left")
    return times[warm_up // size :]
