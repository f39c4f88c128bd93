"""Members of batches and their steps: looking at them, and adding or removing them by hand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response

from matoolkit.api import views
from matoolkit.api.access import Admin, Anybody, Work
from matoolkit.api.answers import FileErrorsAnswer, MemberList, MemberRemovedAnswer, MembersAdded, StepList
from matoolkit.api.bodies import uploaded
from matoolkit.api.csv_members import read_members
from matoolkit.api.errors import BadRequest, NotFound
from matoolkit.api.paging import LARGEST_ID, Cursor, Offset, cursor_after, id_of
from matoolkit.api.routes.batches import found
from matoolkit.api.routes.documented import Id, errors, form_body, no_body
from matoolkit.api.sign_in import Role
from matoolkit.api.waiting import Waiting
from matoolkit.api.writing import write
from matoolkit.batches import manual, operating
from matoolkit.runbooks import load_runbook
from matoolkit.store import audit, batch_lists, member_lists
from matoolkit.store import batches as batch_store
from matoolkit.store import runbooks as runbook_store
from matoolkit.store.states import ExecutionStatus, MemberStatus, PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import IO

    from matoolkit.api.services import Services
    from matoolkit.api.sign_in import Identity
    from matoolkit.store.database import Transaction

router = APIRouter(tags=["members"])

Limit = Annotated[int, Query(ge=1, le=1_000)]


@router.get("/api/batches/{batch_id}/members", summary="List a batch's members", responses=errors(404))
async def list_members(
    *,
    services: Work,
    who: Anybody,
    batch_id: Id,
    status: Annotated[MemberStatus | None, Query(description="Only those in this state.")] = None,
    member: Annotated[str | None, Query(max_length=512, description="Only this one, by key or by id.")] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    cursor: Cursor = None,
) -> MemberList:
    """In the order they were added. `data` and `workerData` need the role Reader or Admin, and are null without it."""
    after = id_of("members", cursor, offset, 0)
    if "\0" in (member or ""):
        raise BadRequest("a name holds no NUL character")
    with_data = who.has(Role.ADMIN, Role.READER)

    def look(tx: Transaction) -> MemberList:
        batch = found(tx, batch_id)
        if member is None:
            by_status = batch_lists.members_by_status(tx, [batch_id])[batch_id]
            total = sum(by_status.values()) if status is None else by_status.get(status, 0)
            rows = member_lists.members(tx, batch_id, status=status, after=after, skip=offset, size=limit + 1)
        else:
            wanted = _member(tx, batch_id, member)
            one = member_lists.members(tx, batch_id, status=status, after=wanted - 1, skip=0, size=1) if wanted else []
            one = [row for row in one if row.id == wanted]
            total, rows = len(one), [row for row in one[offset:] if row.id > after]
        more = cursor_after("members", rows[limit - 1].id) if len(rows) > limit else None
        rows = rows[:limit]
        phases = batch_lists.phases(tx, batch_id)
        waiting = Waiting(tx, batch, phases, services.queues, services.clock.now()).of_members(rows)
        return MemberList(
            batch_id=batch_id,
            total=total,
            members=[views.member(row, waiting, with_data=with_data) for row in rows],
            next_cursor=more,
        )

    return await services.read(look)


@router.post(
    "/api/batches/{batch_id}/members",
    summary="Add members to a manual batch",
    response_model=MembersAdded,
    responses=errors(404, 408, 409, of_400=FileErrorsAnswer),
    openapi_extra=form_body(),
)
async def add_members(request: Request, services: Work, who: Admin, batch_id: Id) -> Response:
    """From a CSV file, as a batch is made. They catch up on the phases that have begun; who was removed comes back."""
    async with uploaded(services, request) as upload:
        prepare = partial(_prepare_joining, services, who, batch_id, upload.file)
        return await write(services, request, who, upload.digest, prepare)


@router.delete(
    "/api/batches/{batch_id}/members/{member_id}",
    summary="Remove a member from a manual batch",
    response_model=MemberRemovedAnswer,
    responses=errors(404, 409),
    openapi_extra=no_body(),
)
async def remove_member(request: Request, services: Work, who: Admin, batch_id: Id, member_id: Id) -> Response:
    """What is open of theirs is cancelled; the runbook's steps of leaving run."""

    def action(tx: Transaction, now: datetime) -> MemberRemovedAnswer:
        manual.leave(tx, services.announcer, batch_id, member_id, now, by=who.name)
        target = f"member {member_id} of batch {batch_id}"
        audit.record(tx, now, who.name, "member.removed", target, batch_id=batch_id)
        return MemberRemovedAnswer(message=f"{target} is removed", batch_id=batch_id, member_id=member_id)

    return await write(services, request, who, "", lambda: action)


@router.get("/api/batches/{batch_id}/steps", summary="List the steps of a batch's members", responses=errors(404))
async def list_steps(
    *,
    services: Work,
    _who: Anybody,
    batch_id: Id,
    phase: Annotated[str | None, Query(max_length=256, description="Only of the phase of this name.")] = None,
    status: Annotated[ExecutionStatus | None, Query(description="Only those in this state.")] = None,
    member: Annotated[str | None, Query(max_length=512, description="Only of this member, by key or by id.")] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    cursor: Cursor = None,
) -> StepList:
    """In the order they were written: by phase, then by member, then by place."""
    after = id_of("steps", cursor, offset, 0)
    if "\0" in (phase or "") or "\0" in (member or ""):
        raise BadRequest("a name holds no NUL character")

    def look(tx: Transaction) -> StepList:
        batch = found(tx, batch_id)
        phases = batch_lists.phases(tx, batch_id)
        chosen = None
        if phase is not None:
            chosen = [each.id for each in phases if each.phase_name.casefold() == phase.casefold()]
        whose = None if member is None else _member(tx, batch_id, member)
        rows, total = member_lists.steps(
            tx,
            batch_id,
            status=status,
            phases=chosen,
            running=[each.id for each in phases if each.status != PhaseStatus.PENDING],
            member=whose,
            after=after,
            skip=offset,
            size=limit + 1,
        )
        more = cursor_after("steps", rows[limit - 1].id) if len(rows) > limit else None
        rows = rows[:limit]
        waiting = Waiting(tx, batch, phases, services.queues, services.clock.now()).of_steps(rows)
        return StepList(
            batch_id=batch_id, total=total, steps=[views.step(row, waiting) for row in rows], next_cursor=more
        )

    return await services.read(look)


def _member(tx: Transaction, batch_id: int, named: str) -> int:
    """By key, which may be a number itself; else by id. Of nobody there are no steps."""
    by_key = member_lists.member_by_key(tx, batch_id, named)
    if by_key is not None:
        return by_key
    number = int(named) if named.isascii() and named.isdigit() else 0
    return number if number <= LARGEST_ID and member_lists.member_is_there(tx, batch_id, number) else 0


def _prepare_joining(
    services: Services, who: Identity, batch_id: int, file: IO[bytes]
) -> Callable[[Transaction, datetime], MembersAdded]:
    with services.database.reading() as tx:
        batch = batch_store.read(tx, [batch_id]).get(batch_id)
        if batch is None:
            raise NotFound(f"there is no batch {batch_id}")
        operating.require_manual(operating.require_open(batch))
        version = runbook_store.read_version(tx, batch.runbook_name, batch.runbook_version)
    if version is None:
        raise NotFound(f"the runbook of batch {batch_id} is not there")
    listed = read_members(file, load_runbook(version.yaml_content))

    def action(tx: Transaction, now: datetime) -> MembersAdded:
        joined = manual.join(tx, services.announcer, batch_id, listed.members, now)
        detail = {"addedCount": joined.count, "skippedCount": len(joined.skipped)}
        audit.record(tx, now, who.name, "member.added", f"batch {batch_id}", batch_id=batch_id, detail=detail)
        return MembersAdded(
            batch_id=batch_id,
            added_count=joined.count,
            skipped_count=len(joined.skipped),
            warnings=[*listed.warnings, *(f"left out: {each}" for each in joined.skipped)],
        )

    return action
