"""Signing in to Azure SQL with a token of Entra ID: asked for anew for every connection, kept by who gives it.

A connection goes on when its token has run out, so nothing has to be renewed on one that is open.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any, Final

from matoolkit.store.azure_sql.address import DEFAULT, MANAGED_IDENTITY
from matoolkit.store.errors import DatabaseUnavailable, SignInRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import URL


ACCESS_TOKEN: Final = 1256
"""The attribute of a connection that carries it: SQL_COPT_SS_ACCESS_TOKEN."""
_CLOUDS: Final = (".database.usgovcloudapi.net", ".database.chinacloudapi.cn", ".database.windows.net")
_PUBLIC: Final = ".database.windows.net"


def wants_token(address: URL) -> bool:
    """Whether a token is signed in with, and no password."""
    return address.query.get("authentication") in {MANAGED_IDENTITY, DEFAULT}


def scope(address: URL) -> str:
    """What a token for this server is asked for, by the cloud it is in."""
    host = address.host or ""
    cloud = next((each for each in _CLOUDS if host.endswith(each)), _PUBLIC)
    return f"https://{cloud.removeprefix('.')}/.default"


def entra_tokens(address: URL) -> Callable[[str], str]:
    """Tokens of this machine's identity: the one that User ID or AZURE_CLIENT_ID names, else its own."""
    from azure.core.exceptions import ClientAuthenticationError
    from azure.core.exceptions import ServiceRequestError as NotReached
    from azure.identity import CredentialUnavailableError, DefaultAzureCredential, ManagedIdentityCredential

    client_id = address.username or os.environ.get("AZURE_CLIENT_ID") or None
    credential: Any
    if address.query.get("authentication") == MANAGED_IDENTITY:
        credential = ManagedIdentityCredential(client_id=client_id)
    else:
        credential = DefaultAzureCredential(
            managed_identity_client_id=client_id, exclude_interactive_browser_credential=True
        )

    def token(wanted: str) -> str:
        try:
            return str(credential.get_token(wanted).token)
        except CredentialUnavailableError as error:
            who = "no managed identity" if client_id is None else "no managed identity with that client id"
            raise SignInRefused(f"this machine has {who} to sign in with: {_first_line(error)}") from error
        except ClientAuthenticationError as error:
            raise SignInRefused(f"Entra ID gives no token: {_first_line(error)}") from error
        except NotReached as error:
            raise DatabaseUnavailable(f"no token can be asked for: {_first_line(error)}") from error

    return token


def packed(token: str) -> bytes:
    """A token as the driver takes it."""
    data = token.encode("utf-16-le")
    return struct.pack("<i", len(data)) + data


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
