"""A tick of the scheduler over members who are there already, held against a plain script that compares the same rows.

Each run has a process of its own; `benchmarks.ticking` is what happens there.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from benchmarks.engine import LONGEST_MS, SETTINGS, emptied
from benchmarks.report import Measurement, Quantity, Target
from benchmarks.ticking import CHANGED, Assignment, Findings
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks import Plan

SIZES = (1_000, 10_000, 100_000)
UNCHANGED_COST, CHANGED_COST, MOST_MB = 3, 1.2, 400
_ROOT = Path(__file__).parent.parent
_LONGEST_RUN = 900
_numbers = count(1)


def tick(plan: Plan) -> Iterator[Measurement]:
    """Everything that is promised of a tick, on each store; the store is the product's, the source is SQLite always."""
    for store in plan.stores:
        for members in SIZES:
            yield from _at(plan, store, members)


def _at(plan: Plan, store: str, members: int) -> Iterator[Measurement]:
    found = _run(plan, store, members)
    wanted = members == SIZES[-1]
    plain, name = f"tick/{store}/{members:,} rows, plain script", f"tick/{store}/{members:,} members"
    setting = SETTINGS[store]
    yield Measurement(plain, store, setting, members, found.plain, None)
    cost = Target(UNCHANGED_COST if wanted else None, plain, Quantity.TIME)
    memory = Target(MOST_MB, quantity=Quantity.MEMORY)
    yield Measurement(f"{name}, unchanged", store, setting, members, found.unchanged, found.peak_mb, (cost, memory))
    cost = Target(CHANGED_COST if wanted else None, f"{name}, unchanged", Quantity.TIME)
    yield Measurement(f"{name}, {CHANGED} changed", store, setting, members, found.changed, None, (cost,))
    yield Measurement(f"{name}, found for the first time", store, setting, members, [found.creation], None)
    longest = (Target(LONGEST_MS, quantity=Quantity.TIME),)
    yield Measurement(f"{name}, longest transaction", store, setting, 1, [found.longest], None, longest)


def _run(plan: Plan, store: str, members: int) -> Findings:
    number = next(_numbers)
    file, source = (plan.folder / f"{name}-{number}.sqlite" for name in ("tick", "source"))
    url = in_file(file) if store == "sqlite" else emptied(plan.postgresql_url or "")
    database = open_database(url)
    migrate(database)
    database.close()
    assignment = Assignment(str(url), str(source), members, plan.repeat * 2 + 1)
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.ticking", msgspec.json.encode(assignment)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        timeout=_LONGEST_RUN,
        check=True,
    )
    for left in plan.folder.glob(f"*-{number}.sqlite*"):
        left.unlink()
    found = msgspec.json.decode(process.stdout, type=Findings)
    print(f"  {store}, tick over {members:,}: {median(found.unchanged):.3f} s", file=sys.stderr, flush=True)
    return found
