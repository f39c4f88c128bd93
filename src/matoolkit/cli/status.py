"""`matoolkit status`: how all of it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.options import echo_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from matoolkit.cli.showing.tables import Column


@click.command()
@asks
def status(api_url: str | None, output: str) -> None:
    """Show how all of it is: what needs a person, what is open, what comes next."""
    with api_client(api_url) as client:
        found = client.status()
    if output == "json":
        echo_json(found)
    else:
        _print(found)


def _print(found: Mapping[str, Any]) -> None:
    from rich.text import Text

    from matoolkit.cli.batch.columns import BATCHES, counted
    from matoolkit.cli.showing.safe import safe
    from matoolkit.cli.showing.tables import console, print_fields
    from matoolkit.cli.showing.times import moment, parsed

    screen = console()
    for each in found["attention"]:
        screen.print(Text(f"! {safe(each)}", "bold yellow"))
    if not found["attention"]:
        screen.print(Text("Nothing needs a person.", "green"))
    scheduler = found["scheduler"]
    print_fields(
        [
            ("At", moment(found["at"])),
            ("Batches", counted(found["batchesByStatus"]) or "none"),
            ("Scheduler", f"runs ({scheduler['holder']})" if scheduler["isRunning"] else "does not run"),
            ("Dead letters", f"{found['deadLetters']:,}"),
        ]
    )
    _table("Open batches", found["openBatches"], BATCHES)
    _table("Next phases", found["nextPhases"], _phases(parsed(found["at"])))
    _table("Workers", found["workers"] or [], _workers())
    _table("Held removals", found["heldRemovals"], _held())
    _table("Runbooks with errors", found["runbookErrors"], _errors())


def _table(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> None:
    from matoolkit.cli.showing.tables import print_table

    if rows:
        click.echo(f"\n{title}:")
        print_table(rows, columns)


def _phases(now: datetime) -> list[Column]:
    from matoolkit.cli.showing.tables import Column, field
    from matoolkit.cli.showing.times import moment, until

    return [
        field("Batch", "batchId", right=True),
        field("Runbook", "runbookName", rank=2, folds=True),
        field("Phase", "phaseName", folds=True),
        Column("Due", lambda row: moment(row["dueAt"])),
        Column("That is", lambda row: until(row["dueAt"], now), rank=1),
    ]


def _workers() -> list[Column]:
    from matoolkit.cli.showing.tables import Column, field
    from matoolkit.cli.showing.times import moment

    return [
        Column("Worker", lambda row: row["workerId"] or "(every one)", folds=True),
        field("Waiting", "waiting", right=True),
        field("Running", "running", right=True),
        Column("Oldest job since", lambda row: moment(row["oldestSince"]), rank=1),
        field("Silent", "isSilent"),
    ]


def _held() -> list[Column]:
    from matoolkit.cli.showing.tables import Column, field
    from matoolkit.cli.showing.times import moment

    return [
        field("Batch", "batchId", right=True),
        field("Runbook", "runbookName", rank=1, folds=True),
        field("People", "count", right=True),
        Column("Since", lambda row: moment(row["since"])),
    ]


def _errors() -> list[Column]:
    from matoolkit.cli.showing.tables import Column, field
    from matoolkit.cli.showing.times import moment

    return [
        field("Runbook", "name", folds=True),
        field("V", "version", right=True, rank=2),
        field("Error", "lastError", folds=True),
        Column("At", lambda row: moment(row["lastErrorAt"]), rank=1),
    ]
