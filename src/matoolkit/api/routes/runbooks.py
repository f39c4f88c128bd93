"""Runbooks: publishing, versions, automation, their query's preview and their CSV template."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response

from matoolkit.api import publishing, views
from matoolkit.api.access import Admin, Anybody, Work
from matoolkit.api.answers import (
    AutomationAnswer,
    PreviewAnswer,
    PreviewGroup,
    Published,
    RunbookDetail,
    RunbookErrorsAnswer,
    RunbookList,
    VersionDeleted,
    VersionList,
)
from matoolkit.api.asked import AutomationRequest, PublishRequest
from matoolkit.api.bodies import read_json
from matoolkit.api.csv_members import template
from matoolkit.api.errors import BadRequest, Conflict, InvalidRunbook, NotFound, Unavailable
from matoolkit.api.paging import Cursor, Offset, cursor_after, text_of
from matoolkit.api.routes.documented import RunbookName, Version, errors, json_body, no_body
from matoolkit.api.writing import write
from matoolkit.errors import MatoolkitError
from matoolkit.runbooks import load_runbook
from matoolkit.store import audit, automation
from matoolkit.store import batches as batch_store
from matoolkit.store import phases as phase_store
from matoolkit.store import runbooks as store

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from matoolkit.api.services import Services
    from matoolkit.api.sign_in import Identity
    from matoolkit.runbooks import Runbook
    from matoolkit.store.database import Transaction
    from matoolkit.store.runbooks import RunbookItem

router = APIRouter(tags=["runbooks"])
_LARGEST_SAMPLE = 100


@router.post(
    "/api/runbooks",
    summary="Publish a runbook",
    response_model=Published,
    responses=errors(408, 409, 413, of_400=RunbookErrorsAnswer),
    openapi_extra=json_body(PublishRequest),
)
async def publish_runbook(request: Request, services: Work, who: Admin) -> Response:
    """Make a text the next version of a runbook, and the one in force.

    Batches that are open go over to it, which is why what becomes of their phases that are past due has to be said.
    """
    asked, digest = await read_json(request, PublishRequest)
    return await write(services, request, who, digest, partial(_prepare_publishing, services, who, asked))


@router.get("/api/runbooks", summary="List active runbooks", responses=errors())
async def list_runbooks(
    *,
    services: Work,
    _who: Anybody,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
    offset: Offset = 0,
    cursor: Cursor = None,
) -> RunbookList:
    """Those with a version in force, by name without regard to case."""
    after = text_of("runbooks", cursor, offset) or ""

    def look(tx: Transaction) -> RunbookList:
        rows = store.active_page(tx, after=after, skip=offset, size=limit + 1)
        more = cursor_after("runbooks", store.folded(rows[limit - 1].name)) if len(rows) > limit else None
        off = automation.switched_off(tx)
        listed = [
            views.listed_runbook(row, automation_enabled=store.folded(row.name) not in off) for row in rows[:limit]
        ]
        return RunbookList(runbooks=listed, next_cursor=more)

    return await services.read(look)


@router.get("/api/runbooks/{name}", summary="Show a runbook", responses=errors(404))
async def get_runbook(services: Work, _who: Anybody, name: RunbookName) -> RunbookDetail:
    """The version in force."""
    return views.runbook_detail(await services.read(lambda tx: active_version(tx, name)))


@router.get("/api/runbooks/{name}/versions", summary="List a runbook's versions", responses=errors(404))
async def list_versions(services: Work, _who: Anybody, name: RunbookName) -> VersionList:
    """All of them, the newest first."""
    rows = await services.read(lambda tx: _all_versions(tx, name))
    return VersionList(name=rows[0].name, versions=[views.version_summary(row) for row in rows])


@router.get("/api/runbooks/{name}/versions/{version}", summary="Show a version", responses=errors(404))
async def get_version(services: Work, _who: Anybody, name: RunbookName, version: Version) -> RunbookDetail:
    """One version, in force or not."""
    return views.runbook_detail(await services.read(lambda tx: _one_version(tx, name, version)))


@router.delete(
    "/api/runbooks/{name}/versions/{version}",
    summary="Take a version out of force",
    response_model=VersionDeleted,
    responses=errors(404, 409),
    openapi_extra=no_body(),
)
async def delete_version(request: Request, services: Work, who: Admin, name: RunbookName, version: Version) -> Response:
    """No new batches are made of it; those under way go on with the version they run."""

    def action(tx: Transaction, now: datetime) -> VersionDeleted:
        found = _one_version(tx, name, version)
        if not found.is_active:
            raise Conflict(f"version {version} of runbook '{found.name}' is not in force")
        store.deactivate(tx, name)
        audit.record(tx, now, who.name, "runbook.version_deleted", f"{found.name} v{version}")
        message = f"version {version} of runbook '{found.name}' is no longer in force"
        return VersionDeleted(message=message, name=found.name, version=version)

    return await write(services, request, who, "", lambda: action)


@router.get("/api/runbooks/{name}/automation", summary="Show a runbook's automation", responses=errors(404))
async def get_automation(services: Work, _who: Anybody, name: RunbookName) -> AutomationAnswer:
    """Whether new batches are made of what its query finds."""
    return await services.read(lambda tx: _automation(tx, name))


@router.put(
    "/api/runbooks/{name}/automation",
    summary="Switch a runbook's automation on or off",
    response_model=AutomationAnswer,
    responses=errors(404, 408, 409, 413),
    openapi_extra=json_body(AutomationRequest),
)
async def put_automation(request: Request, services: Work, who: Admin, name: RunbookName) -> Response:
    """Off stops new batches and nothing else."""
    asked, digest = await read_json(request, AutomationRequest)

    def action(tx: Transaction, now: datetime) -> AutomationAnswer:
        found = _all_versions(tx, name)[0]
        automation.switch(tx, name, enabled=asked.enabled, by=who.name, now=now)
        state = "enabled" if asked.enabled else "disabled"
        audit.record(tx, now, who.name, f"runbook.automation_{state}", found.name)
        return _automation(tx, name)

    return await write(services, request, who, digest, lambda: action)


@router.post(
    "/api/runbooks/{name}/query/preview",
    summary="Run a runbook's query",
    response_model=PreviewAnswer,
    responses=errors(404, 409),
    openapi_extra=no_body(),
)
async def preview_query(request: Request, services: Work, who: Admin, name: RunbookName) -> Response:
    """What the query of the version in force gives now, within a time limit; nothing is made of it."""
    prepare = partial(_prepare_preview, services, who, name)
    return await write(services, request, who, "", prepare, slowly=True)


@router.get(
    "/api/runbooks/{name}/template",
    summary="Download a CSV template",
    response_class=Response,
    responses={
        **errors(404, 409),
        200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "CSV"},
    },
)
async def get_template(services: Work, _who: Anybody, name: RunbookName) -> Response:
    """A header with every column the runbook needs, and one sample row."""
    found = await services.read(lambda tx: active_version(tx, name))
    text = await services.run(lambda: template(load_runbook(found.yaml_content)))
    file = quote(f"{found.name}-template.csv", safe="")
    headers = {"Content-Disposition": f"attachment; filename=\"template.csv\"; filename*=UTF-8''{file}"}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def active_version(tx: Transaction, name: str) -> RunbookItem:
    """The version in force, which has to be there."""
    found = None if "\0" in name else store.active_version(tx, name)
    if found is None:
        raise NotFound(f"there is no active runbook {name!r}")
    return found


def _all_versions(tx: Transaction, name: str) -> list[RunbookItem]:
    found = [] if "\0" in name else store.all_versions(tx, name)
    if not found:
        raise NotFound(f"there is no runbook {name!r}")
    return found


def _one_version(tx: Transaction, name: str, version: int) -> RunbookItem:
    found = None if "\0" in name else store.one_version(tx, name, version)
    if found is None:
        raise NotFound(f"there is no version {version} of runbook {name!r}")
    return found


def _automation(tx: Transaction, name: str) -> AutomationAnswer:
    named = _all_versions(tx, name)[0].name
    found = automation.read(tx, name)
    return AutomationAnswer(
        runbook_name=named,
        automation_enabled=found.automation_enabled,
        enabled_at=found.enabled_at,
        enabled_by=found.enabled_by,
        disabled_at=found.disabled_at,
        disabled_by=found.disabled_by,
    )


def _prepare_publishing(
    services: Services, who: Identity, asked: PublishRequest
) -> Callable[[Transaction, datetime], Published]:
    checked = publishing.check(asked.name, asked.yaml_content, services.rules)
    runbook = checked.runbook
    if runbook is None:
        raise InvalidRunbook(checked.errors)
    rules = services.rules

    def action(tx: Transaction, now: datetime) -> Published:
        if asked.overdue_behavior is None:
            _require_a_choice(tx, runbook, now)
        version = store.publish(
            tx,
            name=runbook.name,
            yaml_content=asked.yaml_content,
            now=now,
            by=who.name,
            overdue_behavior=asked.overdue_behavior or "rerun",
            rerun_init=bool(asked.rerun_init),
        )
        made = _one_version(tx, runbook.name, version)
        detail = {"overdueBehavior": made.overdue_behavior, "rerunInit": bool(made.rerun_init)}
        audit.record(tx, now, who.name, "runbook.published", f"{made.name} v{version}", detail=detail)
        unheard: list[str] = []
        if rules.worker_ids is None and services.queues is not None:
            unheard = publishing.unheard_workers(runbook, services.queues.listeners(tx))
        return Published(
            runbook_id=made.id,
            version=version,
            data_table_name=made.data_table_name,
            warnings=[*checked.warnings, *unheard],
        )

    return action


def _require_a_choice(tx: Transaction, runbook: Runbook, now: datetime) -> None:
    named = store.folded(runbook.name)
    of_this = [each for each in batch_store.open_batches(tx) if store.folded(each.runbook_name) == named]
    going_over = [each for each in of_this if not each.is_manual]
    if going_over:
        phases = phase_store.of_batches(tx, [each.id for each in going_over])
        raise Conflict(publishing.choices(runbook, [(each, phases[each.id]) for each in going_over], now))


def _prepare_preview(services: Services, who: Identity, name: str) -> Callable[[Transaction, datetime], PreviewAnswer]:
    with services.database.reading() as tx:
        found = active_version(tx, name)
    if services.preview is None:
        raise Unavailable("this API was started without data sources, so it cannot run queries")
    runbook = load_runbook(found.yaml_content)
    try:
        preview = services.preview(runbook)
    except MatoolkitError as error:
        raise BadRequest(f"the query of runbook '{found.name}' failed: {error}") from error
    answer = PreviewAnswer(
        row_count=preview.row_count,
        columns=list(preview.columns),
        sample=[dict(row) for row in preview.sample[:_LARGEST_SAMPLE]],
        batch_groups=[
            PreviewGroup(batch_time=each.batch_time, member_count=each.member_count) for each in preview.batch_groups
        ],
        warnings=list(preview.warnings),
    )

    def action(tx: Transaction, now: datetime) -> PreviewAnswer:
        target = f"{found.name} v{found.version}"
        audit.record(tx, now, who.name, "query.previewed", target, detail={"rowCount": answer.row_count})
        return answer

    return action
