"""Members and their steps as people look at them, by the page.

There is a statement for each state, and one for all: the indexes on states are used where a statement names one.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Integer, Select, String, bindparam, func, literal, null, or_, select

from matoolkit.store.guards import checked
from matoolkit.store.locking import IDS
from matoolkit.store.runbooks import folded
from matoolkit.store.schema import (
    batch_members,
    init_executions,
    phase_executions,
    removal_executions,
    rollback_executions,
    step_executions,
)
from matoolkit.store.states import FAILED_EXECUTION, OPEN_EXECUTION, ExecutionStatus, MemberStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Table

    from matoolkit.store.database import Transaction


class MemberItem(msgspec.Struct, frozen=True):
    """A member in a list."""

    id: int
    member_key: str
    status: str
    generation: int
    added_at: datetime
    removed_at: datetime | None
    removed_by: str | None
    failed_at: datetime | None
    completed_at: datetime | None
    removal_held_at: datetime | None
    catch_up_due: bool
    removal_due: bool
    data_json: str
    worker_data_json: str | None


class StepItem(msgspec.Struct, frozen=True):
    """A step in a list: a member's, or one of init."""

    id: int
    phase_execution_id: int | None
    phase_name: str | None
    batch_member_id: int | None
    member_key: str | None
    step_name: str
    step_index: int
    worker_id: str
    function_name: str
    status: str
    job_id: str | None
    job_out: bool
    is_poll_step: bool
    poll_count: int
    poll_check_at: datetime | None
    retry_count: int
    retry_after: datetime | None
    dispatched_at: datetime | None
    completed_at: datetime | None
    error_message: str | None
    on_failure: str | None
    rollback_status: str | None
    runbook_version: int


_m, _p, _s, _i = batch_members.c, phase_executions.c, step_executions.c, init_executions.c
_after: ColumnElement[int] = bindparam("after", type_=BigInteger)
_skip, _size = bindparam("skip", type_=Integer), bindparam("size", type_=Integer)
MEMBER_COLUMNS = (
    _m.id,
    _m.member_key,
    _m.status,
    _m.generation,
    _m.added_at,
    _m.removed_at,
    _m.removed_by,
    _m.failed_at,
    _m.completed_at,
    _m.removal_held_at,
    _m.catch_up_due,
    _m.removal_due,
    _m.data_json,
    _m.worker_data_json,
)
_MEMBERS = select(*MEMBER_COLUMNS)


def _paged(statement: Select[Any], column: ColumnElement[int]) -> Select[Any]:
    return statement.where(column > _after).order_by(column).offset(_skip).limit(_size)


def step_columns(table: Table, *places: Any) -> tuple[Any, ...]:
    """The columns of a `StepItem`; `places` are its phase, the phase's name, its member and the member's key."""
    c = table.c
    return (
        c.id,
        *places,
        c.step_name,
        c.step_index,
        c.worker_id,
        c.function_name,
        c.status,
        c.job_id,
        c.job_out,
        c.is_poll_step,
        c.poll_count,
        c.poll_check_at,
        c.retry_count,
        c.retry_after,
        c.dispatched_at,
        c.completed_at,
        c.error_message,
        c.on_failure,
        # Rollbacks and leavings are not undone themselves.
        c.get("rollback_status", null()),
        c.runbook_version,
    )


_of_batch = _m.batch_id == bindparam("batch")
MEMBERS = _paged(_MEMBERS.where(_of_batch), _m.id)
MEMBERS_IN: dict[MemberStatus, Select[Any]] = {
    state: _paged(_MEMBERS.where(_of_batch, _m.status == state), _m.id) for state in MemberStatus
}
MEMBER_IS_THERE = select(_m.id).where(_m.id == bindparam("member"), _of_batch)
MEMBER_BY_KEY = select(_m.id).where(_m.member_key_folded == bindparam("key"), _of_batch)

_STEPS = (
    select(*step_columns(step_executions, _p.id, _p.phase_name, _m.id, _m.member_key))
    .join(phase_executions, _p.id == _s.phase_execution_id)
    .join(batch_members, _m.id == _s.batch_member_id)
)
# One phase or all: 0 stands for all.
_phase: ColumnElement[int] = bindparam("phases_given", type_=Integer)
_of_phases = or_(_phase == literal(0), _s.phase_execution_id.in_(select(IDS.c.id)))
_steps_of_batch = (_s.batch_id == bindparam("batch"), _of_phases)
_state: ColumnElement[str] = bindparam("state", type_=String)
_steps_of_member = (
    _s.batch_member_id == bindparam("member"),
    _of_phases,
    # Of one member there are few: by whose they are, not by their state.
    or_(_state.is_(None), func.coalesce(_s.status, "") == _state),
)
STEPS = _paged(_STEPS.where(*_steps_of_batch), _s.id)


def _in_state(state: ExecutionStatus) -> tuple[ColumnElement[bool], ...]:
    """In one state, told in the words of the filtered index that has it, for databases that compare words."""
    if state in OPEN_EXECUTION:
        # Found by their phases, of which few run at a time.
        return _s.phase_execution_id.in_(select(IDS.c.id)), _s.status.in_(OPEN_EXECUTION), _s.status == state
    if state in FAILED_EXECUTION:
        return *_steps_of_batch, _s.status.in_(FAILED_EXECUTION), _s.status == state
    return *_steps_of_batch, _s.status == state


STEPS_IN: dict[ExecutionStatus, Select[Any]] = {
    state: _paged(_STEPS.where(*_in_state(state)), _s.id) for state in ExecutionStatus
}
STEPS_OF_MEMBER = _paged(_STEPS.where(*_steps_of_member), _s.id)
COUNT_STEPS = select(func.count()).select_from(step_executions).where(*_steps_of_batch)
COUNT_STEPS_IN: dict[ExecutionStatus, Select[Any]] = {
    state: select(func.count()).select_from(step_executions).where(*_in_state(state)) for state in ExecutionStatus
}
COUNT_STEPS_OF_MEMBER = select(func.count()).select_from(step_executions).where(*_steps_of_member)
_OTHER = step_executions.alias("other")
FIRST_OPEN = _STEPS.join(
    IDS.table,
    _s.id
    == select(_OTHER.c.id)
    .where(_OTHER.c.batch_member_id == IDS.c.id, checked(_OTHER.c.status).in_(OPEN_EXECUTION))
    .order_by(_OTHER.c.phase_execution_id, _OTHER.c.step_index)
    .limit(1)
    .correlate(IDS.table)
    .scalar_subquery(),
)
INIT_STEPS = (
    select(*step_columns(init_executions, literal(None), literal(None), literal(None), literal(None)))
    .where(_i.batch_id == bindparam("batch"))
    .order_by(_i.runbook_version, _i.step_index)
)


def _open_of(table: Table) -> Select[Any]:
    return (
        select(table.c.batch_member_id, table.c.step_name)
        .join(IDS.table, IDS.c.id == table.c.batch_member_id)
        .where(table.c.status.in_(OPEN_EXECUTION))
        .order_by(table.c.batch_member_id, table.c.id)
    )


OPEN_ROLLBACKS = _open_of(rollback_executions)
OPEN_REMOVALS = _open_of(removal_executions)


def members(tx: Transaction, batch: int, *, status: str | None, after: int, skip: int, size: int) -> list[MemberItem]:
    """Members of a batch by id, from the one after `after`."""
    statement = MEMBERS if status is None else MEMBERS_IN[MemberStatus(status)]
    return [MemberItem(*row) for row in tx.execute(statement, batch=batch, after=after, skip=skip, size=size)]


def member_is_there(tx: Transaction, batch: int, member: int) -> bool:
    """Whether a batch has a member of this id."""
    return bool(tx.execute(MEMBER_IS_THERE, member=member, batch=batch).all())


def member_by_key(tx: Transaction, batch: int, key: str) -> int | None:
    """The member of a batch who has this key."""
    found: int | None = tx.execute(MEMBER_BY_KEY, batch=batch, key=folded(key)).scalar()
    return found


def steps(
    tx: Transaction,
    batch: int,
    *,
    status: str | None,
    phases: Sequence[int] | None,
    running: Sequence[int],
    member: int | None,
    after: int,
    skip: int,
    size: int,
) -> tuple[list[StepItem], int]:
    """Steps of a batch by id, from the one after `after`, and how many there are on all pages.

    Of the phases that are given, or of all; `running` are those of the batch in which steps may be open.
    """
    given: dict[str, Any] = {"batch": batch, "phases_given": int(phases is not None)}
    if member is not None:
        listing, counting = STEPS_OF_MEMBER, COUNT_STEPS_OF_MEMBER
        given |= {"member": member, "state": status}
    elif status is not None:
        if status in OPEN_EXECUTION:
            phases = list(running if phases is None else set(running).intersection(phases))
        listing, counting = STEPS_IN[ExecutionStatus(status)], COUNT_STEPS_IN[ExecutionStatus(status)]
    else:
        listing, counting = STEPS, COUNT_STEPS
    chosen = [(each,) for each in phases or ()]
    total = int(tx.with_rows(counting, IDS, chosen, **given).scalar_one())
    rows = tx.with_rows(listing, IDS, chosen, **given, after=after, skip=skip, size=size)
    return [StepItem(*row) for row in rows], total


def init_steps(tx: Transaction, batch: int) -> list[StepItem]:
    """A batch's init steps, by version and in their order."""
    return [StepItem(*row) for row in tx.execute(INIT_STEPS, batch=batch)]


def first_open_steps(tx: Transaction, ids: Sequence[int]) -> dict[int, StepItem]:
    """Of these members those with steps that have not ended, each with the first: where the member is."""
    rows = tx.with_rows(FIRST_OPEN, IDS, [(each,) for each in ids]) if ids else ()
    found = (StepItem(*row) for row in rows)
    return {each.batch_member_id: each for each in found if each.batch_member_id is not None}


def open_sequences(tx: Transaction, ids: Sequence[int]) -> tuple[dict[int, str], dict[int, str]]:
    """Of these members those with a rollback or a removal under way, each with the step it is at."""
    found: list[dict[int, str]] = []
    for statement in (OPEN_ROLLBACKS, OPEN_REMOVALS):
        first: dict[int, str] = {}
        for member, step in tx.with_rows(statement, IDS, [(each,) for each in ids]) if ids else ():
            first.setdefault(member, step)
        found.append(first)
    return found[0], found[1]
