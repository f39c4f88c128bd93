"""A batch's init steps, which run one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, bindparam, null, update

from matoolkit.messages import Kind
from matoolkit.store.executions import Execution, inits
from matoolkit.store.schema import init_executions
from matoolkit.store.states import OPEN_EXECUTION, ExecutionStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.store.database import Transaction

_i = init_executions.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)

NEXT_OPEN = (
    inits.selected.where(
        _i.batch_id == bindparam("batch"),
        _i.runbook_version == bindparam("version"),
        _i.status.in_(OPEN_EXECUTION),
    )
    .order_by(_i.step_index)
    .limit(1)
)
CANCEL_OPEN = (
    update(init_executions)
    .where(
        _i.batch_id == bindparam("batch"),
        _i.runbook_version == bindparam("version"),
        _i.status.in_(OPEN_EXECUTION),
    )
    .values(status=ExecutionStatus.CANCELLED, completed_at=_now, poll_check_at=null(), retry_after=null())
)
CANCEL_ALL = (
    update(init_executions)
    .where(_i.batch_id == bindparam("batch"), _i.status.in_(OPEN_EXECUTION))
    .values(status=ExecutionStatus.CANCELLED, completed_at=_now, poll_check_at=null(), retry_after=null())
)


def next_open(tx: Transaction, batch: int, version: int) -> Execution | None:
    """The first init step of a version that has not ended."""
    row = tx.execute(NEXT_OPEN, batch=batch, version=version).first()
    return None if row is None else Execution(Kind.INIT, *row)


def cancel_open(tx: Transaction, batch: int, version: int, now: datetime) -> None:
    """What is left of a version's init steps is not sent."""
    tx.execute(CANCEL_OPEN, batch=batch, version=version, now=now)


def cancel_all(tx: Transaction, batch: int, now: datetime) -> None:
    """Of whatever version: the batch was cancelled, or goes over to another one."""
    tx.execute(CANCEL_ALL, batch=batch, now=now)
