"""Signs in to the target tenant as an application, with a certificate or a client secret.

A token serves all jobs until shortly before it expires. Whoever comes when it is time to renew it waits for the one
renewal that is under way; while the old one still holds, nobody waits.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from matoolkit.worker.errors import FunctionError
from matoolkit.worker.tenant.connection import reason

if TYPE_CHECKING:
    import aiohttp

    from matoolkit.clock import Clock

log = logging.getLogger(__name__)

AHEAD_SECONDS: Final = 600.0
"""A token is renewed this long before it expires, while it still serves."""
URGENT_SECONDS: Final = 60.0
"""So shortly before it expires, it is not used any more."""
_PAUSE_SECONDS: Final = 30.0
"""After a renewal ahead of time has failed, it is tried again no sooner."""
_RETRIES: Final = 2
_CODE: Final = re.compile(r"AADSTS\d+")


class SignInFailed(FunctionError):
    """The worker cannot sign in to the target tenant."""

    default_attempts = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the worker is in the target tenant, and what proves it: a certificate, or else a client secret."""

    tenant_id: str
    client_id: str
    pfx: bytes | None = field(default=None, repr=False)
    pfx_password: str | None = field(default=None, repr=False)
    client_secret: str | None = field(default=None, repr=False)
    authority: str = "https://login.microsoftonline.com"

    @property
    def is_public_cloud(self) -> bool:
        """Whether the authority is one that Microsoft lists among its own."""
        return self.authority.rstrip("/").lower() == "https://login.microsoftonline.com"


@dataclass(slots=True)
class _Token:
    value: str = field(repr=False)
    expires_at: float


class SignIn:
    """Tokens for the tenant's services, each had once however many ask."""

    def __init__(
        self, identity: Identity, session: aiohttp.ClientSession, clock: Clock, proxy: str | None = None
    ) -> None:
        self._identity = identity
        self._proxies = {} if proxy is None else {"https": proxy}
        self._session = session
        self._clock = clock
        self._tokens: dict[str, _Token] = {}
        self._renewals: dict[str, asyncio.Task[_Token]] = {}
        self._not_before: dict[str, float] = {}
        self._troubles: dict[str, str] = {}

    async def token(self, scope: str) -> str:
        """A token that is good for a while."""
        now = self._clock.now().timestamp()
        token = self._tokens.get(scope)
        if token is None or token.expires_at - now < URGENT_SECONDS:
            return (await self._renewed(scope)).value
        if token.expires_at - now < AHEAD_SECONDS and now >= self._not_before.get(scope, 0.0):
            self._renewal(scope)
        return token.value

    async def fresh(self, scope: str, refused: str) -> str:
        """A token other than the one that the tenant refused; the same for all who bring that one back."""
        token = self._tokens.get(scope)
        if token is not None and token.value == refused:
            del self._tokens[scope]
        return await self.token(scope)

    def trouble(self, scope: str) -> str:
        """Why the last renewal failed, if it did."""
        return self._troubles.get(scope, "")

    async def close(self) -> None:
        """Stop what is under way."""
        for task in list(self._renewals.values()):
            task.cancel()
        await asyncio.gather(*self._renewals.values(), return_exceptions=True)

    async def _renewed(self, scope: str) -> _Token:
        # A job that is cancelled while it waits does not end the renewal for the others.
        return await asyncio.shield(self._renewal(scope))

    def _renewal(self, scope: str) -> asyncio.Task[_Token]:
        task = self._renewals.get(scope)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._renew(scope), name=f"sign-in for {scope}")
            self._renewals[scope] = task
            task.add_done_callback(lambda done: self._ended(scope, done))
        return task

    def _ended(self, scope: str, task: asyncio.Task[_Token]) -> None:
        del self._renewals[scope]
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._not_before[scope] = self._clock.now().timestamp() + _PAUSE_SECONDS
            self._troubles[scope] = str(error)
            log.warning("no token for %s: %s", scope, error)

    async def _renew(self, scope: str) -> _Token:
        from azure.core.exceptions import AzureError, ClientAuthenticationError

        try:
            credential = self._credential()
            try:
                found = await credential.get_token(scope)
            finally:
                await credential.close()
        except ClientAuthenticationError as error:
            raise _failed(self._identity, error.message) from error
        except (AzureError, ValueError) as error:
            # What the library says may hold anything; what broke on the way is told in words of our own.
            raise SignInFailed(f"the worker cannot sign in at {self._identity.authority}: {_broken(error)}") from error
        token = _Token(found.token, float(found.expires_on))
        self._tokens[scope] = token
        self._troubles.pop(scope, None)
        return token

    def _credential(self) -> Any:
        """A new one each time: a credential keeps its tokens, those too that the tenant has come to refuse."""
        from azure.core.pipeline.transport import AioHttpTransport
        from azure.identity.aio import CertificateCredential, ClientSecretCredential

        identity = self._identity
        common: dict[str, Any] = {
            "authority": identity.authority,
            "disable_instance_discovery": not identity.is_public_cloud,
            "transport": AioHttpTransport(session=self._session, session_owner=False),
            "retry_total": _RETRIES,
            "proxies": self._proxies,
        }
        if identity.pfx is not None:
            return CertificateCredential(
                identity.tenant_id,
                identity.client_id,
                certificate_data=identity.pfx,
                password=identity.pfx_password,
                **common,
            )
        if identity.client_secret is None:
            raise SignInFailed("the worker has nothing to sign in with: neither a certificate nor a client secret")
        return ClientSecretCredential(identity.tenant_id, identity.client_id, identity.client_secret, **common)


def _broken(error: BaseException) -> str:
    """What went wrong between the worker and the authority."""
    inner = getattr(error, "inner_exception", None)
    return type(error).__name__ if inner is None else reason(inner)


def _failed(identity: Identity, message: str) -> SignInFailed:
    found = _CODE.search(message)
    described = " ".join(message.split())
    return SignInFailed(
        f"the worker, as application {identity.client_id}, cannot sign in to the tenant {identity.tenant_id}: "
        f"{described}",
        type=found[0] if found else None,
    )
