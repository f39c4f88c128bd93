"""A crowd: 10,000 members with 50,000 steps in every state, in which a bad plan shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import case, false, insert, literal, null, select, text, true, update

from matoolkit.store import creation, phases
from matoolkit.store.schema import (
    batch_members,
    batches,
    phase_executions,
    removal_executions,
    rollback_executions,
    step_executions,
)
from matoolkit.store.states import BatchStatus, ExecutionStatus, MemberStatus, PhaseStatus
from tests.store.world import NOW, planned_row, publish

if TYPE_CHECKING:
    from matoolkit.store.database import Database, Transaction

MEMBERS = 10_000
_s, _m = step_executions.c, batch_members.c


class Crowd(NamedTuple):
    """Where the crowd is."""

    database: Database
    batch: int
    phases: list[int]


def gather(database: Database, *, statistics: bool) -> Crowd:
    """Write everybody into an empty database; `statistics` are what planners go by when they have them."""
    with database.transaction() as tx:
        runbook = publish(tx)
        batch = creation.create_batch(tx, runbook, name_folded="wave", start_time=NOW, now=NOW)
        keys = [f"user{number}@example.test" for number in range(MEMBERS)]
        creation.add_members(tx, batch, [(key, key, '{"a": 1}') for key in keys], NOW, late=False)
        plans = [{"phase_name": name, "offset_minutes": 0, "due_at": NOW} for name in ("copy", "move", "tidy")]
        creation.add_phases(tx, batch, 1, plans)
        creation.loaded(tx, batch, NOW)
        tx.execute(update(batches).values(status=BatchStatus.ACTIVE))
        ids = list(tx.execute(select(phase_executions.c.id).order_by(phase_executions.c.id)).scalars())
        running = phase_executions.c.id.in_(ids[:2])
        tx.execute(update(phase_executions).where(running).values(status=PhaseStatus.DISPATCHED, expanded_at=NOW))
        found = phases.read(tx, ids)
        for phase, steps in zip(ids[:2], (3, 2), strict=True):
            planned = [planned_row(step_index=index, batch_id=batch, parent_id=phase) for index in range(steps)]
            phases.write_chunk(tx, found[phase], planned, after=0, through=10**9)
        _spread(tx, ids)
        _undo(tx)
    if not statistics:
        return Crowd(database, batch, ids)
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    return Crowd(database, batch, ids)


def _spread(tx: Transaction, ids: list[int]) -> None:
    """Most are through the first phase and on their way in the second; some wait, poll, failed or left."""
    kind = _m.id % 10
    tx.execute(
        update(batch_members)
        .where(kind == 0, _m.id % 100 == 0)
        .values(status=MemberStatus.REMOVED, removal_due=_m.id % 1000 == 0)
    )
    tx.execute(update(batch_members).where(kind == 1, _m.id % 100 == 1).values(status=MemberStatus.FAILED))
    kind = _s.batch_member_id % 10
    first = (_s.phase_execution_id == ids[0]) & (kind < 8)
    tx.execute(update(step_executions).where(first).values(status=ExecutionStatus.SUCCEEDED))
    now = {"dispatched_at": NOW, "job_id": literal("job"), "job_not_after": NOW}
    second = (_s.phase_execution_id == ids[1]) & (_s.step_index == 0)
    for condition, values in (
        (second & (kind < 4), {"status": ExecutionStatus.DISPATCHED, "job_out": true(), **now}),
        (second & (kind == 4), {"status": ExecutionStatus.POLLING, "job_out": false(), "poll_check_at": NOW, **now}),
        (second & (kind == 5), {"status": ExecutionStatus.PENDING, "retry_after": NOW, "retry_count": 1}),
        ((_s.phase_execution_id == ids[1]) & (kind == 6), {"status": ExecutionStatus.CANCELLED}),
        ((_s.phase_execution_id == ids[1]) & (kind == 7), {"status": ExecutionStatus.SUCCEEDED}),
    ):
        tx.execute(update(step_executions).where(condition).values(**values))


def _undo(tx: Transaction) -> None:
    """Every member has a rollback and a removal, which is more than there will be."""
    shared: dict[str, Any] = {
        "batch_id": _s.batch_id,
        "batch_member_id": _s.batch_member_id,
        "runbook_version": literal(1),
        "step_name": _s.step_name,
        "step_index": literal(0),
        "worker_id": _s.worker_id,
        "function_name": _s.function_name,
        "timeout_sec": _s.timeout_sec,
        "status": case((_s.id % 3 == 0, ExecutionStatus.PENDING.value), else_=ExecutionStatus.SUCCEEDED.value),
        "on_failure": null(),
    }
    for table, own in (
        (rollback_executions, {"rollback_name": literal("undo"), "step_execution_id": _s.id}),
        (removal_executions, {"generation": _s.generation}),
    ):
        values = {**shared, **own}
        chosen = select(*values.values()).where(_s.step_index == 2)
        tx.execute(insert(table).from_select(list(values), chosen))
