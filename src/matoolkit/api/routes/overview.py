"""What an operator asks at night: how is all of it, what failed, where is this person, what was done to them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from matoolkit.api import attention, views
from matoolkit.api.access import Anybody, Work
from matoolkit.api.errors import BadRequest, NotFound
from matoolkit.api.overview_answers import (
    FailureAnswer,
    FailureList,
    HeldAnswer,
    MemberHistory,
    MemberPlaces,
    NextPhaseAnswer,
    RunbookTroubleAnswer,
    SchedulerAnswer,
    StatusAnswer,
    Whereabouts,
)
from matoolkit.api.paging import LARGEST_ID, Cursor, Offset, cursor_after, id_of
from matoolkit.api.routes.batches import found
from matoolkit.api.routes.documented import Id, errors
from matoolkit.api.sign_in import Role
from matoolkit.api.waiting import Waiting
from matoolkit.store import batch_lists, leases, overview, whereabouts
from matoolkit.store.states import MemberStatus

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.api.services import Services
    from matoolkit.store.database import Transaction

router = APIRouter(tags=["overview"])

_MOST_LISTED = 50


@router.get("/api/status", summary="Say how all of it is", responses=errors())
async def get_status(services: Work, _who: Anybody) -> StatusAnswer:
    """What is open, what comes next, and in `attention`, in words, what a person should look at."""
    return await services.read(lambda tx: _status(services, tx))


@router.get("/api/members", summary="Find a person", responses=errors())
async def find_members(
    *,
    services: Work,
    who: Anybody,
    key: Annotated[str, Query(min_length=1, max_length=512, description="The member's key, in any case.")],
    limit: Annotated[int, Query(ge=1, le=50)] = 20,
    offset: Offset = 0,
    cursor: Cursor = None,
) -> MemberPlaces:
    """Every batch in which they are or were, the latest first. Data as in a batch's members."""
    before = id_of("places", cursor, offset, LARGEST_ID)
    if "\0" in key:
        raise BadRequest("a key holds no NUL character")
    with_data = who.has(Role.ADMIN, Role.READER)

    def look(tx: Transaction) -> MemberPlaces:
        rows = whereabouts.places(tx, key.strip(), before=before, skip=offset, size=limit + 1)
        more = cursor_after("places", rows[limit - 1][1].id) if len(rows) > limit else None
        rows = rows[:limit]
        counts = batch_lists.members_by_status(tx, [batch.id for batch, _ in rows])
        places = []
        for batch, member in rows:
            phases = batch_lists.phases(tx, batch.id)
            waiting = Waiting(tx, batch, phases, services.queues, services.clock.now()).of_members([member])
            places.append(
                Whereabouts(
                    batch=views.batch_summary(batch, counts[batch.id]),
                    member=views.member(member, waiting, with_data=with_data),
                )
            )
        return MemberPlaces(places=places, next_cursor=more)

    return await services.read(look)


@router.get("/api/batches/{batch_id}/members/{member_id}", summary="Show a member", responses=errors(404))
async def get_member(services: Work, who: Anybody, batch_id: Id, member_id: Id) -> MemberHistory:
    """With every step of every stay, what undid them, and what was done as they left.

    Data, parameters and results need the role Reader or Admin, and are null without it.
    """
    with_data = who.has(Role.ADMIN, Role.READER)

    def look(tx: Transaction) -> MemberHistory:
        batch = found(tx, batch_id)
        member = whereabouts.member(tx, batch_id, member_id)
        if member is None:
            raise NotFound(f"batch {batch_id} has no member {member_id}")
        waiting = Waiting(tx, batch, batch_lists.phases(tx, batch_id), services.queues, services.clock.now())
        steps = whereabouts.steps(tx, member_id)
        rollbacks, removals = whereabouts.rollbacks(tx, member_id), whereabouts.removals(tx, member_id)
        of_steps = waiting.of_steps([each.step for each in steps])
        of_rollbacks = waiting.of_sequences([(each.undoes, each.step) for each in rollbacks])
        of_removals = waiting.of_sequences([(each.generation, each.step) for each in removals])
        return MemberHistory(
            batch_id=batch_id,
            member=views.member(member, waiting.of_members([member]), with_data=with_data),
            steps=[views.execution(each, of_steps, with_data=with_data) for each in steps],
            rollbacks=[views.execution(each, of_rollbacks, with_data=with_data) for each in rollbacks],
            removals=[views.execution(each, of_removals, with_data=with_data) for each in removals],
        )

    return await services.read(look)


@router.get("/api/batches/{batch_id}/failures", summary="Say what went wrong in a batch", responses=errors(404))
async def list_failures(
    services: Work, _who: Anybody, batch_id: Id, limit: Annotated[int, Query(ge=1, le=500)] = 100
) -> FailureList:
    """Failures alike are counted together, the most frequent first: of steps, init, rollbacks and leavings."""

    def look(tx: Transaction) -> FailureList:
        found(tx, batch_id)
        rows = overview.failures(tx, batch_id, limit)
        return FailureList(batch_id=batch_id, failures=[FailureAnswer.model_validate(_fields(each)) for each in rows])

    return await services.read(look)


def _status(services: Services, tx: Transaction) -> StatusAnswer:
    now = services.clock.now()
    rows = batch_lists.still_open(tx, _MOST_LISTED)
    counts = batch_lists.members_by_status(tx, [row.id for row in rows])
    phases = overview.next_phases(tx, _MOST_LISTED)
    held, troubles = overview.held(tx, _MOST_LISTED), overview.troubles(tx, _MOST_LISTED)
    dead = overview.dead(tx)
    queues = None if services.queues is None else services.queues.all(tx)
    waited_for = overview.waited_for(tx) if queues is not None and None not in queues else {}
    lease, moment = leases.read(tx, leases.SCHEDULER), now
    if tx.dialect != "sqlite":
        moment = leases.database_time(tx)
    lines = chain(
        attention.scheduler_line(lease, moment, is_needed=overview.needs_a_scheduler(tx)),
        attention.late_phases(phases, now),
        attention.worker_lines(queues, waited_for, now),
        attention.held_lines(held),
        attention.trouble_lines(troubles),
        attention.dead_line(dead),
        attention.failed_lines(
            {row.id: counts[row.id].get(MemberStatus.FAILED, 0) for row in rows},
            {row.id: row.runbook_name for row in rows},
        ),
    )
    return StatusAnswer(
        at=now,
        attention=list(lines),
        batches_by_status=overview.batches_by_status(tx),
        open_batches=[views.batch_summary(row, counts[row.id]) for row in rows],
        next_phases=[NextPhaseAnswer.model_validate(_fields(each)) for each in phases],
        scheduler=_scheduler(lease, moment),
        workers=None if queues is None else [views.worker(name, each, now) for name, each in queues.items()],
        held_removals=[HeldAnswer.model_validate(_fields(each)) for each in held],
        dead_letters=dead,
        runbook_errors=[RunbookTroubleAnswer.model_validate(_fields(each)) for each in troubles],
    )


def _scheduler(lease: tuple[str, datetime] | None, now: datetime) -> SchedulerAnswer:
    if lease is None:
        return SchedulerAnswer(is_running=False, holder=None, lease_expires_at=None)
    return SchedulerAnswer(is_running=lease[1] > now, holder=lease[0], lease_expires_at=lease[1])


def _fields(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__struct_fields__}
