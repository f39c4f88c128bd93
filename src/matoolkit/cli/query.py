"""`matoolkit query`: what a runbook's query finds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.files import warn
from matoolkit.cli.groups import Group
from matoolkit.cli.options import echo_json

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.group(cls=Group)
def query() -> None:
    """Look at what runbooks' queries find."""


@query.command()
@click.argument("runbook")
@click.option(
    "--rows", type=click.IntRange(0, 100), default=5, show_default=True, metavar="N", help="How many rows to show."
)
@asks
def preview(runbook: str, rows: int, api_url: str | None, output: str) -> None:
    """Run RUNBOOK's query and show which batches it would make; nothing is made of it."""
    with api_client(api_url) as client:
        found = client.preview_query(runbook)
    if output == "json":
        echo_json(found)
        return
    from matoolkit.cli.showing.tables import Column, field, print_table
    from matoolkit.cli.showing.times import moment

    warn(found)
    groups, sample = found["batchGroups"], found["sample"][:rows]
    click.echo(f"{_counted(found['rowCount'], 'row')}, {_counted(len(groups), 'batch', 'batches')}.")
    if groups:
        click.echo()
        print_table(
            groups,
            [
                Column("Batch time", lambda row: moment(row["batchTime"])),
                field("Members", "memberCount", right=True),
            ],
        )
    if sample:
        click.echo()
        # Each further column gives way before the one in front of it.
        print_table(sample, [_column(title, rank) for rank, title in enumerate(found["columns"])])


def _column(title: str, rank: int) -> Any:
    from matoolkit.cli.showing.safe import safe
    from matoolkit.cli.showing.tables import Column

    def show(row: Mapping[str, Any]) -> object:
        value = row.get(title)
        return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value

    return Column(safe(title), show, rank=rank, folds=True)


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
