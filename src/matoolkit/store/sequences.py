"""Rollbacks and removals as wholes: their status, their cancelling, and whether a member's hands are still."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Integer,
    Table,
    and_,
    bindparam,
    exists,
    null,
    or_,
    select,
    true,
    union_all,
    update,
)

from matoolkit.store.guards import checked
from matoolkit.store.locking import IDS
from matoolkit.store.members import GENERATIONS
from matoolkit.store.schema import init_executions, removal_executions, rollback_executions, step_executions
from matoolkit.store.states import OPEN_EXECUTION, ExecutionStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from matoolkit.store.database import Transaction
    from matoolkit.store.states import SequenceStatus

_s, _r, _l = step_executions.c, rollback_executions.c, removal_executions.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)


def _status_of(parent: Table) -> Any:
    return update(parent).where(parent.c.id == IDS.c.id).values(rollback_status=bindparam("sequence_status"))


def _cancelling(table: Table, owner: str) -> Any:
    return (
        update(table)
        .where(table.c[owner] == IDS.c.id, table.c.status == ExecutionStatus.PENDING)
        .values(status=ExecutionStatus.CANCELLED, completed_at=_now, retry_after=null())
    )


SET_ROLLBACK_STATUS = {"failed_step": _status_of(step_executions), "failed_init": _status_of(init_executions)}
CANCEL_ROLLBACKS = {
    "failed_step": _cancelling(rollback_executions, "step_execution_id"),
    "failed_init": _cancelling(rollback_executions, "init_execution_id"),
}
CANCEL_REMOVALS = (
    update(removal_executions)
    .where(
        _l.batch_member_id == GENERATIONS.c.id,
        _l.generation == GENERATIONS.c.generation,
        _l.status == ExecutionStatus.PENDING,
    )
    .values(status=ExecutionStatus.CANCELLED, completed_at=_now, retry_after=null())
)
MEMBERS_OF_FAILED_STEPS = select(_s.batch_member_id).join(IDS.table, IDS.c.id == _s.id)
BUSY = union_all(
    select(_s.batch_member_id).join(IDS.table, IDS.c.id == _s.batch_member_id).where(checked(_s.job_out) == true()),
    select(_r.batch_member_id).join(IDS.table, IDS.c.id == _r.batch_member_id).where(_r.status.in_(OPEN_EXECUTION)),
)
BUSY_OR_LEAVING: CompoundSelect[Any] = union_all(
    *BUSY.selects,
    select(_l.batch_member_id).join(IDS.table, IDS.c.id == _l.batch_member_id).where(_l.status.in_(OPEN_EXECUTION)),
)


def _waiting(table: Table, *columns: str) -> Any:
    owner, other = columns[0], table.alias("other")
    before = bindparam("before", type_=UtcDateTime)
    under_way = exists().where(
        other.c[owner] == table.c[owner],
        or_(
            other.c.job_out == true(),
            other.c.status == ExecutionStatus.POLLING,
            and_(other.c.status == ExecutionStatus.PENDING, other.c.retry_after >= before),
        ),
    )
    return (
        select(*(table.c[column] for column in columns))
        .where(
            table.c[owner].is_not(None),
            table.c.status == ExecutionStatus.PENDING,
            or_(table.c.retry_after.is_(None), table.c.retry_after < before),
            ~under_way,
        )
        .distinct()
        .order_by(table.c[owner])
        .limit(bindparam("size", type_=Integer))
    )


WAITING_ROLLBACKS = {
    "failed_step": _waiting(rollback_executions, "step_execution_id", "batch_member_id"),
    "failed_init": _waiting(rollback_executions, "init_execution_id", "batch_member_id"),
}
WAITING_REMOVALS = _waiting(removal_executions, "batch_member_id")


def set_rollback_status(tx: Transaction, parent: str, ids: Iterable[int], status: SequenceStatus) -> None:
    """How the undoing of some failed steps goes."""
    wanted = [(each,) for each in ids]
    if wanted:
        tx.with_rows(SET_ROLLBACK_STATUS[parent], IDS, wanted, sequence_status=status)


def cancel_rollbacks(tx: Transaction, parent: str, ids: Iterable[int], now: datetime) -> None:
    """What is left of some rollbacks is not sent."""
    wanted = [(each,) for each in ids]
    if wanted:
        tx.with_rows(CANCEL_ROLLBACKS[parent], IDS, wanted, now=now)


def cancel_removals(tx: Transaction, stays: Sequence[tuple[int | None, int | None]], now: datetime) -> None:
    """What is left of the removals of some members, each of one stay, is not sent."""
    if stays:
        tx.with_rows(CANCEL_REMOVALS, GENERATIONS, stays, now=now)


def members_of_failed_steps(tx: Transaction, ids: Iterable[int]) -> set[int]:
    """Whose steps these are."""
    wanted = [(each,) for each in ids]
    return {row[0] for row in tx.with_rows(MEMBERS_OF_FAILED_STEPS, IDS, wanted)} if wanted else set()


def busy_members(tx: Transaction, ids: Iterable[int], *, removals_too: bool = False) -> set[int]:
    """Of these members those for whom a job is out or a rollback runs; or, if asked, whose removal has not ended."""
    wanted = [(each,) for each in ids]
    if not wanted:
        return set()
    return {row[0] for row in tx.with_rows(BUSY_OR_LEAVING if removals_too else BUSY, IDS, wanted)}


def waiting_rollbacks(tx: Transaction, parent: str, before: datetime, size: int) -> list[tuple[int, int | None]]:
    """Failed steps whose rollback has a step that could have been sent, and their members."""
    return [(row[0], row[1]) for row in tx.execute(WAITING_ROLLBACKS[parent], before=before, size=size)]


def waiting_removals(tx: Transaction, before: datetime, size: int) -> list[int]:
    """Members whose removal has a step that could have been sent."""
    return [row[0] for row in tx.execute(WAITING_REMOVALS, before=before, size=size)]
