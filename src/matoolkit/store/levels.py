"""How things stand, in numbers, for who watches: read every minute, so each statement goes by an index."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, bindparam, exists, func, or_, select, true

from matoolkit.store import leases
from matoolkit.store.schema import batch_members, batches, dead_messages, phase_executions, runbooks, step_executions
from matoolkit.store.states import OPEN_BATCH, BatchStatus, ExecutionStatus, MemberStatus, PhaseStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from sqlalchemy import Select

    from matoolkit.store.database import Transaction

SILENT_AFTER = timedelta(hours=1)
"""A job that is out for longer is worth a look: its worker may be stopped, or the tenant be slow."""
IDLE_AFTER = timedelta(minutes=10)
"""Reconciliation moves on within minutes whoever can be moved on."""
OVERDUE_AFTER = timedelta(minutes=5)


class Levels(msgspec.Struct, frozen=True):
    """How things stand."""

    active: int
    """Members under way."""
    idle: int
    """Of them those with a step to do, and nothing under way, for longer than reconciliation takes."""
    silent: int
    """Those whose job is out for a long time."""
    held: int
    """Those whose removal is held."""
    overdue: int
    """Phases past their time that have not started."""
    faulty: int
    """Active runbooks with a `last_error`."""
    dead: int
    """Messages put aside and not sent again."""
    led_until: datetime | None
    """When the scheduler's lease ends; None when there never was one."""


_m, _b, _s, _p = batch_members.c, batches.c, step_executions.c, phase_executions.c
_before = bindparam("before", type_=UtcDateTime)
_OTHER = step_executions.alias("other")
_COUNT = func.count()
_OPEN = or_(*(_b.status == each for each in OPEN_BATCH))


def _members(*conditions: Any) -> Select[Any]:
    """Active members of a batch; asked for one batch after another, so that old ones are not even passed over."""
    return (
        select(_COUNT)
        .select_from(batch_members)
        .where(_m.batch_id == bindparam("batch"), _m.status == MemberStatus.ACTIVE, *conditions)
    )


OPEN_BATCHES = select(_b.id, _b.status).where(_OPEN)
ACTIVE = _members()
IDLE = _members(
    exists().where(
        _s.batch_member_id == _m.id,
        _s.status == ExecutionStatus.PENDING,
        or_(_s.retry_after < _before, and_(_s.retry_after.is_(None), _p.dispatched_at < _before)),
        _p.id == _s.phase_execution_id,
    ),
    ~exists().where(
        _OTHER.c.batch_member_id == _m.id,
        or_(
            _OTHER.c.job_out == true(),
            _OTHER.c.status == ExecutionStatus.POLLING,
            and_(_OTHER.c.status == ExecutionStatus.PENDING, _OTHER.c.retry_after >= _before),
        ),
    ),
)
SILENT = select(_COUNT).select_from(step_executions).where(_s.job_out == true(), _s.dispatched_at < _before)
HELD = (
    select(_COUNT).select_from(batch_members).where(_m.removal_held_at.is_not(None), _m.status == MemberStatus.ACTIVE)
)
OVERDUE = (
    select(_COUNT)
    .select_from(phase_executions.join(batches, _b.id == _p.batch_id))
    .where(_p.status == PhaseStatus.PENDING, _p.due_at < _before, _OPEN)
)
FAULTY = select(_COUNT).select_from(runbooks).where(runbooks.c.is_active == true(), runbooks.c.last_error.is_not(None))
DEAD = select(_COUNT).select_from(dead_messages).where(dead_messages.c.resubmitted_at.is_(None))


def read(tx: Transaction, now: datetime) -> Levels:
    """All of them."""
    lease = leases.read(tx, leases.SCHEDULER)
    batches_open = tx.execute(OPEN_BATCHES).all()
    return Levels(
        active=sum(_number(tx, ACTIVE, batch=batch) for batch, _ in batches_open),
        idle=sum(
            _number(tx, IDLE, batch=batch, before=now - IDLE_AFTER)
            for batch, status in batches_open
            if status == BatchStatus.ACTIVE
        ),
        silent=_number(tx, SILENT, before=now - SILENT_AFTER),
        held=_number(tx, HELD),
        overdue=_number(tx, OVERDUE, before=now - OVERDUE_AFTER),
        faulty=_number(tx, FAULTY),
        dead=_number(tx, DEAD),
        led_until=None if lease is None else lease[1],
    )


def _number(tx: Transaction, statement: Select[Any], **parameters: Any) -> int:
    return int(tx.execute(statement, **parameters).scalar() or 0)
