"""`runbook publish` and `runbook delete`: which version is in force."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.confirming import confirm, force_option, people
from matoolkit.cli.files import LARGEST_RUNBOOK, read_text, readable_file, warn
from matoolkit.cli.options import echo_json

if TYPE_CHECKING:
    from matoolkit.cli.client import ApiClient

_OPEN = ("detected", "init_dispatched", "active")


@click.command()
@click.argument("file", type=readable_file)
@click.option("--name", metavar="NAME", help="The runbook's name.  [default: the one in the file]")
@click.option(
    "--overdue-behavior",
    type=click.Choice(["rerun", "ignore"]),
    help="What open batches do with phases of the new version that are past due: run them, or leave them out. "
    "Has to be said when there are open batches.",
)
@click.option("--rerun-init", is_flag=True, help="Have open batches run the new version's init before its phases.")
@asks
def publish(
    file: str, name: str | None, overdue_behavior: str | None, api_url: str | None, output: str, *, rerun_init: bool
) -> None:
    """Publish FILE (-: standard input) as the next version of its runbook.

    Open batches that were not made by hand go over to the new version.
    """
    from matoolkit.cli.client import DoesNotFit

    text = read_text(file, LARGEST_RUNBOOK)
    with api_client(api_url) as client:
        try:
            answer = client.publish_runbook(
                name or _name_in(text) or Path(file).stem,
                text,
                overdue_behavior=overdue_behavior,
                rerun_init=rerun_init,
            )
        except DoesNotFit as error:
            if overdue_behavior is not None:
                raise
            hint = "Publish again with --overdue-behavior rerun, or with --overdue-behavior ignore."
            raise DoesNotFit(error.status, f"{error.error}. {hint}") from error
    if output == "json":
        echo_json(answer)
        return
    warn(answer)
    click.echo(f"Published as version {answer['version']} (runbook id {answer['runbookId']}).")


@click.command()
@click.argument("name")
@click.argument("version", type=click.IntRange(min=1))
@force_option
@asks
def delete(name: str, version: int, api_url: str | None, output: str, *, force: bool) -> None:
    """Take VERSION of the runbook NAME out of force; batches under way go on with it."""
    from matoolkit.cli.showing.safe import safe

    with api_client(api_url) as client:
        if not force:
            found = client.runbook(name, version)
            confirm(
                f"This would take version {version} of runbook '{found['name']}' out of force, so that no new batches "
                f"are made of it; {_going_on(client, name)} with the version they run."
            )
        answer = client.delete_version(name, version)
    if output == "json":
        echo_json(answer)
    else:
        click.echo(safe(answer["message"]))


def _going_on(client: ApiClient, name: str) -> str:
    from matoolkit.cli.client import all_pages

    batches = [
        batch
        for status in _OPEN
        for page in all_pages(client.batches, runbook=name, status=status, limit=100)
        for batch in page["batches"]
    ]
    number = f"{len(batches)} open {'batch' if len(batches) == 1 else 'batches'}"
    members = people(sum(batch["memberCount"] for batch in batches))
    return f"{number} of the runbook, with {members}, would go on"


def _name_in(text: str) -> str | None:
    """What a runbook calls itself, as far as it can be read at all; what is wrong with it the server says."""
    import yaml

    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    name = document.get("name") if isinstance(document, dict) else None
    return name if isinstance(name, str) else None
