"""`matoolkit find`: where a person is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.showing.lists import paged, show_list

if TYPE_CHECKING:
    from matoolkit.cli.showing.lists import Page


@click.command()
@click.argument("key")
@paged(50)
@asks
def find(key: str, page: Page, api_url: str | None, output: str) -> None:
    """Say in which batches the person KEY is or was, and where there.

    `batch member` shows all that was done to them in one.
    """
    from matoolkit.cli.showing.tables import Column
    from matoolkit.cli.showing.times import moment

    def of(thing: str, name: str) -> Any:
        return lambda row: row[thing][name]

    columns = [
        Column("Batch", of("batch", "id"), right=True),
        Column("Runbook", of("batch", "runbookName"), folds=True),
        Column("Batch is", of("batch", "status"), rank=2),
        Column("Member", of("member", "memberKey"), rank=1, folds=True),
        Column("Status", of("member", "status")),
        Column("Joined", lambda row: moment(row["member"]["addedAt"]), rank=4),
        Column("Waits for", of("member", "waitingFor"), rank=3, folds=True),
    ]
    with api_client(api_url) as client:
        show_list(
            client.places,
            "places",
            columns,
            output=output,
            page=page,
            empty="No batch has, or had, a member of this key.",
            chosen={"key": key},
        )
