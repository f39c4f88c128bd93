"""`matoolkit dead-letter`: messages that could not be handled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.groups import Group
from matoolkit.cli.options import echo_json
from matoolkit.cli.showing.lists import paged, show_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.cli.showing.lists import Page


@click.group("dead-letter", cls=Group)
def dead_letter() -> None:
    """Look after messages that could not be handled."""


@dead_letter.command("list")
@click.option("--bodies", is_flag=True, help="Show what the messages say; what may be about people is left out of it.")
@paged(500)
@asks
def list_dead_letters(page: Page, api_url: str | None, output: str, *, bodies: bool) -> None:
    """List messages that could not be handled, the newest first."""
    from matoolkit.cli.showing.tables import Column, field
    from matoolkit.cli.showing.times import moment

    def again(row: Mapping[str, Any]) -> str:
        if not row["resubmittedAt"]:
            return ""
        return f"{moment(row['resubmittedAt'])} by {row['resubmittedBy'] or 'somebody'}"

    columns = [
        field("ID", "id", right=True),
        Column("At", lambda row: moment(row["at"]), rank=2),
        field("Topic", "topic", rank=4),
        field("Message", "messageType", rank=1),
        field("Reason", "reason", folds=True),
        field("Error", "error", folds=True, rank=3),
        Column("Sent again", again, rank=5, folds=True),
    ]
    if bodies:
        columns.append(Column("Body", lambda row: json.dumps(row["body"], ensure_ascii=False), rank=1, folds=True))
    with api_client(api_url) as client:
        show_list(client.dead_letters, "messages", columns, output=output, page=page, empty="There are none.")


@dead_letter.command()
@click.argument("message_id", metavar="ID", type=click.IntRange(min=1))
@asks
def resubmit(message_id: int, api_url: str | None, output: str) -> None:
    """Send the message ID again, once what it failed of is put right."""
    from matoolkit.cli.showing.safe import safe

    with api_client(api_url) as client:
        answer = client.resubmit(message_id)
    if output == "json":
        echo_json(answer)
    else:
        click.echo(safe(answer["message"]))
