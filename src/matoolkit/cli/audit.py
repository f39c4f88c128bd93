"""`matoolkit audit`: who did what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.showing.lists import paged, show_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.cli.showing.lists import Page


@click.command()
@click.option("--batch", "batch_id", type=click.IntRange(min=1), metavar="ID", help="Only about this batch.")
@click.option("--actor", metavar="NAME", help="Only what this person did, named as recorded.")
@click.option("--since", metavar="TIME", help="Not what was done before: ISO 8601, in UTC unless it names a zone.")
@paged(500)
@asks
def audit(
    *, batch_id: int | None, actor: str | None, since: str | None, page: Page, api_url: str | None, output: str
) -> None:
    """Show who did what, the newest first."""
    from matoolkit.cli.showing.tables import Column, field
    from matoolkit.cli.showing.times import moment

    columns = [
        Column("At", lambda row: moment(row["at"])),
        field("Who", "actor", folds=True),
        field("Did", "action", folds=True),
        field("To", "target", folds=True),
        Column("Detail", _detail, rank=1, folds=True),
    ]
    chosen: dict[str, Any] = {"batchId": batch_id, "actor": actor, "since": since}
    with api_client(api_url) as client:
        show_list(
            client.audit, "entries", columns, output=output, page=page, empty="Nothing is recorded.", chosen=chosen
        )


def _detail(row: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in (row["detail"] or {}).items()
    )
