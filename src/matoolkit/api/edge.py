"""The outermost layer: every request has an id, a line in the log, and security headers on its answer.

Whatever fails inside and is no error of ours ends here: the detail goes into the log, the answer says nothing.
"""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from matoolkit.telemetry import SILENT
from matoolkit.telemetry.metrics import REQUEST
from matoolkit.telemetry.subjects import subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from matoolkit.telemetry import Telemetry

log = logging.getLogger(__name__)

HEADER = b"x-request-id"
INTERNAL_ERROR = b'{"error":"An internal error occurred."}'
_GIVEN = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_FIRST_SERVER_ERROR = 500
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
]
_OVER_TLS = (b"strict-transport-security", b"max-age=31536000; includeSubDomains")

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""Of the request that is being answered, in whatever thread."""


class RequestIdFilter(logging.Filter):
    """Puts the request's id on every line of the log, as `request_id`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every line through."""
        record.request_id = request_id.get()
        return True


class Edge:
    """Wraps the application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        new_id: Callable[[], str],
        seconds: Callable[[], float],
        telemetry: Telemetry = SILENT,
    ) -> None:
        self._telemetry = telemetry
        self._app = app
        self._new_id = new_id
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == HEADER), b"")
        own = given.decode() if _GIVEN.fullmatch(given) else self._new_id()
        token, about = request_id.set(own), subject.set(_Request(own))
        began = self._seconds()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), *_headers(scope, own)]}
            await send(message)

        state: dict[str, Any] = scope.setdefault("state", {})
        try:
            await self._app(scope, receive, answer)
        except Exception:
            log.exception("%s failed", _named(scope))
            if not status:
                await _say(answer)
        finally:
            # A path that is still encoded cannot break a line; a query may name people, and is left out.
            seconds = self._seconds() - began
            # Anybody may make up a method, and each would be counted alone.
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._telemetry.took(REQUEST, seconds, method=method, status=status)
            milliseconds = seconds * 1000
            level = logging.WARNING if status >= _FIRST_SERVER_ERROR else logging.INFO
            who = state.get("who", "nobody")
            log.log(level, "%s: %d in %.1f ms for %r (request %s)", _named(scope), status, milliseconds, who, own)
            request_id.reset(token)
            subject.reset(about)


class _Request:
    """What lines of the log are about while it is answered."""

    def __init__(self, own: str) -> None:
        self._id = own

    def log_fields(self) -> dict[str, str | int]:
        return {"RequestId": self._id}


def _headers(scope: Scope, own: str) -> list[tuple[bytes, bytes]]:
    added = [(HEADER, own.encode()), *_SECURITY]
    return [*added, _OVER_TLS] if scope.get("scheme") == "https" else added


def _named(scope: Scope) -> str:
    path: bytes = scope.get("raw_path") or b""
    return f"{scope['method']} {path.partition(b'?')[0].decode('ascii', 'backslashreplace')}"


async def _say(send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(INTERNAL_ERROR)).encode())]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": INTERNAL_ERROR})
