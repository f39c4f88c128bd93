"""Where everybody in a wave is, in words short enough for an assertion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, select, update

from matoolkit.simulation import invariants
from matoolkit.store import schema

if TYPE_CHECKING:
    from matoolkit.store.database import Database

_TABLES = (schema.step_executions, schema.init_executions, schema.rollback_executions, schema.removal_executions)


class Views:
    """Looks at the rows of a database, and can put them into any state."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.batch_id = 0
        """The batch that was made last: the one that is asked about."""

    @property
    def batch_status(self) -> str:
        """Where the batch is."""
        return str(self.row(schema.batches, id=self.batch_id)["status"])

    def phases(self) -> dict[str, str]:
        """Where its phases are; those of later versions as `move v2`, skipped ones with why."""
        found = {}
        for row in self.rows(schema.phase_executions, batch_id=self.batch_id):
            name = (
                row["phase_name"] if row["runbook_version"] == 1 else f"{row['phase_name']} v{row['runbook_version']}"
            )
            found[name] = f"skipped: {row['skip_reason']}" if row["status"] == "skipped" else row["status"]
        return found

    def members(self) -> dict[str, str]:
        """Where its members are."""
        return {row["member_key"]: row["status"] for row in self.rows(schema.batch_members, batch_id=self.batch_id)}

    def member(self, key: str) -> dict[str, Any]:
        """A member's row."""
        return self.row(schema.batch_members, batch_id=self.batch_id, member_key=key)

    def steps(self, key: str, generation: int | None = None) -> dict[str, str]:
        """Where a member's steps are, in this stay or in an earlier one."""
        member = self.member(key)
        stay = member["generation"] if generation is None else generation
        rows = self.rows(schema.step_executions, batch_member_id=member["id"], generation=stay)
        return {row["step_name"]: row["status"] for row in rows}

    def step(self, label: str) -> dict[str, Any]:
        """The row of `"step member"`, of whatever kind; the latest when there are several."""
        name, _, key = label.partition(" ")
        where = {"step_name": name, **({"batch_member_id": self.member(key)["id"]} if key else {})}
        found = [
            row for table in _TABLES if not key or "batch_member_id" in table.c for row in self.rows(table, **where)
        ]
        assert found, f"no execution of {label}"
        return found[-1]

    def row(self, table: Table, **where: Any) -> dict[str, Any]:
        """The one row with these values."""
        found = self.rows(table, **where)
        assert len(found) == 1, f"{len(found)} rows of {table.name} have {where}"
        return found[0]

    def rows(self, table: Table, **where: Any) -> list[dict[str, Any]]:
        """Rows with these values, by id."""
        statement = select(table).where(*(table.c[name] == value for name, value in where.items()))
        with self.database.reading() as tx:
            return [dict(row._mapping) for row in tx.connection.execute(statement.order_by(table.c.id))]

    def forge(self, table: Table, row_id: int, **values: Any) -> None:
        """Put a row into a state, past all guards."""
        with self.database.transaction() as tx:
            tx.connection.execute(update(table).where(table.c.id == row_id).values(**values))

    def check(self) -> None:
        """What must always be true is true."""
        with self.database.reading() as tx:
            assert [str(each) for each in invariants.check(tx)] == []
