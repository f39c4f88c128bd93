"""`runbook list`, `runbook get` and `runbook versions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.options import echo_json
from matoolkit.cli.showing.lists import paged, print_rows, show_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.cli.showing.lists import Page
    from matoolkit.cli.showing.tables import Column


@click.command("list")
@paged(500)
@asks
def list_runbooks(page: Page, api_url: str | None, output: str) -> None:
    """List the runbooks that have a version in force."""
    with api_client(api_url) as client:
        show_list(
            client.runbooks, "runbooks", _columns(), output=output, page=page, empty="No runbook has been published."
        )


@click.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="Which one.  [default: that in force]")
@click.option("--yaml", "only_yaml", is_flag=True, help="Print the text alone, as it was published.")
@asks
def get(name: str, version: int | None, api_url: str | None, output: str, *, only_yaml: bool) -> None:
    """Show the runbook NAME and its text."""
    with api_client(api_url) as client:
        found = client.runbook(name, version)
    if output == "json":
        echo_json(found)
    elif only_yaml:
        click.echo(_harmless(found["yamlContent"]), nl=False)
    else:
        _print(found)


@click.command()
@click.argument("name")
@asks
def versions(name: str, api_url: str | None, output: str) -> None:
    """List every version of the runbook NAME, the newest first."""
    from matoolkit.cli.showing.tables import field

    with api_client(api_url) as client:
        found = client.versions(name)
    if output == "json":
        echo_json(found)
        return
    _, version, *others = _columns()
    columns = [
        version,
        field("In force", "isActive"),
        field("Published by", "publishedBy", rank=1, folds=True),
        *others,
    ]
    print_rows(found["versions"], columns, "There are none.")


def _columns() -> list[Column]:
    from matoolkit.cli.showing.tables import Column, field
    from matoolkit.cli.showing.times import moment

    return [
        field("Name", "name", folds=True),
        field("Version", "version", right=True),
        Column("Published", lambda row: moment(row["createdAt"]), rank=1),
        field("Automatic", "automationEnabled", rank=1),
        field("Overdue", "overdueBehavior", rank=3),
        field("Reruns init", "rerunInit", rank=4),
        field("Last error", "lastError", rank=2, folds=True),
    ]


def _print(found: Mapping[str, Any]) -> None:
    from matoolkit.cli.showing.tables import print_fields
    from matoolkit.cli.showing.times import moment

    by = f" by {found['publishedBy']}" if found.get("publishedBy") else ""
    error = found.get("lastError")
    print_fields(
        [
            ("Runbook", found["name"]),
            ("Version", f"{found['version']}{'' if found['isActive'] else ', not in force'}"),
            ("Published", moment(found["createdAt"]) + by),
            ("Overdue phases", found["overdueBehavior"]),
            ("Reruns init", found["rerunInit"]),
            ("Last error", f"{moment(found['lastErrorAt'])}: {error}" if error else None),
        ]
    )
    click.echo()
    click.echo(_harmless(found["yamlContent"]), nl=not found["yamlContent"].endswith("\n"))


def _harmless(text: str) -> str:
    """To a file as it is, so that it can be published again; to a terminal without what could do something there."""
    from matoolkit.cli.showing.safe import safe_lines
    from matoolkit.cli.showing.tables import is_terminal

    return safe_lines(text) if is_terminal() else text
