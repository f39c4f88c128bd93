"""A small world of rows for tests of the store: a runbook, batches, members, phases and executions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, insert, select, update

from matoolkit.store import creation, phases, runbooks
from matoolkit.store.executions import EXECUTIONS
from matoolkit.store.schema import batch_members, batches, phase_executions, step_executions
from matoolkit.store.states import BatchStatus, PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matoolkit.messages import Kind
    from matoolkit.store.database import Database, Transaction
    from matoolkit.store.runbooks import PublishedRunbook

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
EARLIER = NOW - timedelta(minutes=5)


class World:
    """What tests arrange and look at; every call is a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._keys = count(1)
        with database.transaction() as tx:
            self.runbook = publish(tx)

    def batch(self, *, status: BatchStatus = BatchStatus.ACTIVE, loaded: bool = True, **values: Any) -> int:
        """A batch that runs, unless told otherwise."""
        with self.database.transaction() as tx:
            start = NOW + timedelta(days=next(self._keys))
            batch = creation.create_batch(tx, self.runbook, name_folded="wave", start_time=start, now=NOW)
            if loaded:
                creation.loaded(tx, batch, NOW)
        self.set(batches, batch, status=status, **values)
        return batch

    def members(self, batch: int, number: int = 3, *, late: bool = False) -> list[int]:
        """Active members of a batch."""
        keys = [f"User{next(self._keys)}@Example.test" for _ in range(number)]
        with self.database.transaction() as tx:
            creation.add_members(tx, batch, [(key, key.casefold(), "{}") for key in keys], NOW, late=late)
            found = select(batch_members.c.id).where(batch_members.c.member_key.in_(keys))
            return sorted(tx.execute(found).scalars())

    def phase(
        self, batch: int, name: str = "move", *, status: PhaseStatus = PhaseStatus.DISPATCHED, **values: Any
    ) -> int:
        """A phase that is sent and written for everybody, unless told otherwise."""
        given = {"due_at": NOW, "expanded_at": NOW if status is PhaseStatus.DISPATCHED else None, **values}
        with self.database.transaction() as tx:
            creation.add_phases(tx, batch, 1, [{"phase_name": name, "offset_minutes": 0}])
            found = select(phase_executions.c.id).order_by(phase_executions.c.id.desc()).limit(1)
            phase = int(tx.execute(found).scalar_one())
        self.set(phase_executions, phase, status=status, **given)
        return phase

    def steps(self, phase: int, members: Iterable[int], number: int = 2, **values: Any) -> dict[int, list[int]]:
        """The steps of a phase for some members, by member."""
        members = list(members)
        with self.database.transaction() as tx:
            of = phases.read(tx, [phase])[phase]
            planned = [planned_row(step_index=index, batch_id=of.batch_id, parent_id=phase) for index in range(number)]
            phases.write_chunk(tx, of, planned, after=min(members) - 1, through=max(members))
        found: dict[int, list[int]] = {member: [] for member in members}
        for row in self.rows(step_executions):
            if row["phase_execution_id"] == phase:
                found[row["batch_member_id"]].append(row["id"])
        if values:
            self.set(step_executions, *(step for steps in found.values() for step in steps), **values)
        return found

    def execution(self, kind: Kind, batch: int, **values: Any) -> int:
        """One execution of a kind, written straight into its table."""
        table = EXECUTIONS[kind].table
        row = {
            "batch_id": batch,
            "runbook_version": 1,
            "step_name": "step",
            "step_index": 0,
            "worker_id": "worker",
            "function_name": "Do-It",
            "timeout_sec": 60,
            **values,
        }
        with self.database.transaction() as tx:
            key: Any = tx.connection.execute(insert(table), row).inserted_primary_key
            return int(key[0])

    def set(self, table: Table, *ids: int, **values: Any) -> None:
        """Put rows into a state, past all guards."""
        with self.database.transaction() as tx:
            tx.connection.execute(update(table).where(table.c.id.in_(ids)).values(**values))

    def row(self, table: Table, row_id: int) -> dict[str, Any]:
        """A row as it is."""
        return next(row for row in self.rows(table) if row["id"] == row_id)

    def rows(self, table: Table) -> list[dict[str, Any]]:
        """All rows as they are, by id."""
        with self.database.reading() as tx:
            found = tx.connection.execute(select(table).order_by(table.c.id))
            return [dict(row._mapping) for row in found]

    def column(self, table: Table, name: str) -> dict[int, Any]:
        """One column of all rows, by id."""
        return {row["id"]: row[name] for row in self.rows(table)}


def publish(tx: Transaction, name: str = "Wave", **values: Any) -> PublishedRunbook:
    """The next version of a runbook."""
    version = runbooks.publish(tx, name=name, yaml_content="name: wave\n", now=NOW, by="anna", **values)
    found = runbooks.read_version(tx, name, version)
    assert found is not None
    return found


def planned_row(**values: Any) -> tuple[Any, ...]:
    """A row for `PLANNED`, in the order of its columns."""
    row = {
        "parent_id": None,
        "member_id": None,
        "generation": None,
        "batch_id": 0,
        "runbook_version": 1,
        "group_name": None,
        "step_name": f"step-{values.get('step_index', 0)}",
        "step_index": 0,
        "worker_id": "worker",
        "function_name": "Do-It",
        "timeout_sec": 60,
        "on_failure": None,
        "is_poll_step": False,
        "poll_interval_sec": None,
        "poll_timeout_sec": None,
        "max_retries": 0,
        "retry_interval_sec": None,
    }
    unknown = values.keys() - row.keys()
    assert not unknown, f"no such columns: {unknown}"
    return tuple((row | values).values())
