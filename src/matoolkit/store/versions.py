"""A batch going over to a newer version of its runbook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, bindparam, update

from matoolkit.store.schema import batches, phase_executions
from matoolkit.store.states import BatchStatus, PhaseStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.store.database import Transaction

_b, _p = batches.c, phase_executions.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)

SUPERSEDE_PENDING = (
    update(phase_executions)
    .where(_p.batch_id == bindparam("batch"), _p.status == PhaseStatus.PENDING)
    .values(status=PhaseStatus.SUPERSEDED, completed_at=_now)
)
TAKE_OVER = (
    update(batches)
    .where(_b.id == bindparam("batch"), _b.status == BatchStatus.ACTIVE)
    .values(runbook_id=bindparam("runbook"), rerunning_init_version=bindparam("rerunning"))
)


def supersede_pending(tx: Transaction, batch: int, now: datetime) -> None:
    """The old version's phases that have not started never will."""
    tx.execute(SUPERSEDE_PENDING, batch=batch, now=now)


def take_over(tx: Transaction, batch: int, runbook_id: int, rerunning_init: int | None) -> None:
    """The batch runs the new version; its phases wait for its init where that is to be run again."""
    tx.change(TAKE_OVER, 1, batch=batch, runbook=runbook_id, rerunning=rerunning_init)
