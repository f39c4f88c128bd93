"""The command line's side of the admin API: who is asked, how, and what can go wrong."""

from matoolkit.cli.client.api import Answer, ApiClient, all_pages
from matoolkit.cli.client.errors import (
    ClientError,
    DoesNotFit,
    NotOurServer,
    NotThere,
    Refused,
    RoleMissing,
    ServerAway,
    ServerFailed,
    ServerSilent,
    ServerUntrusted,
    SignInRefused,
)

__all__ = [
    "Answer",
    "ApiClient",
    "ClientError",
    "DoesNotFit",
    "NotOurServer",
    "NotThere",
    "Refused",
    "RoleMissing",
    "ServerAway",
    "ServerFailed",
    "ServerSilent",
    "ServerUntrusted",
    "SignInRefused",
    "all_pages",
]
