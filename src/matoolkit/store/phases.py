"""Phases of batches, and the steps of their members, written in chunks when a phase starts."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Integer,
    and_,
    bindparam,
    exists,
    false,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)

from matoolkit.store.executions import PLANNED
from matoolkit.store.guards import checked
from matoolkit.store.locking import IDS
from matoolkit.store.schema import batch_members, batches, phase_executions, step_executions
from matoolkit.store.states import (
    OPEN_EXECUTION,
    BatchStatus,
    ExecutionStatus,
    MemberStatus,
    PhaseStatus,
    SkipReason,
)
from matoolkit.store.types import UtcDateTime, whether

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matoolkit.store.database import Transaction


class Phase(msgspec.Struct, frozen=True):
    """A phase of a batch, as it was read."""

    id: int
    batch_id: int
    phase_name: str
    runbook_version: int
    status: str
    skip_reason: str | None
    offset_minutes: int
    due_at: datetime | None
    expanded_to_member_id: int
    expanded_at: datetime | None

    @property
    def can_be_caught_up_on(self) -> bool:
        """Whether a member that joins now must run it: everybody else has been started on it."""
        return self.status in (PhaseStatus.DISPATCHED, PhaseStatus.COMPLETED, PhaseStatus.FAILED) or (
            self.status == PhaseStatus.SKIPPED and self.skip_reason == SkipReason.EMPTY
        )


_p, _m, _s = phase_executions.c, batch_members.c, step_executions.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)
_READ = select(
    _p.id,
    _p.batch_id,
    _p.phase_name,
    _p.runbook_version,
    _p.status,
    _p.skip_reason,
    _p.offset_minutes,
    _p.due_at,
    _p.expanded_to_member_id,
    _p.expanded_at,
)
READ = _READ.join(IDS.table, IDS.c.id == _p.id)
OF_BATCHES = _READ.join(IDS.table, IDS.c.id == _p.batch_id).order_by(_p.id)

EXPANDED_TO = (
    update(phase_executions)
    .where(
        _p.id == bindparam("phase"),
        _p.status == PhaseStatus.DISPATCHED,
        _p.expanded_at.is_(None),
        _p.expanded_to_member_id == bindparam("after"),
    )
    .values(
        expanded_to_member_id=bindparam("through"),
        expansion_moved_at=_now,
        expanded_at=bindparam("expanded_at", type_=UtcDateTime),
    )
)
"""A chunk's members are started; of two who start the same chunk only one finds the phase where it expects it."""

CLOSE = (
    update(phase_executions)
    .where(_p.id == bindparam("phase"), _p.status == PhaseStatus.DISPATCHED, _p.expanded_at.is_not(None))
    .values(status=bindparam("outcome"), skip_reason=bindparam("reason"), completed_at=_now)
)
END_OPEN = (
    update(phase_executions)
    .where(
        _p.batch_id == bindparam("batch"),
        _p.status.in_((PhaseStatus.PENDING, PhaseStatus.DISPATCHED)),
    )
    .values(status=bindparam("outcome"), skip_reason=bindparam("reason"), completed_at=_now)
)

_OTHER = step_executions.alias("other")
_FIRST_OPEN_IN_PHASE = exists().where(_s.phase_execution_id == _p.id, _s.status.in_(OPEN_EXECUTION))
_CLOSABLE = and_(_p.status == PhaseStatus.DISPATCHED, _p.expanded_at.is_not(None), ~_FIRST_OPEN_IN_PHASE)
_ANY_THROUGH = exists().where(
    _OTHER.c.batch_id == _p.batch_id,
    _OTHER.c.phase_execution_id == _p.id,
    _OTHER.c.status == ExecutionStatus.SUCCEEDED,
    _OTHER.c.step_index == bindparam("last_step", type_=Integer),
)
_ANY_FAILED = exists().where(_m.batch_id == _p.batch_id, _m.status == MemberStatus.FAILED)
CLOSABLE_AMONG = _READ.join(IDS.table, IDS.c.id == _p.id).where(_CLOSABLE).order_by(_p.id)
CLOSABLE = select(_p.id, _p.batch_id).where(_CLOSABLE).order_by(_p.id).limit(bindparam("size", type_=Integer))
OUTCOME = select(whether(_ANY_THROUGH).label("any_through"), whether(_ANY_FAILED).label("any_failed")).where(
    _p.id == bindparam("phase")
)
UNEXPANDED_BEFORE = (
    select(_p.id)
    .where(
        _p.batch_id == bindparam("batch"),
        _p.status == PhaseStatus.DISPATCHED,
        _p.expanded_at.is_(None),
        _p.id < bindparam("phase"),
    )
    .limit(1)
)
"""Phases start in the order of their ids, which is that of time: a later one waits until an earlier one is written."""
NEXT_UNEXPANDED = (
    _READ.where(_p.batch_id == bindparam("batch"), _p.status == PhaseStatus.DISPATCHED, _p.expanded_at.is_(None))
    .order_by(_p.id)
    .limit(1)
)
STALLED = (
    _READ.join(batches, batches.c.id == _p.batch_id)
    .where(
        _p.status == PhaseStatus.DISPATCHED,
        _p.expanded_at.is_(None),
        batches.c.status == BatchStatus.ACTIVE,
        or_(_p.expansion_moved_at.is_(None), _p.expansion_moved_at < bindparam("before", type_=UtcDateTime)),
        _p.dispatched_at < bindparam("before", type_=UtcDateTime),
    )
    .order_by(_p.id)
)
"""Phases that were sent and whose chunks have stopped coming."""

_there = (
    select(_OTHER.c.id)
    .where(
        _OTHER.c.batch_member_id == _m.id,
        _OTHER.c.phase_execution_id == PLANNED.c.parent_id,
        _OTHER.c.generation == _m.generation,
        _OTHER.c.step_index == PLANNED.c.step_index,
    )
    .correlate(batch_members, PLANNED.table)
    .scalar_subquery()
)
"""The step that is there already, asked for as a value: a look into the unique index for each. PostgreSQL makes a join
of `EXISTS`, which without statistics is one of all rows with all rows, and takes seconds."""
_STEP_COLUMNS = [
    "batch_id",
    "runbook_version",
    "step_name",
    "step_index",
    "worker_id",
    "function_name",
    "timeout_sec",
    "on_failure",
    "is_poll_step",
    "poll_interval_sec",
    "poll_timeout_sec",
    "max_retries",
    "retry_interval_sec",
]


def _writing(who: Sequence[ColumnElement[bool]]) -> Any:
    """Steps of the phases in `PLANNED.parent_id` for some members, where they are not written yet."""
    return insert(step_executions).from_select(
        [*_STEP_COLUMNS, "phase_execution_id", "batch_member_id", "generation"],
        select(*(PLANNED.c[name] for name in _STEP_COLUMNS), PLANNED.c.parent_id, _m.id, _m.generation)
        .select_from(batch_members.join(PLANNED.table, literal(1) == literal(1)))
        .where(*who, _m.status == MemberStatus.ACTIVE, _there.is_(None))
        .order_by(_m.id, PLANNED.c.parent_id, PLANNED.c.step_index),
    )


WRITE_CHUNK = _writing(
    [
        _m.batch_id == bindparam("batch"),
        _m.id > bindparam("after"),
        _m.id <= bindparam("through"),
        _m.catch_up_due == false(),
    ],
)
WRITE_CATCH_UP = _writing([_m.id == bindparam("member"), _m.batch_id == PLANNED.c.batch_id, _m.catch_up_due == true()])

CANCEL_STEPS = (
    update(step_executions)
    .where(_s.batch_member_id == IDS.c.id, checked(_s.status).in_(OPEN_EXECUTION))
    .values(status=ExecutionStatus.CANCELLED, completed_at=_now, poll_check_at=None, retry_after=None)
    .returning(_s.phase_execution_id)
)
"""Nothing more is sent for these members; a job that is out stays noted as out until it reports."""


def read(tx: Transaction, ids: Iterable[int]) -> dict[int, Phase]:
    """Phases by their ids."""
    wanted = [(each,) for each in sorted(set(ids))]
    return {row[0]: Phase(*row) for row in tx.with_rows(READ, IDS, wanted)} if wanted else {}


def of_batches(tx: Transaction, ids: Iterable[int]) -> dict[int, list[Phase]]:
    """The phases of some batches, in the order of their ids."""
    wanted = [(each,) for each in sorted(set(ids))]
    found: dict[int, list[Phase]] = {each: [] for (each,) in wanted}
    if wanted:
        for row in tx.with_rows(OF_BATCHES, IDS, wanted):
            found[row[1]].append(Phase(*row))
    return found


def has_unexpanded_before(tx: Transaction, phase: Phase) -> bool:
    """Whether an earlier phase of its batch is still being written."""
    return tx.execute(UNEXPANDED_BEFORE, batch=phase.batch_id, phase=phase.id).first() is not None


def next_unexpanded(tx: Transaction, batch: int) -> Phase | None:
    """The first phase of a batch that is sent and not written for every member."""
    row = tx.execute(NEXT_UNEXPANDED, batch=batch).first()
    return None if row is None else Phase(*row)


def write_chunk(tx: Transaction, phase: Phase, planned: Sequence[Sequence[Any]], after: int, through: int) -> None:
    """The steps of a phase for the active members between two ids."""
    tx.with_rows(WRITE_CHUNK, PLANNED, planned, batch=phase.batch_id, after=after, through=through)


def write_catch_up(tx: Transaction, member: int, planned: Sequence[Sequence[Any]]) -> None:
    """The steps of the phases a member missed."""
    if planned:
        tx.with_rows(WRITE_CATCH_UP, PLANNED, planned, member=member)


def expanded_to(
    tx: Transaction, phase: Phase, after: int, through: int, *, expanded_at: datetime | None, now: datetime
) -> None:
    """Note how far a phase is written, and that it is written wholly when that is so."""
    tx.change(EXPANDED_TO, 1, phase=phase.id, after=after, through=through, expanded_at=expanded_at, now=now)


def closable_among(tx: Transaction, ids: Iterable[int]) -> list[Phase]:
    """Of these phases those whose members have all ended."""
    wanted = [(each,) for each in sorted(set(ids))]
    return [Phase(*row) for row in tx.with_rows(CLOSABLE_AMONG, IDS, wanted)] if wanted else []


def closable(tx: Transaction, size: int) -> list[tuple[int, int]]:
    """Phases, with their batches, whose members have all ended and that nobody has closed."""
    return [(row[0], row[1]) for row in tx.execute(CLOSABLE, size=size)]


def outcome(tx: Transaction, phase: Phase, last_step: int) -> tuple[bool, bool]:
    """Whether any member went through all steps of a phase, and whether any member of the batch failed."""
    row = tx.execute(OUTCOME, phase=phase.id, last_step=last_step).one()
    return bool(row[0]), bool(row[1])


def close(tx: Transaction, phase: Phase, status: PhaseStatus, reason: SkipReason | None, now: datetime) -> None:
    """From dispatched to an end; the caller holds the batch's lock."""
    tx.change(CLOSE, 1, phase=phase.id, outcome=status, reason=reason, now=now)


def end_open(tx: Transaction, batch: int, status: PhaseStatus, reason: SkipReason | None, now: datetime) -> None:
    """All that have not ended, because their batch has."""
    tx.execute(END_OPEN, batch=batch, outcome=status, reason=reason, now=now)


def stalled(tx: Transaction, before: datetime) -> list[Phase]:
    """Phases whose chunks have stopped coming."""
    return [Phase(*row) for row in tx.execute(STALLED, before=before)]


def cancel_steps(tx: Transaction, members: Iterable[int], now: datetime) -> set[int]:
    """Whatever is open of some members; the phases that may be over thereby."""
    wanted = [(each,) for each in sorted(set(members))]
    return {row[0] for row in tx.with_rows(CANCEL_STEPS, IDS, wanted, now=now)} if wanted else set()
