"""The engine as a whole, held against the raw limits and against itself: its speed, its memory, and who waits for whom.

A "step" is a no-op step of a member, through all of it: phase due, job, worker, result, next step. Each run has a
process of its own; `benchmarks.wave` is what happens there.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec
import psycopg

from benchmarks.report import Measurement, Quantity, Target
from benchmarks.wave import Assignment, Findings, Task
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks import Plan

RAW = {"sqlite": ("executemany", 1 / 2, 10_000), "postgresql": ("copy and unnest", 1 / 3, 5_000)}
"""For each store: the raw style it is held against, what part of that is wanted, and the mark in steps a second."""
SETTINGS = {"sqlite": "WAL, synchronous=FULL", "postgresql": "fsync=on, synchronous_commit=on"}
MEDIUM = 10_000
SMALL_MB, LARGE_MB = 60, 300
LARGE_COST, LONE_COST = 1.2, 2
LONGEST_MS, LONE_WAIT_MS = 1000, 1000
GROWTH = 1.1
_ROOT = Path(__file__).parent.parent
_LONGEST_RUN = 900


def engine(plan: Plan) -> Iterator[Measurement]:
    """Everything that is promised of the engine, on each store."""
    for store in plan.stores:
        yield from _waves(plan, store)
        yield from _lone_members(plan, store)
        yield from _start(plan, store)


def _waves(plan: Plan, store: str) -> Iterator[Measurement]:
    """From the wave of the plan to the large one: speed, cost a step, memory."""
    style, part, mark = RAW[store]
    small = f"engine/{store}/{plan.members:,} members"
    runs = [_run(plan, store, Task.WAVE, plan.members) for _ in range(plan.repeat)]
    seconds = [second for each in runs for second in each.seconds]
    yield Measurement(
        small,
        store,
        SETTINGS[store],
        plan.total_steps,
        seconds,
        median(each.peak_mb - each.base_mb for each in runs),
        (Target(part, f"raw/{store}/{style}"), Target(mark), Target(SMALL_MB, quantity=Quantity.MEMORY)),
    )
    large = plan.large[store]
    for members in sorted({MEDIUM, large} if large > MEDIUM else {large}):
        found = _run(plan, store, Task.WAVE, members)
        cost = Target(LARGE_COST if members == large else None, small, Quantity.TIME)
        memory = Target(LARGE_MB if members == large else None, quantity=Quantity.MEMORY)
        name = f"engine/{store}/{members:,} members"
        above, steps = found.peak_mb - found.base_mb, members * plan.steps
        yield Measurement(name, store, SETTINGS[store], steps, found.seconds, above, (cost, memory))
        if members == large:
            at = [f"{name}, memory at {share} of the results" for share in ("a quarter", "all")]
            growth = Target(GROWTH, at[0], Quantity.MEMORY)
            yield Measurement(at[0], store, SETTINGS[store], steps // 4, found.seconds, found.quarter_mb)
            yield Measurement(at[1], store, SETTINGS[store], steps, found.seconds, found.end_mb, (growth,))
            yield _longest(f"{name}, longest transaction", store, found)


def _lone_members(plan: Plan, store: str) -> Iterator[Measurement]:
    """Nothing to batch: every step pays for its transactions alone."""
    runs = [_run(plan, store, Task.LONE, 1) for _ in range(plan.repeat)]
    target = Target(LONE_COST, f"raw/{store}/lone member", Quantity.TIME)
    seconds = [median(each.seconds) for each in runs]
    yield Measurement(f"engine/{store}/lone member", store, SETTINGS[store], plan.steps, seconds, None, (target,))


def _start(plan: Plan, store: str) -> Iterator[Measurement]:
    """A phase of many members starts: how long its transactions are, and how long others wait."""
    members = plan.large[store]
    found = _run(plan, store, Task.START, members)
    name = f"engine/{store}/start of {members:,} members"
    yield Measurement(name, store, SETTINGS[store], members, [found.start], None)
    yield _longest(f"{name}, longest transaction", store, found)
    waits = (Target(LONE_WAIT_MS / plan.steps, quantity=Quantity.TIME),)
    name = f"{name}, lone member meanwhile"
    yield Measurement(name, store, SETTINGS[store], plan.steps, found.seconds, None, waits)


def _longest(name: str, store: str, found: Findings) -> Measurement:
    target = Target(LONGEST_MS, quantity=Quantity.TIME)
    return Measurement(name, store, SETTINGS[store], 1, [found.longest], None, (target,))


_numbers = count(1)


def _run(plan: Plan, store: str, task: Task, members: int) -> Findings:
    """One run on a new database, in a process of its own."""
    file = plan.folder / f"engine-{next(_numbers)}.sqlite"
    url = in_file(file) if store == "sqlite" else emptied(plan.postgresql_url or "")
    database = open_database(url)
    migrate(database)
    database.close()
    assignment = Assignment(task, str(url), members, plan.steps)
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.wave", msgspec.json.encode(assignment)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        timeout=_LONGEST_RUN,
        check=True,
    )
    for left in plan.folder.glob(f"{file.name}*"):
        left.unlink()
    found = msgspec.json.decode(process.stdout, type=Findings)
    seconds = f"{sum(found.seconds):.2f} s" + (f", {found.cpu:.2f} s of a processor" if found.cpu else "")
    print(f"  {store}, {task} of {members:,}: {seconds}", file=sys.stderr, flush=True)
    return found


def emptied(url: str) -> str:
    """The URL for SQLAlchemy of a database with nothing in it, and nothing left to write from what was."""
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SHOW fsync").fetchone() != ("on",):
            raise RuntimeError("these figures mean nothing with fsync off")
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        connection.execute("CHECKPOINT")
    return url.replace("postgresql://", "postgresql+psycopg://", 1)
