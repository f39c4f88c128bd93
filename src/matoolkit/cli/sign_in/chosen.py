"""Which way of signing in holds: a tenant where one is configured, else the key of this machine."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from matoolkit.cli.client.connection import is_loopback
from matoolkit.cli.sign_in.entra import EntraSignIn
from matoolkit.cli.sign_in.errors import NoSignIn
from matoolkit.cli.sign_in.local import LocalSignIn
from matoolkit.local_key import FILE_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from matoolkit.cli.configuration import Configuration
    from matoolkit.clock import Clock


class SignIn(Protocol):
    """Gives tokens."""

    @property
    def advice(self) -> str:
        """What to do when the server does not accept them."""
        ...

    def token(self) -> str:
        """One that is valid."""


def chosen(configuration: Configuration, data_folder: Path, home: Path, clock: Clock) -> LocalSignIn | EntraSignIn:
    """The way to sign in to the server that is configured."""
    url = configuration.api_url
    if urlsplit(url).scheme != "https" and not is_loopback(url):
        raise NoSignIn(
            f"{url} is not on this machine, and without TLS a token would travel where others can read it: use https"
        )
    if configuration.uses_entra:
        found = entra(configuration, home, clock)
        if is_loopback(url) and (data_folder / FILE_NAME).exists():
            found.hint = (
                f". If you mean the server that is signed in to with the key in {data_folder}: that is done when "
                "neither tenant-id nor client-id is set; `matoolkit config show` says what sets them"
            )
        return found
    if not is_loopback(url):
        raise NoSignIn(
            f"it is not said how to sign in to {url}: run `matoolkit config set tenant-id …` and "
            "`matoolkit config set client-id …`, or set MATOOLKIT_TENANT_ID and MATOOLKIT_CLIENT_ID"
        )
    return LocalSignIn(data_folder, clock)


def entra(configuration: Configuration, home: Path, clock: Clock) -> EntraSignIn:
    """Through the tenant that is configured."""
    tenant, client = configuration.value("tenant-id"), configuration.value("client-id")
    if tenant is None or client is None:
        missing = "tenant-id" if tenant is None else "client-id"
        raise NoSignIn(f"to sign in to Entra ID, {missing} is missing: run `matoolkit config set {missing} …`")
    return EntraSignIn(
        tenant_id=tenant,
        client_id=client,
        scope=configuration.value("api-scope") or f"api://{client}/.default",
        authority=configuration.value("authority-url"),
        folder=home,
        clock=clock,
    )


def claims_of(token: str) -> dict[str, Any]:
    """What a token says of its owner, for showing only: nothing is checked, and nobody may rely on it."""
    try:
        payload = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, IndexError):
        return {}
    return found if isinstance(found, dict) else {}
