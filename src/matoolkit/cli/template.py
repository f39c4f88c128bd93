"""`matoolkit template`: a CSV file to fill in for a manual batch."""

from __future__ import annotations

import re
from pathlib import Path

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.files import write_new
from matoolkit.cli.groups import Group
from matoolkit.cli.options import echo_json


@click.group(cls=Group)
def template() -> None:
    """Get CSV templates for manual batches."""


@template.command()
@click.argument("runbook")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=str), required=False)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@asks
def download(runbook: str, file: str | None, api_url: str | None, output: str, *, force: bool) -> None:
    """Write a CSV file with the columns that RUNBOOK needs.

    To FILE (-: standard output), or to the runbook's name followed by -template.csv in the current folder.
    """
    with api_client(api_url) as client:
        content = client.template(runbook)
    if file == "-":
        click.echo(content, nl=False)
        return
    target = Path(file or f"{_file_part(runbook)}-template.csv")
    write_new(target, content, force=force)
    if output == "json":
        echo_json({"runbookName": runbook, "file": str(target), "content": content.decode()})
    else:
        click.echo(f"Wrote {target}.")


def _file_part(name: str) -> str:
    """A name that stays in this folder and harms no file system."""
    return re.sub(r"[^\w .-]", "_", name).strip(" .")[:100] or "runbook"
