"""Connection strings as Dataverse people write them: ADO style, or the organisation's address alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from matoolkit import connection_strings
from matoolkit.scheduler.sources.errors import BadConnection

_SERVER: Final = ("server", "data source", "datasource", "addr", "address", "network address")
_DATABASE: Final = ("database", "initial catalog", "initialcatalog")
_USER: Final = ("user id", "userid", "uid", "user")
_PASSWORD: Final = ("password", "pwd")
# As whoever the machine is; the others ask for a person, or for a password, which has no place here.
_ACCEPTED: Final = {
    "",
    "activedirectorydefault",
    "activedirectorymanagedidentity",
    "activedirectorymsi",
    "activedirectoryworkloadidentity",
    "activedirectoryserviceprincipal",
}


@dataclass(frozen=True, slots=True)
class TdsAddress:
    """Where the SQL endpoint of an organisation is, and who asks."""

    host: str
    port: int
    database: str
    client_id: str | None
    """The managed identity to sign in as, when it is named."""

    @property
    def scope(self) -> str:
        """What a token for this organisation is asked for."""
        return f"https://{self.host}/.default"


def parse_connection_string(name: str, value: str) -> TdsAddress:
    """Read the value of an environment variable; what is wrong with it is told without quoting it."""
    fields = _fields(name, value) if "=" in value else {"server": _without_scheme(value)}
    host, port = _place(name, _first(fields, _SERVER))
    authentication = fields.get("authentication", "").replace(" ", "").lower()
    if _first(fields, _PASSWORD):
        raise BadConnection(
            f"{name} holds a password, which is not used: leave it out and set AZURE_TENANT_ID, AZURE_CLIENT_ID and"
            " AZURE_CLIENT_SECRET, or give the scheduler a managed identity"
        )
    if authentication not in _ACCEPTED:
        raise BadConnection(
            f"{name} asks for a kind of sign-in that needs a person: leave Authentication out, or write Authentication"
            "=Active Directory Default"
        )
    if fields.get("encrypt", "").lower() in {"false", "no", "optional"}:
        raise BadConnection(f"{name} asks for a connection without encryption: leave Encrypt out")
    return TdsAddress(host, port, _first(fields, _DATABASE), _first(fields, _USER) or None)


def _fields(name: str, value: str) -> dict[str, str]:
    try:
        return connection_strings.fields(value)
    except ValueError:
        raise BadConnection(
            f"{name} has a part without '=': it should look like Server=org.crm.dynamics.com,5558"
        ) from None


def _first(fields: dict[str, str], names: tuple[str, ...]) -> str:
    return next((fields[name] for name in names if fields.get(name)), "")


def _without_scheme(value: str) -> str:
    return urlsplit(value).netloc if "://" in value else value.rstrip("/")


def _place(name: str, server: str) -> tuple[str, int]:
    try:
        return connection_strings.server_place(server)
    except ValueError:
        raise BadConnection(
            f"{name} names no server that can be read: it should look like Server=org.crm.dynamics.com,5558"
        ) from None
