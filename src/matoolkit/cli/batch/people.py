"""`batch create`, `batch members`, `batch add-members` and `batch remove-member`: who takes part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.batch.looking import batch_id_argument
from matoolkit.cli.confirming import confirm, force_option, people
from matoolkit.cli.files import LARGEST_FILE, file_name, read_bytes, readable_file, warn
from matoolkit.cli.options import echo_json
from matoolkit.cli.showing.lists import paged, show_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.cli.client import ApiClient
    from matoolkit.cli.showing.lists import Page

MEMBER_STATES = ["active", "completed", "removed", "failed"]


@click.command()
@click.argument("runbook")
@click.argument("file", type=readable_file)
@asks
def create(runbook: str, file: str, api_url: str | None, output: str) -> None:
    """Make a batch of RUNBOOK from the people in the CSV file FILE (-: standard input).

    Nothing happens to them until the batch is advanced. `template download` gives a file to fill in. Everything that
    is wrong with the file is told at once, and any error refuses it whole.
    """
    content = read_bytes(file, LARGEST_FILE)
    with api_client(api_url) as client:
        answer = client.create_batch(runbook, file_name(file), content)
    if output == "json":
        echo_json(answer)
        return
    from matoolkit.cli.showing.safe import safe

    warn(answer)
    phases = ", ".join(safe(each) for each in answer["availablePhases"])
    click.echo(f"Made batch {answer['batchId']} of {people(answer['memberCount'])}; its phases: {phases}.")
    click.echo(f"`matoolkit batch advance {answer['batchId']}` begins it.")


@click.command()
@batch_id_argument
@click.option("--status", type=click.Choice(MEMBER_STATES), help="Only those in this state.")
@click.option("--member", metavar="KEY", help="Only this one, by key or by id.")
@click.option("--data", is_flag=True, help="Show what is known of them; needs the role Reader or Admin.")
@paged(1000)
@asks
def members(
    *, batch_id: int, status: str | None, member: str | None, page: Page, api_url: str | None, output: str, data: bool
) -> None:
    """List the members of the batch ID, where each is, and what each waits for."""
    from matoolkit.cli.batch.columns import member_columns

    columns = member_columns(data=data)
    with api_client(api_url) as client:

        def ask(**query: Any) -> dict[str, Any]:
            return client.members(batch_id, **query)

        show_list(
            ask,
            "members",
            columns,
            output=output,
            page=page,
            empty="There are no such members.",
            chosen={"status": status, "member": member},
        )


@click.command("add-members")
@batch_id_argument
@click.argument("file", type=readable_file)
@asks
def add_members(batch_id: int, file: str, api_url: str | None, output: str) -> None:
    """Add the people in the CSV file FILE (-: standard input) to the batch ID, which was made by hand.

    They catch up on the phases that have begun.
    """
    content = read_bytes(file, LARGEST_FILE)
    with api_client(api_url) as client:
        answer = client.add_members(batch_id, file_name(file), content)
    if output == "json":
        echo_json(answer)
        return
    warn(answer)
    skipped = f", left out {answer['skippedCount']:,}" if answer["skippedCount"] else ""
    click.echo(f"Added {people(answer['addedCount'])} to batch {batch_id}{skipped}.")


@click.command("remove-member")
@batch_id_argument
@click.argument("member")
@force_option
@asks
def remove_member(batch_id: int, member: str, api_url: str | None, output: str, *, force: bool) -> None:
    """Take MEMBER, named by key or by id, out of the batch ID, which was made by hand.

    What is open of theirs is cancelled, and the runbook's steps of leaving run.
    """
    from matoolkit.cli.showing.safe import safe

    with api_client(api_url) as client:
        found = member_of(client, batch_id, member)
        if not force:
            at = f", waiting for {found['waitingFor']}" if found.get("waitingFor") else ""
            confirm(
                f"This would take 1 person, '{found['memberKey']}' (id {found['id']}, {found['status']}{at}), out of "
                f"batch {batch_id}, cancel what is open of theirs, and run the steps of leaving."
            )
        answer = client.remove_member(batch_id, found["id"])
    if output == "json":
        echo_json(answer)
    else:
        click.echo(f"'{safe(found['memberKey'])}' is removed from batch {batch_id} (member id {found['id']}).")


def member_of(client: ApiClient, batch_id: int, named: str) -> Mapping[str, Any]:
    """By key, or by id."""
    listed = client.members(batch_id, member=named)["members"]
    if not listed:
        from matoolkit.cli.showing.safe import safe

        raise click.ClickException(
            f"batch {batch_id} has no member '{safe(named)}'; `matoolkit batch members {batch_id}` lists them"
        )
    found: Mapping[str, Any] = listed[0]
    return found
