"""`matoolkit auth`: signing in and out, and who is signed in."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_url_option
from matoolkit.cli.groups import Group
from matoolkit.cli.options import echo_json, output_option

if TYPE_CHECKING:
    from matoolkit.cli.configuration import Configuration
    from matoolkit.cli.sign_in.entra import EntraSignIn
    from matoolkit.cli.sign_in.local import LocalSignIn


@click.group(cls=Group)
def auth() -> None:
    """Sign in and out, and see who is."""


@auth.command()
@api_url_option
@output_option
def login(api_url: str | None, output: str) -> None:
    """Sign in through Entra ID with a code that you enter in a browser, on this or another device.

    Lasts for weeks; tokens are kept where the operating system keeps secrets. Against a server on this machine that
    uses no tenant it is not needed: the key in the data folder signs in.
    """
    sign_in, configuration = _sign_in(api_url)
    if not configuration.uses_entra:
        name = _claims(sign_in.token()).get("preferred_username")
        click.echo(f"No sign-in is needed: the key in {_folder(sign_in)} signs in as {name}.", err=output == "json")
        if output == "json":
            echo_json({"method": "local", "username": name})
        return
    from matoolkit.cli.showing.safe import safe

    entra: Any = sign_in
    record = entra.log_in(_prompt)
    kept = _kept(entra)
    if kept.startswith("the file"):
        click.echo(
            f"Note: this machine has no place that keeps secrets, so your tokens are in {kept}, which only your "
            "account can read. `matoolkit auth logout` takes them out.",
            err=True,
        )
    if output == "json":
        echo_json({"method": "entra", "username": record.username, "tenantId": record.tenant_id, "tokensIn": kept})
    else:
        click.echo(f"Signed in as {safe(record.username)}.")


@auth.command()
@api_url_option
@output_option
def status(api_url: str | None, output: str) -> None:
    """Show who is signed in, with which roles, and whether the server is there.

    Exit code 1 when nobody is signed in, or the server cannot be reached.
    """
    from matoolkit.cli.client import ApiClient, ClientError
    from matoolkit.errors import MatoolkitError

    sign_in, configuration = _sign_in(api_url)
    found: dict[str, Any] = {
        "apiUrl": configuration.api_url,
        "method": "entra" if configuration.uses_entra else "local",
        "signedIn": False,
        "username": None,
        "roles": [],
        "expiresAt": None,
        "tokensIn": _kept(sign_in) if configuration.uses_entra else f"the key in {_folder(sign_in)}",
        "error": None,
        "server": None,
        "serverError": None,
    }
    try:
        claims = _claims(sign_in.token())
        found |= {
            "signedIn": True,
            "username": claims.get("preferred_username") or claims.get("name") or claims.get("oid"),
            "roles": claims.get("roles") or [],
            "expiresAt": _moment(claims.get("exp")),
        }
    except MatoolkitError as error:
        found["error"] = str(error)
    try:
        with ApiClient(configuration.api_url, None) as client:
            found["server"] = client.health()
        if found["signedIn"]:
            with ApiClient(configuration.api_url, sign_in.token, advice=sign_in.advice) as client:
                client.runbooks(limit=1)
    except ClientError as error:
        found["serverError"] = str(error)
    if output == "json":
        echo_json(found)
    else:
        _print(found)
    if not found["signedIn"] or found["serverError"]:
        sys.exit(1)


@auth.command()
@api_url_option
@output_option
def logout(api_url: str | None, output: str) -> None:
    """Sign out: the tokens that are kept on this machine are taken out."""
    sign_in, configuration = _sign_in(api_url)
    entra: Any = sign_in
    name = entra.log_out() if configuration.uses_entra else None
    if output == "json":
        echo_json({"username": name})
    elif not configuration.uses_entra:
        click.echo(f"Nothing to do: whoever can read the key in {_folder(sign_in)} is signed in.")
    elif name is None:
        click.echo("Nobody was signed in.")
    else:
        from matoolkit.cli.showing.safe import safe

        click.echo(f"Signed out {safe(name)}.")


@auth.command()
@api_url_option
@output_option
def token(api_url: str | None, output: str) -> None:
    """Print an access token for scripts: whoever has it can do what you can, for as long as it holds."""
    sign_in, _ = _sign_in(api_url)
    found = sign_in.token()
    if output == "json":
        echo_json({"token": found, "expiresAt": _moment(_claims(found).get("exp"))})
    else:
        click.echo(found)


def _sign_in(api_url: str | None) -> tuple[LocalSignIn | EntraSignIn, Configuration]:
    from matoolkit.cli.configuration import home, read_configuration
    from matoolkit.cli.database import data_folder
    from matoolkit.cli.sign_in import chosen
    from matoolkit.clock import SystemClock

    configuration = read_configuration(api_url, os.environ)
    return chosen(configuration, data_folder(), home(), SystemClock()), configuration


def _prompt(url: str, code: str, expires: datetime) -> None:
    from matoolkit.cli.showing.safe import safe

    minutes = max(1, round((expires - datetime.now(UTC)).total_seconds() / 60))
    click.echo(
        f"Open {safe(url)} in a browser, on this or another device, and enter the code {safe(code)}. "
        f"It holds for {minutes} minutes.",
        err=True,
    )


def _claims(token: str) -> dict[str, Any]:
    from matoolkit.cli.sign_in import claims_of

    return claims_of(token)


def _folder(sign_in: Any) -> str:
    return str(sign_in.folder)


def _kept(sign_in: Any) -> str:
    from matoolkit.cli.sign_in.entra import store_of_the_system

    store = store_of_the_system()
    if store is not None:
        return store
    files = [str(each) for each in sign_in.token_files() if each.suffix == ".nocae"]
    return f"the file {files[0]}" if files else "nowhere yet"


def _moment(seconds: Any) -> str | None:
    if not isinstance(seconds, int | float):
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _print(found: dict[str, Any]) -> None:
    from matoolkit.cli.showing.tables import print_fields
    from matoolkit.cli.showing.times import moment

    server = found["server"]
    print_fields(
        [
            ("Server", found["apiUrl"]),
            ("State", f"{server['status']}, version {server['version']}" if server else "not reached"),
            ("Sign-in", "Entra ID" if found["method"] == "entra" else "the key of this machine"),
            ("Signed in as", found["username"] or "nobody"),
            ("Roles", (", ".join(found["roles"]) or "none") if found["signedIn"] else None),
            ("Token holds until", moment(found["expiresAt"])),
            ("Kept in", found["tokensIn"]),
            ("Sign-in error", found["error"]),
            ("Server error", found["serverError"]),
        ]
    )
