"""All of it from afar: what is open, what comes next, what has failed and why, what waits for a person."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Integer, bindparam, desc, exists, false, func, literal, select, true

from matoolkit.store.schema import (
    batch_members,
    batches,
    dead_messages,
    init_executions,
    phase_executions,
    removal_executions,
    rollback_executions,
    runbook_automation_settings,
    runbooks,
    step_executions,
)
from matoolkit.store.states import FAILED_EXECUTION, OPEN_BATCH, OPEN_EXECUTION, MemberStatus, PhaseStatus

if TYPE_CHECKING:
    from sqlalchemy import Select, Table

    from matoolkit.store.database import Transaction


class NextPhase(msgspec.Struct, frozen=True):
    """A phase that is to come."""

    batch_id: int
    runbook_name: str
    batch_status: str
    batch_start_time: datetime | None
    phase_name: str
    due_at: datetime


class Held(msgspec.Struct, frozen=True):
    """Removals of a batch that are held."""

    batch_id: int
    runbook_name: str
    count: int
    since: datetime


class Failure(msgspec.Struct, frozen=True):
    """What went wrong in the same way at so many."""

    kind: str
    phase_name: str | None
    step_name: str
    worker_id: str
    function_name: str
    error_message: str | None
    count: int
    last_at: datetime | None


class RunbookTrouble(msgspec.Struct, frozen=True):
    """What the last tick found wrong with a runbook."""

    name: str
    version: int
    last_error: str
    last_error_at: datetime | None


_b, _p, _m, _r, _s = batches.c, phase_executions.c, batch_members.c, runbooks.c, step_executions.c
_size = bindparam("size", type_=Integer)
_batch: ColumnElement[int] = bindparam("batch", type_=BigInteger)
BATCHES_BY_STATUS = select(_b.status, func.count()).group_by(_b.status)
NEXT_PHASES = (
    select(_b.id, _r.name, _b.status, _b.batch_start_time, _p.phase_name, _p.due_at)
    .select_from(phase_executions)
    .join(batches, _b.id == _p.batch_id)
    .join(runbooks, _r.id == _b.runbook_id)
    .where(
        _p.status == PhaseStatus.PENDING,
        _p.due_at.is_not(None),
        _b.status.in_(OPEN_BATCH),
        _b.loaded_at.is_not(None),
    )
    .order_by(_p.due_at, _p.id)
    .limit(_size)
)
HELD = (
    select(_b.id, _r.name, func.count(), func.min(_m.removal_held_at))
    .select_from(batch_members)
    .join(batches, _b.id == _m.batch_id)
    .join(runbooks, _r.id == _b.runbook_id)
    .where(_m.removal_held_at.is_not(None), _m.status == MemberStatus.ACTIVE, _b.status.in_(OPEN_BATCH))
    .group_by(_b.id, _r.name)
    .order_by(_b.id)
    .limit(_size)
)
DEAD = select(func.count()).select_from(dead_messages).where(dead_messages.c.resubmitted_at.is_(None))
TROUBLES = (
    select(_r.name, _r.version, _r.last_error, _r.last_error_at)
    .where(_r.is_active == true(), _r.last_error.is_not(None))
    .order_by(_r.name_folded)
    .limit(_size)
)
AUTOMATIC = (
    select(_r.id)
    .where(
        _r.is_active == true(),
        ~exists().where(
            runbook_automation_settings.c.runbook_name == _r.name_folded,
            runbook_automation_settings.c.automation_enabled == false(),
        ),
    )
    .limit(1)
)
OPEN_AUTOMATIC = select(_b.id).where(_b.status.in_(OPEN_BATCH), _b.is_manual == false()).limit(1)
WAITED_FOR = (
    select(_s.worker_id, func.count())
    .join(phase_executions, _p.id == _s.phase_execution_id)
    .where(_p.status == PhaseStatus.DISPATCHED, _s.status.in_(OPEN_EXECUTION))
    .group_by(_s.worker_id)
    .order_by(_s.worker_id)
)


def _failures(kind: str, table: Table, phase: Any) -> Select[Any]:
    c = table.c
    return (
        select(
            literal(kind),
            phase,
            c.step_name,
            c.worker_id,
            c.function_name,
            c.error_message,
            func.count().label("number"),
            func.max(c.completed_at),
        )
        .where(c.batch_id == _batch, c.status.in_(FAILED_EXECUTION))
        .order_by(desc("number"), c.step_name)
        .limit(_size)
    )


def _alike(table: Table) -> tuple[Any, ...]:
    c = table.c
    return c.step_name, c.worker_id, c.function_name, c.error_message


FAILURES: dict[str, Select[Any]] = {
    "step": _failures("step", step_executions, _p.phase_name)
    .join(phase_executions, _p.id == _s.phase_execution_id)
    .group_by(_p.phase_name, *_alike(step_executions)),
    **{
        kind: _failures(kind, table, literal(None)).group_by(*_alike(table))
        for kind, table in (
            ("init", init_executions),
            ("rollback", rollback_executions),
            ("removal", removal_executions),
        )
    },
}


def batches_by_status(tx: Transaction) -> dict[str, int]:
    """How many batches are in which state."""
    return {row[0]: int(row[1]) for row in tx.execute(BATCHES_BY_STATUS)}


def next_phases(tx: Transaction, size: int) -> list[NextPhase]:
    """The phases with a time that are still to come, the first first."""
    return [NextPhase(*row) for row in tx.execute(NEXT_PHASES, size=size)]


def needs_a_scheduler(tx: Transaction) -> bool:
    """Whether anything goes by the time or a data source: an open batch, or a runbook that makes some by itself."""
    return any(tx.execute(each).first() is not None for each in (OPEN_AUTOMATIC, AUTOMATIC))


def held(tx: Transaction, size: int) -> list[Held]:
    """Where removals are held."""
    return [Held(*row) for row in tx.execute(HELD, size=size)]


def dead(tx: Transaction) -> int:
    """How many messages were put aside and not sent again."""
    return int(tx.execute(DEAD).scalar_one())


def troubles(tx: Transaction, size: int) -> list[RunbookTrouble]:
    """What is wrong with runbooks that are in force."""
    return [RunbookTrouble(*row) for row in tx.execute(TROUBLES, size=size)]


def waited_for(tx: Transaction) -> dict[str, int]:
    """Of each worker that steps under way name: how many."""
    return {row[0]: int(row[1]) for row in tx.execute(WAITED_FOR)}


def failures(tx: Transaction, batch: int, size: int) -> list[Failure]:
    """What went wrong in a batch, the most frequent first."""
    found = [Failure(*row) for each in FAILURES.values() for row in tx.execute(each, batch=batch, size=size)]
    return sorted(found, key=lambda each: (-each.count, each.kind, each.step_name))[:size]
