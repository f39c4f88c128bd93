"""What happened, line by line: every change of a status and every job sent, written down by the database itself.

Triggers write the lines in the transaction of the change, so that what was undone leaves no line, and the order is the
order of commits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

_STATUSES = {
    "batch": ("batches", "''"),
    "member": ("batch_members", "new.batch_id || '/' || new.generation"),
    "phase": ("phase_executions", "new.batch_id || '/' || new.phase_name"),
    "step": ("step_executions", "new.batch_member_id || '/' || new.phase_execution_id || '/' || new.step_index"),
    "init": ("init_executions", "new.batch_id || '/' || new.step_index"),
    "rollback": ("rollback_executions", "coalesce(new.batch_member_id, 0) || '/' || new.step_index"),
    "removal": ("removal_executions", "new.batch_member_id || '/' || new.generation || '/' || new.step_index"),
}
_EXECUTIONS = ("step", "init", "rollback", "removal")

TRIGGERS: tuple[str, ...] = (
    "CREATE TABLE trace (id INTEGER PRIMARY KEY, what TEXT, subject INTEGER, place TEXT, old TEXT, new TEXT)",
    *(
        f"CREATE TRIGGER trace_{what}_born AFTER INSERT ON {table} BEGIN "  # noqa: S608 - names of ours
        f"INSERT INTO trace (what, subject, place, old, new) VALUES ('{what}', new.id, {place}, '-', new.status); END"
        for what, (table, place) in _STATUSES.items()
    ),
    *(
        f"CREATE TRIGGER trace_{what} AFTER UPDATE OF status ON {table} WHEN old.status <> new.status BEGIN "  # noqa: S608 - names of ours
        f"INSERT INTO trace (what, subject, place, old, new) "
        f"VALUES ('{what}', new.id, {place}, old.status, new.status); END"
        for what, (table, place) in _STATUSES.items()
    ),
    *(
        f"CREATE TRIGGER trace_{what}_job AFTER UPDATE OF job_out ON {_STATUSES[what][0]} "  # noqa: S608 - names of ours
        f"WHEN new.job_out = 1 AND old.job_out = 0 BEGIN "
        f"INSERT INTO trace (what, subject, place, old, new) VALUES ('job', new.id, {_STATUSES[what][1]}, "
        f"'{what}', new.job_id); END"
        for what in _EXECUTIONS
    ),
    *(
        f"CREATE TRIGGER trace_{what}_back AFTER UPDATE OF job_out ON {_STATUSES[what][0]} "  # noqa: S608 - names of ours
        f"WHEN new.job_out = 0 AND old.job_out = 1 BEGIN "
        f"INSERT INTO trace (what, subject, place, old, new) VALUES ('back', new.id, {_STATUSES[what][1]}, "
        f"'{what}', old.job_id); END"
        for what in _EXECUTIONS
    ),
    """
    CREATE TRIGGER trace_generation AFTER UPDATE OF generation ON batch_members BEGIN
        INSERT INTO trace (what, subject, place, old, new)
        VALUES ('generation', new.id, new.batch_id, old.generation, new.generation);
    END
    """,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened."""

    what: str
    subject: int
    place: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.what} {self.subject} [{self.place}] {self.old} -> {self.new}"


def note(connection: sqlite3.Connection, what: str, text: str) -> None:
    """Write down what a database cannot see: a process killed, a function run."""
    connection.execute("INSERT INTO trace (what, subject, place, old, new) VALUES (?, 0, '', '', ?)", (what, text))


def lines(connection: sqlite3.Connection) -> list[Line]:
    """Everything, in order."""
    return [Line(*row) for row in connection.execute("SELECT what, subject, place, old, new FROM trace ORDER BY id")]


def transitions(history: list[Line]) -> Counter[str]:
    """How often each change of status happened."""
    return Counter(f"{line.what} {line.old} -> {line.new}" for line in history if line.what in _STATUSES)
