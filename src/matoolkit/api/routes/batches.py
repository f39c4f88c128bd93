"""Batches: looking at them, making manual ones, taking them on, ending them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response

from matoolkit.api import views
from matoolkit.api.access import Admin, Anybody, Work
from matoolkit.api.answers import (
    Advanced,
    BatchAnswer,
    BatchCreated,
    BatchList,
    Cancelled,
    FileErrorsAnswer,
    PhaseList,
    Released,
)
from matoolkit.api.bodies import uploaded
from matoolkit.api.csv_members import read_members
from matoolkit.api.errors import BadRequest, Conflict, NotFound, Unavailable
from matoolkit.api.paging import LARGEST_ID, Cursor, Offset, cursor_after, id_of
from matoolkit.api.routes.documented import Id, errors, form_body, no_body
from matoolkit.api.routes.runbooks import active_version
from matoolkit.api.waiting import Waiting
from matoolkit.api.writing import write
from matoolkit.batches import manual, operating
from matoolkit.runbooks import load_runbook
from matoolkit.store import audit, batch_lists, member_lists
from matoolkit.store import batches as batch_store
from matoolkit.store import runbooks as runbook_store
from matoolkit.store.states import BatchStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import IO

    from matoolkit.api.services import Services
    from matoolkit.api.sign_in import Identity
    from matoolkit.store.batch_lists import BatchItem
    from matoolkit.store.database import Transaction

router = APIRouter(tags=["batches"])


@router.get("/api/batches", summary="List batches", responses=errors())
async def list_batches(
    *,
    services: Work,
    _who: Anybody,
    runbook: Annotated[str | None, Query(max_length=256, description="A runbook's name, in any case.")] = None,
    status: Annotated[BatchStatus | None, Query(description="Only those in this state.")] = None,
    manual: Annotated[bool | None, Query(description="Only manual ones, or only the others.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    offset: Offset = 0,
    cursor: Cursor = None,
) -> BatchList:
    """The newest first."""
    before = id_of("batches", cursor, offset, LARGEST_ID)
    if runbook is not None and "\0" in runbook:
        raise BadRequest("a runbook's name holds no NUL character")

    def look(tx: Transaction) -> BatchList:
        rows, total = batch_lists.page(
            tx,
            runbook=None if runbook is None else runbook_store.folded(runbook),
            status=status,
            manual=manual,
            before=before,
            skip=offset,
            size=limit + 1,
        )
        more = cursor_after("batches", rows[limit - 1].id) if len(rows) > limit else None
        rows = rows[:limit]
        counts = batch_lists.members_by_status(tx, [row.id for row in rows])
        return BatchList(
            batches=[views.batch_summary(row, counts[row.id]) for row in rows],
            total=total,
            limit=limit,
            offset=offset,
            next_cursor=more,
        )

    return await services.read(look)


@router.get("/api/batches/{batch_id}", summary="Show a batch", responses=errors(404))
async def get_batch(services: Work, _who: Anybody, batch_id: Id) -> BatchAnswer:
    """With its phases, its init, and what it waits for."""

    def look(tx: Transaction) -> BatchAnswer:
        batch = found(tx, batch_id)
        phases = batch_lists.phases(tx, batch_id)
        inits = member_lists.init_steps(tx, batch_id)
        waiting = Waiting(tx, batch, phases, services.queues, services.clock.now())
        of_phases, of_inits = waiting.of_phases(), waiting.of_init_steps(inits)
        return BatchAnswer(
            batch=views.batch_detail(
                batch,
                batch_lists.members_by_status(tx, [batch_id])[batch_id],
                phases,
                held=batch_lists.held_removals(tx, batch_id),
                waiting_for=waiting.of_batch(),
            ),
            phases=[views.phase(each, of_phases, None) for each in phases],
            init_steps=[views.step(each, of_inits) for each in inits],
        )

    return await services.read(look)


@router.get("/api/batches/{batch_id}/phases", summary="List a batch's phases", responses=errors(404))
async def list_phases(
    services: Work,
    _who: Anybody,
    batch_id: Id,
    counts: Annotated[bool, Query(description="Whether to count the steps of each by their state.")] = False,  # noqa: FBT002 - a query parameter
) -> PhaseList:
    """In the order of time, those of older versions first."""

    def look(tx: Transaction) -> PhaseList:
        batch = found(tx, batch_id)
        phases = batch_lists.phases(tx, batch_id)
        waiting = Waiting(tx, batch, phases, services.queues, services.clock.now()).of_phases()
        steps = batch_lists.steps_by_status(tx, batch_id) if counts else None
        return PhaseList(batch_id=batch_id, phases=[views.phase(each, waiting, steps) for each in phases])

    return await services.read(look)


@router.post(
    "/api/batches",
    summary="Make a manual batch",
    response_model=BatchCreated,
    responses=errors(404, 408, 409, of_400=FileErrorsAnswer),
    openapi_extra=form_body(runbookName="The runbook whose version in force the batch runs."),
)
async def create_batch(request: Request, services: Work, who: Admin) -> Response:
    """From a CSV file. It waits for an operator to advance it.

    Everything that is wrong with the file is told at once, and any error refuses it whole. Who is in another open
    batch of the runbook is left out, with a warning.
    """
    async with uploaded(services, request) as upload:
        name = upload.fields.get("runbookName") or upload.fields.get("runbook_name")
        if not name:
            raise BadRequest("the form has no field `runbookName`")
        prepare = partial(_prepare_creation, services, who, name, upload.file)
        return await write(services, request, who, upload.digest, prepare)


@router.post(
    "/api/batches/{batch_id}/advance",
    summary="Take a manual batch on",
    response_model=Advanced,
    responses=errors(404, 409),
    openapi_extra=no_body(),
)
async def advance_batch(request: Request, services: Work, who: Admin, batch_id: Id) -> Response:
    """Begin its init, or its next phase in the order of time; refused while what came before has not ended."""

    def action(tx: Transaction, now: datetime) -> Advanced:
        batch = found(tx, batch_id)
        text = runbook_store.read_version(tx, batch.runbook_name, batch.runbook_version)
        if text is None:
            raise NotFound(f"the runbook of batch {batch_id} is not there")
        done = manual.advance(tx, services.announcer, batch_id, load_runbook(text.yaml_content), now)
        detail = {"action": str(done.action), "phaseName": done.phase_name, "memberCount": done.member_count}
        if done.action is not manual.Action.COMPLETED:
            audit.record(tx, now, who.name, "batch.advanced", f"batch {batch_id}", batch_id=batch_id, detail=detail)
        return Advanced(
            action=done.action,
            phase_name=done.phase_name,
            member_count=done.member_count,
            step_count=done.step_count,
            next_phase=done.next_phase,
        )

    return await write(services, request, who, "", lambda: action)


@router.post(
    "/api/batches/{batch_id}/cancel",
    summary="Cancel a batch",
    response_model=Cancelled,
    responses=errors(404, 409),
    openapi_extra=no_body(),
)
async def cancel_batch(request: Request, services: Work, who: Admin, batch_id: Id) -> Response:
    """End a batch of either kind: jobs that run finish, and nothing more is sent."""

    def action(tx: Transaction, now: datetime) -> Cancelled:
        was = operating.cancel(tx, batch_id, now, by=who.name)
        detail = {"status": was.status}
        audit.record(tx, now, who.name, "batch.cancelled", f"batch {batch_id}", batch_id=batch_id, detail=detail)
        return Cancelled(message=f"batch {batch_id} is cancelled", batch_id=batch_id, status=BatchStatus.CANCELLED)

    return await write(services, request, who, "", lambda: action)


@router.post(
    "/api/batches/{batch_id}/held-removals/release",
    summary="Let go the members whose removal is held",
    response_model=Released,
    responses=errors(404, 409),
    openapi_extra=no_body(),
)
async def release_removals(request: Request, services: Work, who: Admin, batch_id: Id) -> Response:
    """They are missing from the data source, and so many at once that an operator has to say so."""
    return await write(services, request, who, "", partial(_prepare_release, services, who, batch_id))


def found(tx: Transaction, batch_id: int) -> BatchItem:
    """A batch, which has to be there."""
    batch = batch_lists.one(tx, batch_id)
    if batch is None:
        raise NotFound(f"there is no batch {batch_id}")
    return batch


def _prepare_creation(
    services: Services, who: Identity, name: str, file: IO[bytes]
) -> Callable[[Transaction, datetime], BatchCreated]:
    with services.database.reading() as tx:
        published = active_version(tx, name)
    runbook = load_runbook(published.yaml_content)
    listed = read_members(file, runbook)

    def action(tx: Transaction, now: datetime) -> BatchCreated:
        if active_version(tx, name).version != published.version:
            raise Conflict(f"runbook '{published.name}' was published anew meanwhile; try again")
        version = runbook_store.read_version(tx, published.name, published.version)
        if version is None:
            raise NotFound(f"there is no active runbook {name!r}")
        made = manual.create_manual_batch(tx, version, runbook, listed.members, now, by=who.name)
        detail = {"runbook": f"{published.name} v{published.version}", "memberCount": made.count}
        audit.record(
            tx, now, who.name, "batch.created", f"batch {made.batch_id}", batch_id=made.batch_id, detail=detail
        )
        return BatchCreated(
            batch_id=made.batch_id,
            status=BatchStatus(batch_store.read(tx, [made.batch_id])[made.batch_id].status),
            member_count=made.count,
            available_phases=[phase.name for phase in runbook.phases_by_time],
            warnings=[*listed.warnings, *(f"left out: {each}" for each in made.skipped)],
        )

    return action


def _prepare_release(services: Services, who: Identity, batch_id: int) -> Callable[[Transaction, datetime], Released]:
    with services.database.reading() as tx:
        batch = batch_store.read(tx, [batch_id]).get(batch_id)
    if batch is None:
        raise NotFound(f"there is no batch {batch_id}")
    operating.require_open(batch)
    if services.release is None:
        raise Unavailable("this API was started without what releases removals")
    # In transactions of its own, since there may be many; the audit is in them.
    number = services.release(batch_id, services.clock.now(), by=who.name)
    return lambda _tx, _now: Released(batch_id=batch_id, released_count=number)
