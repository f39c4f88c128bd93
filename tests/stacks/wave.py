"""One wave with everything in it, and what must come of it, member by member: the same on every stack.

Nothing in it is decided by how long anything takes. A gate, which the test opens, holds everybody after the first
phase; meanwhile one member leaves and another one joins.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import text

from matoolkit.clock import SystemClock
from matoolkit.simulation.invariants import ALWAYS, AT_REST, check
from matoolkit.store import runbooks
from tests.stacks.functions.wave_functions import FAILS_EVERY, NEVER_CREATED, STUMBLES_EVERY, WAITS_EVERY

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.store.database import Database

FUNCTIONS = Path(__file__).parent / "functions"
WORKERS = ("worker-01", "worker-02")
PEOPLE = range(1, 25)
LEAVER, JOINER = 4, 70
PATIENCE = 90.0
RUNBOOK = """
name: wave
data_source:
  type: sql
  connection: SQL_PEOPLE
  query: SELECT Number, MovesAt FROM people
  primary_key: Number
  batch_time_column: MovesAt
retry: {max_retries: 1, interval: 1s}
init:
  - {name: open, worker_id: worker-01, function: Open-Wave, params: {}}
phases:
  - name: prepare
    offset: T-1m
    steps:
      - {name: create, worker_id: worker-01, function: New-Account, params: {Number: "{{Number}}"},
         output_params: {Account: Id}}
      - {name: gate, worker_id: worker-02, function: Wait-Gate, params: {Number: "{{Number}}", Account: "{{Account}}"},
         poll: {interval: 1s, timeout: 10m}}
  - name: move
    offset: T-0
    steps:
      - {name: forward, worker_id: worker-02, function: Set-Forwarding, params: {Number: "{{Number}}"},
         retry: {max_retries: 0}, on_failure: undo}
      - {name: mailbox, worker_id: worker-01, function: Move-Mailbox, params: {Number: "{{Number}}"},
         poll: {interval: 1s, timeout: 10m}}
on_member_removed:
  - {name: revoke, worker_id: worker-02, function: Revoke-Access, params: {Number: "{{Number}}"}}
rollbacks:
  undo:
    - {name: unforward, worker_id: worker-01, function: Remove-Forwarding, params: {Number: "{{Number}}"}}
"""

_STEPS = text("""
    SELECT m.member_key, m.status AS member, s.step_name, s.status, s.retry_count,
        CASE WHEN s.step_name = 'gate' THEN 0 ELSE s.poll_count END AS polls, s.rollback_status
    FROM step_executions s JOIN batch_members m ON m.id = s.batch_member_id ORDER BY m.id, s.id
""")
_OTHERS = text("""
    SELECT 'batch' AS what, status, 0 FROM batches
    UNION ALL SELECT phase_name, status, 0 FROM phase_executions
    UNION ALL SELECT step_name, status, retry_count FROM init_executions
""")
_UNDOING = text("""
    SELECT m.member_key, r.step_name, r.status
    FROM rollback_executions r JOIN batch_members m ON m.id = r.batch_member_id
    UNION ALL
    SELECT m.member_key, r.step_name, r.status
    FROM removal_executions r JOIN batch_members m ON m.id = r.batch_member_id
""")
_GATED = text("SELECT count(*) FROM step_executions WHERE step_name = 'gate' AND status = 'polling'")
_LEFT = text("""
    SELECT count(*) FROM removal_executions r JOIN batch_members m ON m.id = r.batch_member_id
    WHERE m.status = 'removed' AND r.status = 'succeeded'
""")
_OPEN = text("""
    SELECT count(*) FROM (
        SELECT id FROM batches WHERE status NOT IN ('completed', 'failed', 'cancelled')
        UNION ALL SELECT id FROM rollback_executions WHERE status IN ('pending', 'dispatched', 'polling')
    ) AS unfinished
""")


class Step(NamedTuple):
    """A step of a member, and what became of it."""

    name: str
    status: str
    retries: int = 0
    polls: int = 0
    rollback: str | None = None


class Outcome(NamedTuple):
    """What came of the wave."""

    members: dict[str, tuple[str, tuple[Step, ...]]]
    """Each member's status and steps, by key."""
    others: list[tuple[str, str, int]]
    undone: list[tuple[str, str, str]]


def expected() -> Outcome:
    """By the runbook and the functions."""
    members = {str(number): _expected(number) for number in (*PEOPLE, JOINER)}
    undone = [(str(number), "unforward", "succeeded") for number in PEOPLE if number % FAILS_EVERY == 0]
    others = [
        ("batch", "completed", 0),
        ("move", "completed", 0),
        ("open", "succeeded", 1),
        ("prepare", "completed", 0),
    ]
    return Outcome(members, sorted(others), sorted([*undone, (str(LEAVER), "revoke", "succeeded")]))


def _expected(number: int) -> tuple[str, tuple[Step, ...]]:
    if number == NEVER_CREATED:
        left = tuple(Step(name, "cancelled") for name in ("gate", "forward", "mailbox"))
        return "failed", (Step("create", "failed", retries=1), *left)
    created = Step("create", "succeeded", retries=int(number % STUMBLES_EVERY == 0))
    if number == LEAVER:
        return "removed", (created, *(Step(name, "cancelled") for name in ("gate", "forward", "mailbox")))
    gate = Step("gate", "succeeded")
    if number % FAILS_EVERY == 0:
        return "failed", (created, gate, Step("forward", "failed", rollback="succeeded"), Step("mailbox", "cancelled"))
    moved = Step("mailbox", "succeeded", polls=int(number % WAITS_EVERY == 0))
    return "completed", (created, gate, Step("forward", "succeeded"), moved)


class Wave:
    """The wave on a database, in a folder with its data source and its gate."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.gate = folder / "gate"
        self._source = folder / "people.db"
        self._at = datetime.now(UTC).isoformat()
        self.people_url = f"sqlite:///{self._source}"
        with closing(sqlite3.connect(self._source)) as source, source:
            source.execute("CREATE TABLE people (Number INTEGER, MovesAt TEXT)")
            source.executemany("INSERT INTO people VALUES (?, ?)", [(number, self._at) for number in PEOPLE])
        with database.transaction() as tx:
            runbooks.publish(tx, name="wave", yaml_content=RUNBOOK, now=SystemClock().now(), by="test")

    @property
    def settings(self) -> dict[str, str]:
        """What a worker and a scheduler need to know of it."""
        return {"SQL_PEOPLE": self.people_url, "GATE": str(self.gate), "CUSTOM_FUNCTIONS_PATH": str(FUNCTIONS)}

    def run(self, told: Callable[[], object] = str) -> Outcome:
        """See it through; `told` is asked for what there is to say when nothing moves."""
        self.until_everybody_is_at_the_gate(told)
        self.change_people()
        self._until(lambda: self._count(_LEFT) == 1, "the leaver has left", told)
        self.until_everybody_is_at_the_gate(told)
        self.gate.touch()
        self._until(lambda: self._count(_OPEN) == 0, "it is over", told)
        self._until(lambda: not self._broken(), "nothing is broken", lambda: (self._broken(), told()))
        return self.outcome()

    def _broken(self) -> object:
        with self.database.reading() as tx:
            return check(tx, (*ALWAYS, *AT_REST))

    def until_everybody_is_at_the_gate(self, told: Callable[[], object]) -> None:
        """All but who was never created; when one has left, that is all with the one who joined."""
        self._until(lambda: self._count(_GATED) == len(PEOPLE) - 1, "everybody is at the gate", told)

    def change_people(self) -> None:
        """One leaves and one joins."""
        with closing(sqlite3.connect(self._source)) as source, source:
            source.execute("DELETE FROM people WHERE Number = ?", (LEAVER,))
            source.execute("INSERT INTO people VALUES (?, ?)", (JOINER, self._at))

    def outcome(self) -> Outcome:
        """What has become of it so far."""
        with self.database.reading() as tx:
            members: dict[str, tuple[str, tuple[Step, ...]]] = {}
            for key, member, *step in tx.connection.execute(_STEPS):
                members[key] = (member, (*members.get(key, ("", ()))[1], Step(*step)))
            others: list[Any] = [tuple(row) for row in tx.connection.execute(_OTHERS)]
            undone: list[Any] = [tuple(row) for row in tx.connection.execute(_UNDOING)]
        return Outcome(members, sorted(others), sorted(undone))

    def _count(self, question: Any) -> int:
        with self.database.reading() as tx:
            return int(tx.connection.execute(question).scalar_one())

    def _until(self, holds: Callable[[], bool], what: str, told: Callable[[], object]) -> None:
        ends, pause = time.monotonic() + PATIENCE, Event()
        while not holds():
            assert time.monotonic() < ends, f"it never came to it that {what}: {self.outcome()} {told()}"
            pause.wait(0.1)
