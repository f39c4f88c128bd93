"""Every route of the API is reached by some command, with every one of its parameters; every command fails well."""

from __future__ import annotations

import re
import socket
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from devtools.cli_reference import commands
from matoolkit.cli.client.connection import Connection
from matoolkit.cli.sign_in import local
from tests.api.people import csv, runbook
from tests.cli.conftest import bad

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from tests.api.live import Live
    from tests.cli.conftest import Run

PAGE = ["--limit", "1", "--cursor", "x"]
OFFSET = ["--limit", "1", "--offset", "1"]
ASKING: dict[str, list[list[str]]] = {
    "audit": [["--batch", "1", "--actor", "x", "--since", "2026-01-01", *PAGE], OFFSET],
    "auth status": [[]],
    "automation disable": [["wave"]],
    "automation enable": [["wave"]],
    "automation status": [["wave"]],
    "batch add-members": [["1", "people.csv"]],
    "batch advance": [["1"], ["999999", "--auto"]],
    "batch cancel": [["1", "--force"], ["1"]],
    "batch create": [["wave", "people.csv"]],
    "batch failures": [["1", "--limit", "3"]],
    "batch get": [["1"]],
    "batch list": [["--runbook", "x", "--status", "active", "--manual", *PAGE], OFFSET],
    "batch member": [["1", "anna"]],
    "batch members": [["1", "--status", "active", "--member", "x", *PAGE], ["1", *OFFSET]],
    "batch phases": [["1"]],
    "batch release-removals": [["1", "--force"], ["1"]],
    "batch remove-member": [["1", "anna", "--force"], ["1", "anna"]],
    "batch steps": [["1", "--phase", "x", "--status", "failed", "--member", "x", *PAGE], ["1", *OFFSET]],
    "batch watch": [["999999"]],
    "dead-letter list": [PAGE, OFFSET],
    "dead-letter resubmit": [["1"]],
    "find": [["anna", *PAGE], ["anna", *OFFSET]],
    "query preview": [["wave"]],
    "runbook delete": [["wave", "1", "--force"], ["wave", "1"]],
    "runbook get": [["wave"], ["wave", "--version", "1"]],
    "runbook list": [PAGE, OFFSET],
    "runbook publish": [["wave.yaml"]],
    "runbook versions": [["wave"]],
    "status": [[]],
    "template download": [["wave"]],
}
"""How each command that asks the API may be called."""
CALLS = [(name, arguments) for name, several in ASKING.items() for arguments in several]


@pytest.fixture
def files(nothing_set: Path, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes(csv("anna"))
    (tmp_path / "wave.yaml").write_text(runbook("wave"))


def has_option(command: click.Command, name: str) -> bool:
    return any(name in parameter.opts for parameter in command.params)


def test_every_command_that_asks_is_known_here() -> None:
    asking = {name for name, command in commands() if has_option(command, "--api-url")}
    # These speak of the server without asking it.
    assert asking - {"auth login", "auth logout", "auth token", "config show"} == set(ASKING)


def test_every_command_that_asks_or_shows_has_the_options_for_it() -> None:
    for name, command in commands():
        if name in ASKING:
            assert has_option(command, "-u"), name
            assert has_option(command, "--output"), name


def test_every_route_and_every_parameter_is_asked_for(
    live: Live, run: Run, files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[tuple[str, str]] = set()
    named: dict[tuple[str, str], set[str]] = {}
    document = live.get("/openapi.json", role=None)
    routes = {
        (method.upper(), path): {each["name"] for each in described.get("parameters", []) if each["in"] == "query"}
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    }

    def route_of(method: str, path: str) -> tuple[str, str]:
        [found] = [
            route
            for route in routes
            if route[0] == method and re.fullmatch(re.sub(r"\{[a-z_]+\}", "[^/]+", route[1]), path)
        ]
        return found

    real = Connection.ask

    def ask(self: Connection, method: str, path: str, **given: Any) -> Any:
        route = route_of(method, path)
        asked.add(route)
        query = {name for name, value in (given.get("query") or {}).items() if value is not None}
        named.setdefault(route, set()).update(query)
        return real(self, method, path, **given)

    monkeypatch.setattr(Connection, "ask", ask)
    live.publish("wave")
    batch = live.create("wave", "anna")["batchId"]
    for name, arguments in CALLS:
        of_batch = name.startswith("batch ") and arguments[:1] == ["1"]
        placed = [str(batch), *arguments[1:]] if of_batch else arguments
        run(*name.split(), *placed)
    run("batch", "member", batch, "anna")
    assert set(routes) - asked == set()
    missing = {route: names - named[route] for route, names in routes.items() if names - named[route]}
    assert missing == {}


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=lambda each: each if isinstance(each, str) else "")
def test_a_server_that_is_away(run: Run, files: None, name: str, arguments: list[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    result = run(*name.split(), *arguments, "--api-url", url)
    if name == "auth status":
        assert (result.exit_code, "not reached" in result.stdout) == (1, True)
        return
    assert bad(result).startswith(f"the server at {url} cannot be reached: Connection refused.")
    assert result.stdout == ""


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=lambda each: each if isinstance(each, str) else "")
def test_a_token_that_has_expired(
    run: Run, files: None, name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "LIFETIME", timedelta(hours=-1))
    result = run(*name.split(), *arguments)
    if name == "auth status":
        assert (result.exit_code, "the token has expired" in result.stdout) == (1, True)
        return
    assert "the server does not accept your sign-in: the token has expired" in bad(result)
    assert result.stdout == ""


ADMIN_ONLY = {
    "automation disable",
    "automation enable",
    "batch add-members",
    "batch advance",
    "batch cancel",
    "batch create",
    "batch release-removals",
    "dead-letter resubmit",
    "query preview",
    "runbook delete",
    "runbook publish",
}


@pytest.mark.parametrize("name", sorted(ADMIN_ONLY))
def test_a_role_that_is_missing(run: Run, files: None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "ROLE", "Reader")
    assert "you are signed in, but may not do this: this needs the role Admin" in bad(
        run(*name.split(), *ASKING[name][0])
    )
