"""Access tokens from Entra, by whatever identity the machine has."""

from __future__ import annotations

import re
from threading import Lock
from typing import Any, Final

from matoolkit.scheduler.sources.errors import ExtraNotInstalled, SignInRefused, SourceUnavailable

# What Entra calls an error; the rest of what it says may quote whom it refused.
_CODE: Final = re.compile(r"AADSTS\d+")


class EntraTokens:
    """Signs in with azure-identity, which keeps tokens until shortly before they expire."""

    def __init__(self) -> None:
        self._credentials: dict[str | None, Any] = {}
        self._lock = Lock()

    def __call__(self, scope: str, client_id: str | None = None) -> str:
        """An access token for a scope, as the managed identity of that client id when there is one."""
        try:
            from azure.core.exceptions import AzureError, ClientAuthenticationError
            from azure.identity import DefaultAzureCredential
        except ModuleNotFoundError as error:
            raise ExtraNotInstalled(
                f"signing in needs the Python package {error.name}: run pip install azure-identity"
            ) from error
        with self._lock:
            credential = self._credentials.get(client_id)
            if credential is None:
                credential = DefaultAzureCredential(
                    managed_identity_client_id=client_id, exclude_interactive_browser_credential=True
                )
                self._credentials[client_id] = credential
        try:
            token: str = credential.get_token(scope).token
        except ClientAuthenticationError as error:  # which an identity that is not there is, too
            code = _CODE.search(str(error))
            raise SignInRefused(
                f"no token for {scope}{f' ({code[0]})' if code else ''}: give the scheduler a managed identity, or set"
                " AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or sign in with the Azure command line"
            ) from error
        except AzureError as error:
            raise SourceUnavailable(f"no token for {scope}: the sign-in service cannot be reached") from error
        return token
