"""The admin API when a request calls it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import azure.functions as func

from matoolkit.api import create_app
from matoolkit.hosts.api import ApiSettings, api_services
from matoolkit.hosts.azure_functions.opening import Opening
from matoolkit.hosts.azure_functions.settings import insist
from matoolkit.hosts.loops import Loops
from matoolkit.hosts.shared import chosen_database, shared
from matoolkit.hosts.telling import telling
from matoolkit.settings import BadSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack

    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

_NOT_READY = b'{"error":"The service cannot work at the moment; its log says why."}'


class Serving:
    """The API, for any number of requests at once."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._settings: ApiSettings = ApiSettings.read(environment)
        self._where = self._settings.whereabouts(chosen_database(None, environment, self._settings.database))
        insist(self._where.service_bus, ApiSettings.service_bus_namespace.name)
        if self._settings.entra is None:
            missing = f"{ApiSettings.tenant_id.name} and {ApiSettings.client_id.name} are missing: whose tokens count"
            raise BadSettings(self._settings.service, [missing])
        self._opened = Opening(self._open)

    async def answer(self, request: func.HttpRequest, context: func.Context) -> func.HttpResponse:
        """Answer a request."""
        try:
            found = await asyncio.to_thread(self._opened)
        except Exception:
            log.exception("the admin API cannot be opened")
            return func.HttpResponse(_NOT_READY, status_code=503, mimetype="application/json")
        answered: func.HttpResponse = await found.handle_async(request, context)
        return answered

    def close(self) -> None:
        """Leave what was opened."""
        self._opened.close()

    def _open(self, closing: ExitStack) -> func.AsgiMiddleware:
        telemetry = closing.enter_context(telling(self._environment, "api", with_log=False))
        found = closing.enter_context(shared(self._where))
        loops = Loops(telemetry=telemetry)
        found.start(loops)
        closing.callback(loops.stop)
        services = api_services(self._settings, found, self._environment, telemetry=telemetry)
        app = _WithRawPath(create_app(services, time.perf_counter))
        return func.AsgiMiddleware(app)  # type: ignore[no-untyped-call]  # the library gives no types for it


class _WithRawPath:
    """Gives the path as it came: the library hands it over decoded, where the log relies on its being encoded."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: Any = scope.get("path", "")
        await self._app({**scope, "raw_path": quote(path).encode()}, receive, send)
