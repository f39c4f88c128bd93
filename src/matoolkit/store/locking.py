"""Locks on rows, taken in the order batch, phase, member, step, each by ascending id.

On SQLite a transaction holds the whole database as it begins, so nothing is asked of it there. On Azure SQL a lock is
asked for by hints, which say as well that rows are to be sought by their keys: whoever reads a small table from end to
end to find one row locks all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, Column, Select, Table, select

from matoolkit.store.rows import Rows
from matoolkit.store.schema import batch_members, batches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matoolkit.store.database import Transaction

IDS = Rows(Column("id", BigInteger))
"""Ids handed to a statement."""


def for_update(
    statement: Select[tuple[int]], table: Table, *, without_sharers: bool = False, seek: str = ""
) -> Select[tuple[int]]:
    """Whoever changes these rows holds them alone until the commit; rows that refer to them are not held up.

    Azure SQL's update locks let those in who only share a row, so where there are any it has to be an exclusive one.
    """
    hints = ["XLOCK" if without_sharers else "UPDLOCK", "ROWLOCK", *filter(None, [seek])]
    return statement.with_for_update(key_share=True, of=table).with_hint(table, _hint(hints), "mssql")


def for_share(statement: Select[tuple[int]], table: Table, *, seek: str = "") -> Select[tuple[int]]:
    """The rows stay as they are until the commit, for any number of holders."""
    hints = ["REPEATABLEREAD", "ROWLOCK", *filter(None, [seek])]
    return statement.with_for_update(read=True, of=table).with_hint(table, _hint(hints), "mssql")


def _hint(hints: list[str]) -> str:
    return f"WITH ({', '.join(hints)})"


def _by_id(table: Table) -> Select[tuple[int]]:
    return select(table.c.id).join(IDS.table, IDS.c.id == table.c.id).order_by(table.c.id)


LOCK_BATCHES = for_update(_by_id(batches), batches, without_sharers=True, seek="FORCESEEK")
SHARE_BATCHES = for_share(_by_id(batches), batches, seek="FORCESEEK")
LOCK_MEMBERS = for_update(_by_id(batch_members), batch_members, seek="FORCESEEK")


def lock_batches(tx: Transaction, ids: Iterable[int]) -> None:
    """Nobody else closes, cancels or advances these batches until the commit."""
    _lock(tx, LOCK_BATCHES, ids)


def share_batches(tx: Transaction, ids: Iterable[int]) -> None:
    """Nobody closes or cancels these batches until the commit; others may progress in them too."""
    _lock(tx, SHARE_BATCHES, ids)


def lock_members(tx: Transaction, ids: Iterable[int]) -> None:
    """Nobody else dispatches or ends a step of these members until the commit."""
    _lock(tx, LOCK_MEMBERS, ids)


def _lock(tx: Transaction, statement: Select[tuple[int]], ids: Iterable[int]) -> None:
    wanted = sorted(set(ids))
    if wanted and tx.dialect != "sqlite":
        tx.with_rows(statement, IDS, [(each,) for each in wanted]).all()
