"""What must always be true of a database, stated once: for the simulation, the tests and `matoolkit doctor`.

Each invariant is a query that finds what breaks it. Some hold at every moment; others once everything has come to rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, Subquery, and_, exists, func, or_, select, true, union_all

from matoolkit.messages import Kind
from matoolkit.store.executions import TABLES
from matoolkit.store.schema import (
    batch_members,
    batches,
    dead_messages,
    init_executions,
    phase_executions,
    removal_executions,
    rollback_executions,
    step_executions,
)
from matoolkit.store.states import (
    FAILED_EXECUTION,
    OPEN_BATCH,
    OPEN_EXECUTION,
    OPEN_PHASE,
    BatchStatus,
    ExecutionStatus,
    MemberStatus,
    PhaseStatus,
    SequenceStatus,
    SkipReason,
)

if TYPE_CHECKING:
    from matoolkit.store.database import Transaction

_b, _p, _m, _s = batches.c, phase_executions.c, batch_members.c, step_executions.c
_BEGUN = (
    ExecutionStatus.DISPATCHED,
    ExecutionStatus.POLLING,
    ExecutionStatus.SUCCEEDED,
    *FAILED_EXECUTION,
)


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be."""

    invariant: str
    subject: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.subject}"


@dataclass(frozen=True, slots=True)
class Invariant:
    """A sentence that must be true, and the query that finds what makes it false."""

    sentence: str
    broken_by: Select[Any]

    def violations(self, tx: Transaction) -> list[Violation]:
        """What breaks it now."""
        names = self.broken_by.selected_columns.keys()
        return [
            Violation(self.sentence, ", ".join(f"{name} {value}" for name, value in zip(names, row, strict=True)))
            for row in tx.execute(self.broken_by)
        ]


def _jobs_out() -> Subquery:
    """Members for whom jobs are out, of whatever kind."""
    return union_all(
        *(
            select(TABLES[kind].c.batch_member_id.label("member")).where(
                TABLES[kind].c.job_out == true(), TABLES[kind].c.batch_member_id.is_not(None)
            )
            for kind in (Kind.STEP, Kind.ROLLBACK, Kind.REMOVAL)
        )
    ).subquery("jobs_out")


_out = _jobs_out()
_earlier = step_executions.alias("earlier")
_elsewhere = batch_members.alias("elsewhere")
_its_batch = batches.alias("its_batch")

BY_TIMES: tuple[Invariant, ...] = (
    Invariant(
        "a cancelled step was not sent after its member left",
        select(_s.id.label("step"))
        .join(batch_members, _m.id == _s.batch_member_id)
        .where(_m.status == MemberStatus.REMOVED, _s.generation == _m.generation, _s.dispatched_at > _m.removed_at),
    ),
    Invariant(
        "no step was sent after its batch was cancelled",
        select(_s.id.label("step"))
        .join(batches, _b.id == _s.batch_id)
        .where(_b.status == BatchStatus.CANCELLED, _s.dispatched_at > _b.completed_at),
    ),
)
"""Of those that hold at every moment, the ones that are seen by comparing times: where clocks agree."""

ALWAYS: tuple[Invariant, ...] = (
    Invariant(
        "a member has at most one job under way",
        select(_out.c.member).group_by(_out.c.member).having(func.count() > 1),
    ),
    Invariant(
        "a member begins a step only when the one before it succeeded",
        select(_s.id.label("step"))
        .join(
            _earlier,
            and_(
                _earlier.c.batch_member_id == _s.batch_member_id,
                _earlier.c.phase_execution_id == _s.phase_execution_id,
                _earlier.c.generation == _s.generation,
                _earlier.c.step_index == _s.step_index - 1,
            ),
        )
        .where(_s.status.in_(_BEGUN), _earlier.c.status != ExecutionStatus.SUCCEEDED),
    ),
    Invariant(
        "a member begins a phase only when all it had begun before is over",
        select(_s.id.label("step"))
        .join(
            _earlier,
            and_(
                _earlier.c.batch_member_id == _s.batch_member_id,
                _earlier.c.phase_execution_id < _s.phase_execution_id,
                _earlier.c.generation == _s.generation,
            ),
        )
        .where(_s.status.in_(_BEGUN), _earlier.c.status.in_(OPEN_EXECUTION)),
    ),
    *(
        Invariant(
            f"a {kind} execution is tried again at most as often as it may",
            select(table.c.id).where(table.c.retry_count > table.c.max_retries),
        )
        for kind, table in TABLES.items()
    ),
    *(
        Invariant(
            f"a {kind} execution that ended says when, and how when it failed",
            select(table.c.id).where(
                or_(
                    and_(table.c.status.not_in(OPEN_EXECUTION), table.c.completed_at.is_(None)),
                    and_(table.c.status.in_(FAILED_EXECUTION), table.c.error_message.is_(None)),
                )
            ),
        )
        for kind, table in TABLES.items()
    ),
    *(
        Invariant(
            f"a dispatched {kind} execution has its job out, and one that ended has not",
            select(table.c.id).where(
                or_(
                    and_(table.c.status == ExecutionStatus.DISPATCHED, table.c.job_out != true()),
                    and_(
                        table.c.job_out == true(),
                        table.c.status.in_((ExecutionStatus.PENDING, ExecutionStatus.SUCCEEDED, *FAILED_EXECUTION)),
                    ),
                )
            ),
        )
        for kind, table in TABLES.items()
    ),
    Invariant(
        "a batch that ended has no open phase",
        select(_p.id.label("phase"))
        .join(batches, _b.id == _p.batch_id)
        .where(_b.status.not_in(OPEN_BATCH), _p.status.in_(OPEN_PHASE)),
    ),
    Invariant(
        "a phase runs only in a batch whose init is done",
        select(_p.id.label("phase"))
        .join(batches, _b.id == _p.batch_id)
        .where(
            _b.status.in_((BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED)),
            _p.status.not_in((PhaseStatus.PENDING,)),
        ),
    ),
    Invariant(
        "who failed or is through has no open step",
        select(_m.id.label("member"), _s.id.label("step"))
        .join(step_executions, _s.batch_member_id == _m.id)
        .where(_m.status.in_((MemberStatus.FAILED, MemberStatus.COMPLETED)), _s.status.in_(OPEN_EXECUTION)),
    ),
    Invariant(
        "who failed in a batch that went on has a step that failed",
        select(_m.id.label("member"))
        .join(batches, _b.id == _m.batch_id)
        .where(
            _m.status == MemberStatus.FAILED,
            ~exists().where(_s.batch_member_id == _m.id, _s.status.in_(FAILED_EXECUTION)),
            ~exists().where(init_executions.c.batch_id == _b.id, init_executions.c.status.in_(FAILED_EXECUTION)),
        ),
    ),
    Invariant(
        "who is through failed nowhere in this stay",
        select(_m.id.label("member"), _s.id.label("step"))
        .join(step_executions, and_(_s.batch_member_id == _m.id, _s.generation == _m.generation))
        .where(_m.status == MemberStatus.COMPLETED, _s.status.in_((*FAILED_EXECUTION, ExecutionStatus.CANCELLED))),
    ),
    Invariant(
        "a phase that is written wholly has steps for every active member",
        select(_p.id.label("phase"), _m.id.label("member"))
        .join(batches, _b.id == _p.batch_id)
        .join(batch_members, _m.batch_id == _p.batch_id)
        .where(
            _b.status == BatchStatus.ACTIVE,
            _p.expanded_at.is_not(None),
            _p.status.in_((PhaseStatus.DISPATCHED, PhaseStatus.COMPLETED, PhaseStatus.FAILED)),
            _m.status == MemberStatus.ACTIVE,
            _m.catch_up_due != true(),
            ~exists().where(
                _s.phase_execution_id == _p.id, _s.batch_member_id == _m.id, _s.generation == _m.generation
            ),
        ),
    ),
    Invariant(
        "a completed phase had a member who went through it",
        select(_p.id.label("phase")).where(
            _p.status == PhaseStatus.COMPLETED,
            ~exists().where(_s.phase_execution_id == _p.id, _s.status == ExecutionStatus.SUCCEEDED),
        ),
    ),
    Invariant(
        "a failed phase had members who failed",
        select(_p.id.label("phase")).where(
            _p.status == PhaseStatus.FAILED,
            ~exists().where(_m.batch_id == _p.batch_id, _m.status == MemberStatus.FAILED),
        ),
    ),
    Invariant(
        "a batch that completed did not fail throughout",
        select(_b.id.label("batch")).where(
            _b.status == BatchStatus.COMPLETED,
            exists().where(_p.batch_id == _b.id, _p.status == PhaseStatus.FAILED),
            ~exists().where(_p.batch_id == _b.id, _p.status == PhaseStatus.COMPLETED),
        ),
    ),
    Invariant(
        "a batch fails only through its init or when no phase ended well",
        select(_b.id.label("batch")).where(
            _b.status == BatchStatus.FAILED,
            exists().where(_p.batch_id == _b.id, _p.status == PhaseStatus.COMPLETED),
        ),
    ),
    Invariant(
        "who has left waits until the hands are still before the steps of leaving begin",
        select(removal_executions.c.id.label("removal"))
        .join(_out, _out.c.member == removal_executions.c.batch_member_id)
        .where(
            removal_executions.c.job_out == true(),
            exists().where(
                _s.batch_member_id == removal_executions.c.batch_member_id,
                or_(_s.job_out == true(), and_(_s.status == ExecutionStatus.POLLING)),
            ),
        ),
    ),
    Invariant(
        "a key is active in at most one open batch of a runbook",
        select(_b.runbook_name_folded.label("runbook"), func.min(_m.id).label("member"))
        .join(batches, _b.id == _m.batch_id)
        .where(_m.status == MemberStatus.ACTIVE, _b.status.in_(OPEN_BATCH))
        .group_by(_b.runbook_name_folded, _m.member_key_folded)
        .having(func.count() > 1),
    ),
    Invariant(
        "jobs are under way for a key in at most one batch of a runbook",
        select(_b.runbook_name_folded.label("runbook"), func.min(_m.id).label("member"))
        .select_from(_out)
        .join(batch_members, _m.id == _out.c.member)
        .join(batches, _b.id == _m.batch_id)
        .group_by(_b.runbook_name_folded, _m.member_key_folded)
        .having(func.count(_m.batch_id.distinct()) > 1),
    ),
    *BY_TIMES,
)

AT_REST: tuple[Invariant, ...] = (
    Invariant("every batch has ended", select(_b.id.label("batch"), _b.status).where(_b.status.in_(OPEN_BATCH))),
    Invariant(
        "every member has one final state",
        select(_m.id.label("member"), _m.status).where(_m.status == MemberStatus.ACTIVE),
    ),
    Invariant(
        "nobody's coming or leaving is still to be handled",
        select(_m.id.label("member")).where(or_(_m.catch_up_due == true(), _m.removal_due == true())),
    ),
    Invariant("every batch is wound up", select(_b.id.label("batch")).where(_b.winding_up == true())),
    *(
        Invariant(
            f"no {kind} execution is open or has its job out",
            select(table.c.id, table.c.status).where(
                or_(table.c.status.in_(OPEN_EXECUTION), table.c.job_out == true())
            ),
        )
        for kind, table in TABLES.items()
    ),
    Invariant(
        "no rollback is under way",
        select(_s.id.label("step")).where(_s.rollback_status == SequenceStatus.RUNNING),
    ),
    Invariant(
        "what failed and names a rollback was undone, or that failed, or its batch ended",
        select(_s.id.label("step")).where(
            _s.status.in_(FAILED_EXECUTION), _s.on_failure.is_not(None), _s.rollback_status.is_(None)
        ),
    ),
    Invariant(
        "a rollback that succeeded had all its steps succeed",
        select(_s.id.label("step"))
        .join(rollback_executions, rollback_executions.c.step_execution_id == _s.id)
        .where(
            _s.rollback_status == SequenceStatus.SUCCEEDED,
            rollback_executions.c.status != ExecutionStatus.SUCCEEDED,
        ),
    ),
    Invariant(
        "a rollback that failed has a step that failed",
        select(_s.id.label("step")).where(
            _s.rollback_status == SequenceStatus.FAILED,
            ~exists().where(
                rollback_executions.c.step_execution_id == _s.id, rollback_executions.c.status.in_(FAILED_EXECUTION)
            ),
        ),
    ),
    Invariant(
        "who is through went through every phase that ran",
        select(_m.id.label("member"), _p.id.label("phase"))
        .join(phase_executions, _p.batch_id == _m.batch_id)
        .join(batches, _b.id == _m.batch_id)
        .where(
            _m.status == MemberStatus.COMPLETED,
            or_(
                _p.status.in_((PhaseStatus.COMPLETED, PhaseStatus.FAILED)),
                and_(_p.status == PhaseStatus.SKIPPED, _p.skip_reason == SkipReason.EMPTY),
            ),
            _p.expanded_at.is_not(None),
            or_(
                and_(
                    ~exists().where(
                        _s.phase_execution_id == _p.id, _s.batch_member_id == _m.id, _s.generation == _m.generation
                    ),
                    # Who has got another date meanwhile takes no part in what a new version adds to the first.
                    ~exists()
                    .where(
                        _elsewhere.c.member_key_folded == _m.member_key_folded,
                        _elsewhere.c.batch_id != _m.batch_id,
                        _elsewhere.c.batch_id == _its_batch.c.id,
                        _its_batch.c.runbook_name_folded == _b.runbook_name_folded,
                    )
                    .correlate(batch_members, batches),
                ),
                exists().where(
                    _s.phase_execution_id == _p.id,
                    _s.batch_member_id == _m.id,
                    _s.generation == _m.generation,
                    _s.status != ExecutionStatus.SUCCEEDED,
                ),
            ),
        ),
    ),
    Invariant("no message was put aside", select(dead_messages.c.id.label("message"), dead_messages.c.reason)),
)


def check(tx: Transaction, invariants: tuple[Invariant, ...] = ALWAYS) -> list[Violation]:
    """Everything that breaks any of them now."""
    return [violation for invariant in invariants for violation in invariant.violations(tx)]
