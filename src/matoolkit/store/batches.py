"""Batches: how they start, go on and end."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import ColumnElement, Integer, and_, bindparam, exists, func, null, or_, select, true, update

from matoolkit.store.locking import IDS
from matoolkit.store.schema import batch_members, batches, phase_executions, runbooks, step_executions
from matoolkit.store.states import (
    OPEN_BATCH,
    OPEN_EXECUTION,
    OPEN_PHASE,
    BatchStatus,
    MemberStatus,
    PhaseStatus,
)
from matoolkit.store.types import UtcDateTime, whether

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matoolkit.store.database import Transaction


class Batch(msgspec.Struct, frozen=True):
    """A batch, as it was read."""

    id: int
    runbook_name: str
    runbook_version: int
    """The version it runs; phases and executions of older ones go on beside it."""
    status: str
    batch_start_time: datetime | None
    loaded_at: datetime | None
    started_at: datetime | None
    is_manual: bool
    rerunning_init_version: int | None

    @property
    def is_active(self) -> bool:
        """Whether its phases may run."""
        return self.status == BatchStatus.ACTIVE

    def origin(self, phase_id: int | None = None) -> str:
        """What names the trace of one of its phases, or of its init, in every process; no other batch has the same."""
        made = "" if self.loaded_at is None else self.loaded_at.isoformat()
        return f"{self.runbook_name}/{self.id}/{made}/{'init' if phase_id is None else phase_id}"

    @property
    def start_time(self) -> datetime | None:
        """What `{{_batch_start_time}}` stands for: of a manual batch, its first advance."""
        return self.started_at if self.is_manual else self.batch_start_time


_b, _p, _m, _s = batches.c, phase_executions.c, batch_members.c, step_executions.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)
READ_ALL = select(
    _b.id,
    runbooks.c.name,
    runbooks.c.version,
    _b.status,
    _b.batch_start_time,
    _b.loaded_at,
    _b.started_at,
    _b.is_manual,
    _b.rerunning_init_version,
).join(runbooks, runbooks.c.id == _b.runbook_id)

READ = READ_ALL.join(IDS.table, IDS.c.id == _b.id)
START_INIT = (
    update(batches)
    .where(_b.id == bindparam("batch"), _b.status == BatchStatus.DETECTED)
    .values(status=BatchStatus.INIT_DISPATCHED, init_dispatched_at=_now)
)
ACTIVATE = (
    update(batches)
    .where(_b.id == bindparam("batch"), _b.status.in_((BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED)))
    .values(status=BatchStatus.ACTIVE)
)
INIT_RERUN_OVER = (
    update(batches)
    .where(_b.id == bindparam("batch"), _b.rerunning_init_version == bindparam("version"))
    .values(rerunning_init_version=null())
)
END = (
    update(batches)
    .where(_b.id == bindparam("batch"), _b.status.in_(OPEN_BATCH))
    .values(
        status=bindparam("outcome"),
        completed_at=_now,
        cancelled_by=bindparam("by"),
        rerunning_init_version=null(),
        winding_up=bindparam("winding_up"),
    )
)

_HAS_OPEN_PHASE = exists().where(_p.batch_id == _b.id, _p.status.in_(OPEN_PHASE))
_HAS_OPEN_STEP = exists().where(_p.batch_id == _b.id, _s.phase_execution_id == _p.id, _s.status.in_(OPEN_EXECUTION))
_HAS_MEMBER_TO_COME = exists().where(_m.batch_id == _b.id, _m.status == MemberStatus.ACTIVE, _m.catch_up_due == true())
_NOTHING_LEFT = and_(
    _b.status == BatchStatus.ACTIVE,
    _b.loaded_at.is_not(None),
    _b.rerunning_init_version.is_(None),
    ~_HAS_OPEN_PHASE,
    ~_HAS_OPEN_STEP,
    ~_HAS_MEMBER_TO_COME,
)
_OUTCOMES = (
    whether(exists().where(_p.batch_id == _b.id, _p.status == PhaseStatus.COMPLETED)).label("any_completed"),
    whether(exists().where(_p.batch_id == _b.id, _p.status == PhaseStatus.FAILED)).label("any_failed"),
)
DONE_AMONG = select(_b.id, *_OUTCOMES).join(IDS.table, IDS.c.id == _b.id).where(_NOTHING_LEFT).order_by(_b.id)
DONE = select(_b.id).where(_NOTHING_LEFT).order_by(_b.id).limit(bindparam("size", type_=Integer))
WITH_PHASES_TO_COME = (
    select(_p.batch_id)
    .join(IDS.table, IDS.c.id == _p.batch_id)
    .where(
        or_(
            _p.status == PhaseStatus.PENDING,
            and_(_p.status == PhaseStatus.DISPATCHED, _p.expanded_at.is_(None)),
        )
    )
    .distinct()
)
OPEN = READ_ALL.where(_b.status.in_(OPEN_BATCH)).order_by(_b.id)
MEMBER_COUNT = select(func.count()).where(_m.batch_id == bindparam("batch"), _m.status == MemberStatus.ACTIVE)


def read(tx: Transaction, ids: Iterable[int]) -> dict[int, Batch]:
    """Batches by their ids."""
    wanted = [(each,) for each in sorted(set(ids))]
    return {row[0]: Batch(*row) for row in tx.with_rows(READ, IDS, wanted)} if wanted else {}


def open_batches(tx: Transaction) -> list[Batch]:
    """Batches that have not ended."""
    return [Batch(*row) for row in tx.execute(OPEN)]


def start_init(tx: Transaction, batch: int, now: datetime) -> bool:
    """From detected to init dispatched."""
    return tx.execute(START_INIT, batch=batch, now=now).rowcount == 1


def activate(tx: Transaction, batch: int) -> bool:
    """Its phases may fire from now on."""
    return tx.execute(ACTIVATE, batch=batch).rowcount == 1


def init_rerun_over(tx: Transaction, batch: int, version: int) -> bool:
    """The phases of the version no longer wait for its init."""
    return tx.execute(INIT_RERUN_OVER, batch=batch, version=version).rowcount == 1


def complete(tx: Transaction, batch: int, outcome: BatchStatus, now: datetime) -> bool:
    """Everything in it has ended, and so does it."""
    return tx.execute(END, batch=batch, outcome=outcome, now=now, by=None, winding_up=False).rowcount == 1


def break_off(tx: Transaction, batch: int, outcome: BatchStatus, now: datetime, by: str | None = None) -> bool:
    """It ends before its time; what is in it is ended by winding up."""
    return tx.execute(END, batch=batch, outcome=outcome, now=now, by=by, winding_up=True).rowcount == 1


def done_among(tx: Transaction, ids: Iterable[int]) -> list[tuple[int, bool, bool]]:
    """Of these batches those with nothing left to do: whether any phase completed, and whether any failed."""
    wanted = [(each,) for each in sorted(set(ids))]
    return [tuple(row) for row in tx.with_rows(DONE_AMONG, IDS, wanted)] if wanted else []


def done(tx: Transaction, size: int) -> list[int]:
    """Batches with nothing left to do that nobody has closed."""
    return [row[0] for row in tx.execute(DONE, size=size)]


def with_phases_to_come(tx: Transaction, ids: Iterable[int]) -> set[int]:
    """Of these batches those with phases that have not been started for every member."""
    wanted = [(each,) for each in sorted(set(ids))]
    return {row[0] for row in tx.with_rows(WITH_PHASES_TO_COME, IDS, wanted)} if wanted else set()


def active_members(tx: Transaction, batch: int) -> int:
    """How many take part."""
    return int(tx.execute(MEMBER_COUNT, batch=batch).scalar_one())
