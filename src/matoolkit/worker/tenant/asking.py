"""What Graph and Exchange have in common: a token, the pace, patience, and one more try after a token is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from matoolkit.telemetry import SILENT
from matoolkit.worker.tenant.errors import BadAnswer, Refused, TenantError
from matoolkit.worker.tenant.throttle import Patience, Throttle, retry_after

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from matoolkit.clock import Clock
    from matoolkit.telemetry import Telemetry
    from matoolkit.worker.tenant.connection import Connection, Reply
    from matoolkit.worker.tenant.sign_in import SignIn

_WORTH_TELLING = 10.0
"""Seconds of waiting from which on it is told."""
_UNAUTHORIZED, _TOO_MANY, _UNAVAILABLE = 401, 429, 503


@dataclass(frozen=True, slots=True)
class Complaint:
    """What an answer that is an error says."""

    code: str
    message: str
    throttled: bool = False
    """The tenant wants to be asked less."""
    transient: bool = False
    """The tenant has a hiccup, and the same is worth another try."""


class Reader(Protocol):
    """Understands the errors of one API."""

    def __call__(self, reply: Reply, content: Any) -> Complaint:
        """What the error says; `content` is the decoded body, None when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What time and chance are."""

    clock: Clock
    monotonic: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    chance: Callable[[], float]
    patience: Patience = field(default_factory=Patience)
    telemetry: Telemetry = SILENT


class Api:
    """One API of a tenant, asked by all jobs of a worker."""

    def __init__(
        self, connection: Connection, sign_in: SignIn, scope: str, read_error: Reader, surroundings: Surroundings
    ) -> None:
        self._connection = connection
        self._sign_in = sign_in
        self._scope = scope
        self._read_error = read_error
        self._with = surroundings
        name = urlsplit(scope).hostname or scope
        self.throttle = Throttle(surroundings.monotonic, surroundings.sleep, surroundings.telemetry, name)

    async def sign_in(self) -> None:
        """Have a token; a failure says why nothing can be asked."""
        await self._sign_in.token(self._scope)

    def complaints(self, name: str) -> list[str]:
        """What keeps it from being asked, if anything does."""
        found = []
        if trouble := self._sign_in.trouble(self._scope):
            found.append(f"{name}: {trouble}")
        if (held := self.throttle.held_seconds) >= _WORTH_TELLING:
            found.append(f"{name} is throttled, and asked again in {held:.0f} seconds")
        return found

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        repeatable: bool = True,
    ) -> tuple[Reply, Any]:
        """The answer and its decoded body; an error says how often was asked.

        With `repeatable=False` the request goes out again only where the tenant certainly did nothing the first time.
        """
        content = None if body is None else msgspec.json.encode(body)
        attempts = 0
        renewed = False
        token = await self._sign_in.token(self._scope)
        while True:
            try:
                sent_at, reply = await self._sent(method, url, token, headers or {}, content)
            except TenantError as error:
                error.attempts += attempts
                raise
            attempts += 1
            if reply.status < 400:  # noqa: PLR2004 - from here on it is an error
                self.throttle.passed()
                # What leads elsewhere has nothing to say itself.
                return reply, None if reply.status >= 300 else _decoded(reply, attempts)  # noqa: PLR2004 - redirects
            complaint = self._complaint(reply)
            asked_for = retry_after(reply.headers.get("Retry-After"), self._with.clock.now())
            wait = self._with.patience.wait(attempts, asked_for, self._with.chance())
            if _is_throttled(reply, complaint):
                self.throttle.complained(sent_at, wait, told=asked_for is not None)
            else:
                self.throttle.passed()
                if reply.status == _UNAUTHORIZED and not renewed:
                    renewed = True
                    token = await self._sign_in.fresh(self._scope, token)
                    continue
            again = _is_throttled(reply, complaint) or complaint.transient
            certain = repeatable or reply.status == _TOO_MANY
            if not again or not certain or attempts > self._with.patience.retries:
                raise Refused(
                    complaint.message,
                    code=complaint.code,
                    status=reply.status,
                    request_id=reply.request_id,
                    attempts=attempts,
                    is_throttled=again and certain,
                )
            await self._with.sleep(wait)
            # A token may have grown old in the meantime.
            token = await self._sign_in.token(self._scope)

    async def _sent(
        self, method: str, url: str, token: str, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[float, Reply]:
        sent = {
            **headers,
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "client-request-id": str(uuid4()),
        }
        if content is not None:
            sent["Content-Type"] = "application/json"
        sent_at = await self.throttle.enter()
        try:
            return sent_at, await self._connection.send(method, url, sent, content)
        except BaseException:
            self.throttle.lost()
            raise

    def _complaint(self, reply: Reply) -> Complaint:
        try:
            content = msgspec.json.decode(reply.body) if reply.body else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            content = None
        return self._read_error(reply, content)


def _is_throttled(reply: Reply, complaint: Complaint) -> bool:
    told = reply.status == _UNAVAILABLE and "Retry-After" in reply.headers
    return reply.status == _TOO_MANY or told or complaint.throttled


def _decoded(reply: Reply, attempts: int) -> Any:
    if not reply.body:
        return None
    try:
        return msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(
            f"the answer is no JSON (status {reply.status}, request id {reply.request_id})", attempts=attempts
        ) from error
