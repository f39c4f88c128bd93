"""Who may sign in: applications and people."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

GRAPH_ROLES = frozenset({"User.ReadWrite.All", "GroupMember.ReadWrite.All", "User.Invite.All", "Group.Read.All"})
EXCHANGE_ROLES = frozenset({"Exchange.ManageAsApp"})

GRAPH_RESOURCES = (
    "https://graph.microsoft.com",
    "https://graph.microsoft.us",
    "https://dod-graph.microsoft.us",
    "https://microsoftgraph.chinacloudapi.cn",
)
EXCHANGE_RESOURCES = (
    "https://outlook.office365.com",
    "https://outlook.office.com",
    "https://outlook.office365.us",
    "https://partner.outlook.cn",
)


@dataclass(slots=True, kw_only=True)
class Application:
    """An app registration that signs in by itself, with what it has been granted."""

    client_id: str
    secrets: set[str] = field(default_factory=set)
    certificates: list[bytes] = field(default_factory=list)
    """PEM, as registered: without keys."""
    graph_roles: frozenset[str] = GRAPH_ROLES
    exchange_roles: frozenset[str] = EXCHANGE_ROLES
    exchange_administrator: bool = True
    """Whether it holds a directory role that lets it change recipients."""
    object_id: str = field(default_factory=lambda: str(uuid4()))


@dataclass(slots=True, kw_only=True)
class ExposedApi:
    """An app registration of ours that others get tokens for: the admin API."""

    client_id: str
    uri: str = ""
    """Its application id URI; `api://{client_id}` unless told."""
    token_version: int = 2
    """Which tokens it asks for: 1 (audience is the URI, issuer is sts.windows.net) or 2 (audience is the id)."""
    scopes: frozenset[str] = frozenset({"user_impersonation"})

    def __post_init__(self) -> None:
        self.uri = self.uri or f"api://{self.client_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who signs in with a device code."""

    username: str
    name: str = ""
    roles: frozenset[str] = frozenset()
    """App roles of the exposed API: `Admin`, `Reader`."""
    object_id: str = field(default_factory=lambda: str(uuid4()))
