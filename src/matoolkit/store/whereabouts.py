"""One person closely: every batch they are or were in, and all that was done there, undone, and done for leaving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Integer, bindparam, literal, select

from matoolkit.store.batch_lists import COLUMNS, BatchItem
from matoolkit.store.member_lists import MEMBER_COLUMNS, MemberItem, StepItem, step_columns
from matoolkit.store.runbooks import folded
from matoolkit.store.schema import (
    batch_members,
    batches,
    phase_executions,
    removal_executions,
    rollback_executions,
    runbooks,
    step_executions,
)

if TYPE_CHECKING:
    from sqlalchemy import Select, Table

    from matoolkit.store.database import Transaction


class Execution(msgspec.Struct, frozen=True):
    """A step of somebody's, with what was sent and what came of it."""

    step: StepItem
    generation: int | None
    """In which stay."""
    undoes: int | None
    """Of a rollback's step: the step whose failure led to it."""
    rollback_name: str | None
    params_json: str | None
    result_json: str | None


_m, _b, _p = batch_members.c, batches.c, phase_executions.c
_s, _k, _r = step_executions.c, rollback_executions.c, removal_executions.c
_before: ColumnElement[int] = bindparam("before", type_=BigInteger)
_member: ColumnElement[int] = bindparam("member", type_=BigInteger)
_NO_PLACE = (literal(None), literal(None))
PLACES = (
    select(*COLUMNS, *MEMBER_COLUMNS)
    .select_from(batch_members)
    .join(batches, _b.id == _m.batch_id)
    .join(runbooks, runbooks.c.id == _b.runbook_id)
    .where(_m.member_key_folded == bindparam("key"), _m.id < _before)
    .order_by(_m.id.desc())
    .offset(bindparam("skip", type_=Integer))
    .limit(bindparam("size", type_=Integer))
)
MEMBER = select(*MEMBER_COLUMNS).where(_m.id == _member, _m.batch_id == bindparam("batch"))


def _of(table: Table, places: tuple[Any, ...], generation: Any, undoes: Any, rollback: Any) -> Select[Any]:
    c = table.c
    return (
        select(*step_columns(table, *places), generation, undoes, rollback, c.params_json, c.result_json)
        .join(batch_members, _m.id == c.batch_member_id)
        .where(c.batch_member_id == _member)
    )


_IN_PHASE = (_p.id, _p.phase_name, _m.id, _m.member_key)
STEPS = (
    _of(step_executions, _IN_PHASE, _s.generation, literal(None), literal(None))
    .join(phase_executions, _p.id == _s.phase_execution_id)
    .order_by(_s.generation, _s.phase_execution_id, _s.step_index)
)
ROLLBACKS = (
    # By the steps they undo, of which there is an index.
    _of(rollback_executions, _IN_PHASE, _s.generation, _k.step_execution_id, _k.rollback_name)
    .join(step_executions, _s.id == _k.step_execution_id)
    .join(phase_executions, _p.id == _s.phase_execution_id)
    .where(_s.batch_member_id == _member, _k.step_execution_id.is_not(None))
    .order_by(_k.step_execution_id, _k.step_index)
)
REMOVALS = _of(
    removal_executions, (*_NO_PLACE, _m.id, _m.member_key), _r.generation, literal(None), literal(None)
).order_by(_r.generation, _r.step_index)
_STEP_FIELDS = len(StepItem.__struct_fields__)


def places(tx: Transaction, key: str, *, before: int, skip: int, size: int) -> list[tuple[BatchItem, MemberItem]]:
    """The batches in which somebody of this key is or was, the latest first."""
    width = len(BatchItem.__struct_fields__)
    rows = tx.execute(PLACES, key=folded(key), before=before, skip=skip, size=size)
    return [(BatchItem(*row[:width]), MemberItem(*row[width:])) for row in rows]


def member(tx: Transaction, batch: int, member: int) -> MemberItem | None:
    """A member of a batch."""
    row = tx.execute(MEMBER, batch=batch, member=member).first()
    return None if row is None else MemberItem(*row)


def steps(tx: Transaction, member: int) -> list[Execution]:
    """All steps of a member, by stay, phase and place."""
    return _read(tx, STEPS, member)


def rollbacks(tx: Transaction, member: int) -> list[Execution]:
    """All steps of a member's rollbacks, by the step they undo."""
    return _read(tx, ROLLBACKS, member)


def removals(tx: Transaction, member: int) -> list[Execution]:
    """All steps of a member's leavings, by stay."""
    return _read(tx, REMOVALS, member)


def _read(tx: Transaction, statement: Select[Any], member: int) -> list[Execution]:
    rows = tx.execute(statement, member=member)
    return [Execution(StepItem(*row[:_STEP_FIELDS]), *row[_STEP_FIELDS:]) for row in rows]
