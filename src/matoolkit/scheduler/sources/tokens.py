"""Access tokens from Entra, by whatever identity the machine has."""

from __future__ import annotations

from threading import Lock
from typing import Any

from matoolkit.scheduler.sources.errors import ExtraNotInstalled, SignInRefused, SourceUnavailable


class EntraTokens:
    """Signs in with azure-identity, which keeps tokens until shortly before they expire."""

    def __init__(self) -> None:
        self._credentials: dict[str | None, Any] = {}
        self._lock = Lock()

    def __call__(self, scope: str, client_id: str | None = None) -> str:
        """An access token for a scope, as the managed identity of that client id when there is one."""
        try:
            from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
            from azure.identity import CredentialUnavailableError, DefaultAzureCredential
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
        except CredentialUnavailableError as error:
            raise SignInRefused(_nobody(scope)) from error
        except ClientAuthenticationError as error:
            raise SignInRefused(_nobody(scope)) from error
        except ServiceRequestError as error:
            raise SourceUnavailable(f"no token for {scope}: the sign-in service cannot be reached") from error
        return token


def _nobody(scope: str) -> str:
    return (
        f"no token for {scope}: give the scheduler a managed identity, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and"
        " AZURE_CLIENT_SECRET, or sign in with the Azure command line"
    )
