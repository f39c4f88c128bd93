"""Phases and polls whose time has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Integer,
    bindparam,
    false,
    literal,
    select,
    union_all,
    update,
)

from matoolkit.messages import Kind
from matoolkit.store.executions import TABLES
from matoolkit.store.guards import checked
from matoolkit.store.locking import IDS
from matoolkit.store.rows import Rows
from matoolkit.store.schema import batches, phase_executions, runbooks
from matoolkit.store.states import BatchStatus, ExecutionStatus, PhaseStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from matoolkit.store.database import Transaction


class Poll(msgspec.Struct, frozen=True):
    """An execution whose worker is to be asked again."""

    kind: Kind
    id: int
    batch_id: int
    runbook_version: int
    step_name: str
    poll_count: int
    runbook_name: str


_p, _b = phase_executions.c, batches.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)
_size = bindparam("size", type_=Integer)

PHASES_DUE = (
    select(_p.id, _p.batch_id)
    .join(batches, _b.id == _p.batch_id)
    .where(
        _p.status == PhaseStatus.PENDING,
        _p.due_at <= _now,
        _b.status == BatchStatus.ACTIVE,
        _b.loaded_at.is_not(None),
        _b.rerunning_init_version.is_(None),
    )
    .order_by(_p.batch_id, _p.id)
)
START_PHASES = (
    update(phase_executions)
    .where(_p.id == IDS.c.id, checked(_p.status) == PhaseStatus.PENDING)
    .values(status=PhaseStatus.DISPATCHED, dispatched_at=_now, expansion_moved_at=_now)
)
AGAIN = Rows(Column("id", BigInteger), Column("poll_count", Integer))
POLLS_DUE = (
    union_all(
        *(
            select(
                literal(str(kind)).label("kind"),
                table.c.id.label("execution_id"),
                table.c.batch_id,
                table.c.runbook_version,
                table.c.step_name,
                table.c.poll_count,
                runbooks.c.name,
            )
            .join(batches, _b.id == table.c.batch_id)
            .join(runbooks, runbooks.c.id == _b.runbook_id)
            .where(table.c.status == ExecutionStatus.POLLING, table.c.job_out == false(), table.c.poll_check_at <= _now)
            for kind, table in TABLES.items()
        )
    )
    .order_by("kind", "execution_id")
    .limit(_size)
)
CHECK_AGAIN: dict[Kind, Any] = {
    kind: update(table)
    .where(
        table.c.id == AGAIN.c.id,
        checked(table.c.status) == ExecutionStatus.POLLING,
        checked(table.c.job_out) == false(),
        table.c.poll_count == AGAIN.c.poll_count,
    )
    .values(poll_check_at=bindparam("again", type_=UtcDateTime))
    for kind, table in TABLES.items()
}
"""The question is on its way; should it get lost, it is asked again."""


def phases_due(tx: Transaction, now: datetime) -> list[tuple[int, int]]:
    """Pending phases whose time has come, with their batches."""
    return [(row[0], row[1]) for row in tx.execute(PHASES_DUE, now=now)]


def start_phases(tx: Transaction, ids: Sequence[int], now: datetime) -> None:
    """From pending to dispatched."""
    if ids:
        tx.change_rows(START_PHASES, IDS, [(each,) for each in ids], now=now)


def polls_due(tx: Transaction, now: datetime, size: int) -> list[Poll]:
    """Executions to be asked about, by kind and id."""
    return [Poll(Kind(row[0]), *row[1:]) for row in tx.execute(POLLS_DUE, now=now, size=size)]


def check_again(tx: Transaction, kind: Kind, polls: Sequence[tuple[int, int]], again: datetime) -> None:
    """Note that these have been announced."""
    if polls:
        tx.with_rows(CHECK_AGAIN[kind], AGAIN, polls, again=again)
