"""A wave on functions that count how often they are begun, and what must come of it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

FUNCTIONS = Path(__file__).parent / "functions"
RUNBOOK = """
name: wave
data_source:
  type: sql
  connection: SQL_PEOPLE
  query: SELECT Number, MovesAt FROM people
  primary_key: Number
  batch_time_column: MovesAt
retry: {max_retries: 2, interval: 1s}
phases:
  - name: prepare
    offset: T-1m
    steps:
      - {name: make, worker_id: worker-01, function: Count-Begin, params: {Number: "{{Number}}", Seconds: "0.02"},
         output_params: {Made: Made}}
      - {name: stumble, worker_id: worker-01, function: Count-Stumble, params: {Number: "{{Number}}", Every: "7"}}
  - name: move
    offset: T-0
    steps:
      - {name: move, worker_id: worker-01, function: Count-Refuse, on_failure: undo,
         params: {Number: "{{Number}}", Every: "10", Made: "{{Made}}"}, retry: {max_retries: 0}}
      - {name: wait, worker_id: worker-01, function: Count-Wait, params: {Number: "{{Number}}"},
         poll: {interval: 1s, timeout: 10m}}
rollbacks:
  undo:
    - {name: undo, worker_id: worker-01, function: Count-Undo, params: {Number: "{{Number}}"}}
"""


def people(file: Path, count: int, first: int = 0) -> str:
    """Adds so many people whose time is now to a data source; its URL."""
    with closing(sqlite3.connect(file)) as source, source:
        source.execute("CREATE TABLE IF NOT EXISTS people (Number INTEGER, MovesAt TEXT)")
        now = datetime.now(UTC).isoformat()
        source.executemany("INSERT INTO people VALUES (?, ?)", [(first + number, now) for number in range(count)])
    return f"sqlite:///{file}"


def expected(count: int) -> Counter[str]:
    """How many end where."""
    failed = len(range(0, count, 10))
    return Counter(completed=count - failed, failed=failed)
