"""What functions may ask of the worker: the tenant's two interfaces, and secrets. Each is given from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from matoolkit.worker.errors import NotConfigured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class GraphClient(Protocol):
    """Microsoft Graph in the target tenant, signed in, and patient when it is throttled."""

    async def request(
        self,
        method: str,
        path: Sequence[str],
        *,
        version: str = "v1.0",
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        repeatable: bool = True,
    ) -> Any:
        """Send one request and return the decoded answer, None when it has no body.

        The path is given as segments, each of which is encoded: `("groups", group_id, "members", "$ref")`. Whatever
        Graph refuses is a `FunctionError` with Graph's own code. With `repeatable=False` the request is sent again only
        where Graph certainly did nothing the first time.
        """

    def address(self, path: Sequence[str], *, version: str = "v1.0") -> str:
        """The address of an object, for bodies that refer to one."""


class ExchangeClient(Protocol):
    """Exchange Online of the target tenant, through its command endpoint."""

    async def invoke(
        self, command: str, parameters: Mapping[str, Any], *, repeatable: bool = True
    ) -> list[dict[str, Any]]:
        """Run a command and return what it put out, all pages of it; a refusal is a `FunctionError`.

        With `repeatable=False` the command is sent again only where Exchange certainly did nothing the first time.
        """


class SecretResolver(Protocol):
    """Looks up what `{{secret:NAME}}` stands for."""

    async def resolve(self, name: str) -> str:
        """The secret's value; a `FunctionError` when there is none or it may not be read."""


class NoGraph:
    """Stands in where no tenant is configured."""

    async def request(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise NotConfigured(_MISSING.format("Microsoft Graph"))

    def address(self, *_: Any, **__: Any) -> str:
        """Refuse."""
        raise NotConfigured(_MISSING.format("Microsoft Graph"))


class NoExchange:
    """Stands in where no tenant is configured."""

    async def invoke(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        """Refuse."""
        raise NotConfigured(_MISSING.format("Exchange Online"))


class NoSecrets:
    """Stands in where no place for secrets is configured."""

    async def resolve(self, name: str) -> str:
        """Refuse."""
        raise NotConfigured(f"the secret {name} cannot be looked up: no place for secrets is configured")


_MISSING = (
    "{} cannot be reached: this worker has no tenant; set TARGET_TENANT_ID, APP_ID and one of CERT_NAME, "
    "APP_CERT_PATH, APP_CLIENT_SECRET"
)
