"""The application: routes, what becomes of errors, and the document that describes it all."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, Response

from matoolkit import __version__
from matoolkit.api.documentation import document, page
from matoolkit.api.edge import Edge
from matoolkit.api.errors import ApiError
from matoolkit.api.routes import batches, members, operations, overview, runbooks
from matoolkit.api.sign_in import KeysUnavailable
from matoolkit.batches.refusals import NoSuchBatch, NoSuchMember, NotYet, Refusal, WrongState
from matoolkit.bus.errors import BusError
from matoolkit.runbooks import RunbookErrors
from matoolkit.store.errors import DatabaseFull, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from matoolkit.api.services import Services

log = logging.getLogger(__name__)

_REFUSED: dict[type[Refusal], int] = {NoSuchBatch: 404, NoSuchMember: 404, WrongState: 409, NotYet: 400}
_TRY_AGAIN = {"Retry-After": "5"}
_CLIENT_IS_GONE = 499


def create_app(services: Services, seconds: Callable[[], float]) -> FastAPI:
    """The API on these services; `seconds` counts them, for the log."""
    app = FastAPI(
        title="matoolkit",
        version=__version__,
        summary="Moves people from one Microsoft 365 tenant to another, in waves.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redirect_slashes=False,
    )
    app.state.services = services
    for each in (runbooks, batches, members, overview, operations):
        app.include_router(each.router)
    described = document(app)
    html = page(described)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(described)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(html)

    app.add_exception_handler(ApiError, _on_api_error)
    app.add_exception_handler(Refusal, _on_refusal)
    app.add_exception_handler(StoreError, _on_store_error)
    app.add_exception_handler(BusError, _on_store_error)
    app.add_exception_handler(KeysUnavailable, _on_keys_unavailable)
    app.add_exception_handler(RunbookErrors, _on_unreadable_runbook)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    app.add_middleware(Edge, new_id=services.new_id, seconds=seconds, telemetry=services.telemetry)
    return app


async def _on_api_error(_request: Request, error: Any) -> Response:
    return JSONResponse(error.body(), error.status, dict(error.headers))


async def _on_refusal(_request: Request, error: Any) -> Response:
    return _error(str(error), _REFUSED.get(type(error), 409))


async def _on_store_error(_request: Request, error: Any) -> Response:
    """The database is away for now; anything else that is wrong with it is a fault of the program."""
    if not error.retryable:
        raise error
    log.warning("the database: %s", error)
    if isinstance(error, DatabaseFull):
        return _error("the database cannot write: its disk is full, or its file is read-only", 503, _TRY_AGAIN)
    return _error("the database cannot be reached; try again later", 503, _TRY_AGAIN)


async def _on_keys_unavailable(_request: Request, error: Any) -> Response:
    return _error(str(error), 503, _TRY_AGAIN)


async def _on_unreadable_runbook(_request: Request, error: Any) -> Response:
    """One that was published by an older version of the product, which was less strict."""
    first, more = str(error.problems[0]), len(error.problems) - 1
    others = f", and {more} more errors" if more else ""
    return _error(f"the runbook cannot be read by this version of the product: {first}{others}; publish it mended", 409)


async def _on_invalid_request(_request: Request, error: Any) -> Response:
    told = [f"{'.'.join(str(part) for part in each['loc'][1:])}: {each['msg']}" for each in error.errors()]
    return _error("; ".join(told), 400)


async def _on_http_error(request: Request, error: Any) -> Response:
    text = str(error.detail)
    if error.status_code == HTTPStatus.NOT_FOUND:
        text = "there is no such route; /docs lists those there are"
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        text = f"this route does not take {request.method}; /docs lists what there is"
    return _error(text, error.status_code, error.headers)


async def _on_disconnect(_request: Request, _error: Any) -> Response:
    return Response(status_code=_CLIENT_IS_GONE)


def _error(text: str, status: int, headers: Any = None) -> Response:
    return JSONResponse({"error": text}, status, headers)
