"""Puts the clients of a tenant together: one HTTP client, one sign-in, Graph and Exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from matoolkit.worker.tenant.connection import Connection, Limits, proxy_to
from matoolkit.worker.tenant.exchange import Exchange
from matoolkit.worker.tenant.graph import Graph
from matoolkit.worker.tenant.sign_in import SignIn, SignInFailed

if TYPE_CHECKING:
    import ssl

    from matoolkit.worker.tenant.asking import Surroundings
    from matoolkit.worker.tenant.sign_in import Identity

GRAPH: Final = "https://graph.microsoft.com"
EXCHANGE: Final = "https://outlook.office365.com"


@dataclass(frozen=True, slots=True)
class TenantAddresses:
    """Where the tenant's services are: Microsoft's public cloud, unless told."""

    graph: str = GRAPH
    exchange: str = EXCHANGE


@dataclass(frozen=True, slots=True)
class TenantClients:
    """A tenant, ready to be asked; to be closed when it is over."""

    graph: Graph
    exchange: Exchange
    sign_in: SignIn
    connection: Connection

    async def begin(self) -> str:
        """Sign in before anything is to be done, and tell for what; not all tenants have Exchange."""
        await self.graph.sign_in()
        try:
            await self.exchange.sign_in()
        except SignInFailed as error:
            return f"Microsoft Graph; not for Exchange Online: {error}"
        return "Microsoft Graph and Exchange Online"

    def complaints(self) -> tuple[str, ...]:
        """What keeps the tenant from being asked."""
        return (*self.graph.complaints(), *self.exchange.complaints())

    async def close(self) -> None:
        """Let go of everything."""
        await self.sign_in.close()
        await self.connection.close()


def open_tenant(
    identity: Identity,
    surroundings: Surroundings,
    *,
    addresses: TenantAddresses | None = None,
    tls: ssl.SSLContext | None = None,
    limits: Limits | None = None,
) -> TenantClients:
    """The clients for a tenant, to be made in the loop that uses them; nothing is asked yet.

    `tls` is what to trust where that is not what the system trusts.
    """
    addresses = addresses or TenantAddresses()
    connection = Connection(tls, limits)
    sign_in = SignIn(identity, connection.session, surroundings.clock, proxy_to(identity.authority))
    return TenantClients(
        Graph(addresses.graph, connection, sign_in, surroundings),
        Exchange(addresses.exchange, identity.tenant_id, connection, sign_in, surroundings),
        sign_in,
        connection,
    )
