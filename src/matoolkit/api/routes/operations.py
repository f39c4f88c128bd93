"""What operators look after: whether the API works, messages that could not be handled, and who did what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import literal, select

from matoolkit import __version__
from matoolkit.api.access import Admin, Reader, Work
from matoolkit.api.answers import (
    AuditEntry,
    AuditList,
    DeadLetterAnswer,
    DeadLetterList,
    Health,
    Resubmitted,
)
from matoolkit.api.errors import BadRequest, Conflict, NotFound
from matoolkit.api.paging import LARGEST_ID, Cursor, Offset, cursor_after, id_of
from matoolkit.api.redaction import redacted
from matoolkit.api.routes.documented import Id, errors, no_body
from matoolkit.api.writing import write
from matoolkit.bus import Outgoing
from matoolkit.errors import MatoolkitError
from matoolkit.store import audit, audit_lists, dead_messages

if TYPE_CHECKING:
    from matoolkit.store.database import Transaction
    from matoolkit.store.dead_messages import DeadMessage

router = APIRouter(tags=["operations"])

Limit = Annotated[int, Query(ge=1, le=500)]
_ALIVE = select(literal(1))


@router.get(
    "/api/health",
    summary="Say whether the API works",
    responses={503: {"model": Health, "description": "The database cannot be reached."}},
)
async def health(services: Work, response: Response) -> Health:
    """Anonymous. The database is asked each time."""
    try:
        await services.read(lambda tx: tx.execute(_ALIVE).scalar_one())
    except MatoolkitError:
        response.status_code = 503
        return Health(status="unhealthy", database="unreachable", version=__version__)
    return Health(status="healthy", database="reachable", version=__version__)


@router.get("/api/dead-letters", summary="List messages that could not be handled", responses=errors())
async def list_dead_letters(
    *, services: Work, _who: Reader, limit: Limit = 50, offset: Offset = 0, cursor: Cursor = None
) -> DeadLetterList:
    """The newest first. What may be about people is left out of their bodies."""
    before = id_of("dead-letters", cursor, offset, LARGEST_ID)
    rows = await services.read(lambda tx: dead_messages.page(tx, before=before, skip=offset, size=limit + 1))
    more = cursor_after("dead-letters", rows[limit - 1].id) if len(rows) > limit else None
    return DeadLetterList(messages=[_dead_letter(row) for row in rows[:limit]], next_cursor=more)


@router.post(
    "/api/dead-letters/{message_id}/resubmit",
    summary="Send a message again",
    response_model=Resubmitted,
    responses=errors(404, 409),
    openapi_extra=no_body(),
)
async def resubmit(request: Request, services: Work, who: Admin, message_id: Id) -> Response:
    """Under a new message id. Whoever handles it may handle it twice without harm."""

    def action(tx: Transaction, now: datetime) -> Resubmitted:
        dead = dead_messages.one(tx, message_id)
        if dead is None:
            raise NotFound(f"there is no dead letter {message_id}")
        if not dead_messages.resubmitted(tx, message_id, now, who.name):
            raise Conflict(f"dead letter {message_id} was sent again before")
        properties = msgspec.json.decode(dead.properties_json, type=dict[str, str])
        services.announcer.bus.publish(tx, dead.topic, [Outgoing(body=dead.body, properties=properties)])
        detail = {"topic": dead.topic, "messageType": dead.message_type}
        audit.record(tx, now, who.name, "dead_letter.resubmitted", f"dead letter {message_id}", detail=detail)
        return Resubmitted(message=f"dead letter {message_id} is on its way again")

    return await write(services, request, who, "", lambda: action)


@router.get("/api/audit", summary="Say who did what", responses=errors())
async def list_audit(
    *,
    services: Work,
    _who: Reader,
    batch_id: Annotated[int | None, Query(alias="batchId", ge=1, le=LARGEST_ID)] = None,
    actor: Annotated[str | None, Query(max_length=256, description="Who did it, exactly as recorded.")] = None,
    since: Annotated[
        datetime | None, Query(description="Not what was done before; UTC unless it names a zone.")
    ] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    cursor: Cursor = None,
) -> AuditList:
    """The newest first."""
    before = id_of("audit", cursor, offset, LARGEST_ID)
    if actor is not None and "\0" in actor:
        raise BadRequest("a name holds no NUL character")
    start = _utc(since)

    def look(tx: Transaction) -> AuditList:
        rows = audit_lists.entries(
            tx, batch_id=batch_id, actor=actor, since=start, before=before, skip=offset, size=limit + 1
        )
        more = cursor_after("audit", rows[limit - 1].id) if len(rows) > limit else None
        return AuditList(entries=[_entry(row) for row in rows[:limit]], next_cursor=more)

    return await services.read(look)


def _dead_letter(row: DeadMessage) -> DeadLetterAnswer:
    return DeadLetterAnswer(
        id=row.id,
        topic=row.topic,
        message_type=row.message_type,
        reason=row.reason,
        error=row.error,
        at=row.at,
        body=redacted(row.body),
        resubmitted_at=row.resubmitted_at,
        resubmitted_by=row.resubmitted_by,
    )


def _entry(row: audit_lists.Entry) -> AuditEntry:
    return AuditEntry(
        at=row.at,
        actor=row.actor,
        action=row.action,
        target=row.target,
        batch_id=row.batch_id,
        detail=None if row.detail_json is None else msgspec.json.decode(row.detail_json),
    )


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise BadRequest("since is out of range") from None
