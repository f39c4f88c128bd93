"""`matoolkit automation`: whether a runbook makes batches by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.groups import Group
from matoolkit.cli.options import echo_json

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.group(cls=Group)
def automation() -> None:
    """Say whether runbooks make batches by themselves."""


@automation.command()
@click.argument("runbook")
@asks
def status(runbook: str, api_url: str | None, output: str) -> None:
    """Show whether RUNBOOK makes batches of what its query finds."""
    with api_client(api_url) as client:
        _show(client.automation(runbook), output)


@automation.command()
@click.argument("runbook")
@asks
def enable(runbook: str, api_url: str | None, output: str) -> None:
    """Have RUNBOOK make batches of what its query finds; `query preview` shows what that would be."""
    with api_client(api_url) as client:
        _show(client.switch_automation(runbook, enabled=True), output)


@automation.command()
@click.argument("runbook")
@asks
def disable(runbook: str, api_url: str | None, output: str) -> None:
    """Have RUNBOOK make no new batches; those under way go on."""
    with api_client(api_url) as client:
        _show(client.switch_automation(runbook, enabled=False), output)


def _show(found: Mapping[str, Any], output: str) -> None:
    if output == "json":
        echo_json(found)
        return
    from matoolkit.cli.showing.tables import print_fields
    from matoolkit.cli.showing.times import moment

    print_fields(
        [
            ("Runbook", found["runbookName"]),
            ("Automation", "enabled" if found["automationEnabled"] else "disabled"),
            *(
                (f"{state.capitalize()} last", f"{moment(found[f'{state}At'])} by {found[f'{state}By'] or 'somebody'}")
                for state in ("enabled", "disabled")
                if found[f"{state}At"]
            ),
        ]
    )
