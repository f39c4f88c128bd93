"""`batch member` and `batch failures`: one person closely, and what goes wrong for many."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.batch.looking import batch_id_argument
from matoolkit.cli.batch.people import member_of
from matoolkit.cli.options import echo_json
from matoolkit.cli.showing.lists import print_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@click.command()
@batch_id_argument
@click.argument("member")
@click.option("--values", is_flag=True, help="Show what was sent and what came of it; needs the role Reader or Admin.")
@asks
def member(batch_id: int, member: str, api_url: str | None, output: str, *, values: bool) -> None:
    """Show all that was done to MEMBER, named by key or by id, of the batch ID.

    Every step, what undid them, and what was done as they left.
    """
    with api_client(api_url) as client:
        found = client.member(batch_id, member_of(client, batch_id, member)["id"])
    if output == "json":
        echo_json(found)
        return
    from matoolkit.cli.batch.columns import pairs
    from matoolkit.cli.showing.tables import coloured, print_fields
    from matoolkit.cli.showing.times import moment

    one = found["member"]
    print_fields(
        [
            ("Member", f"{one['memberKey']} (id {one['id']} in batch {batch_id})"),
            ("Status", coloured(one["status"])),
            ("Joined", moment(one["addedAt"])),
            ("Stay", f"{one['generation']}, having come back" if one["generation"] > 1 else None),
            ("Completed", moment(one["completedAt"])),
            ("Failed", moment(one["failedAt"])),
            ("Removed", moment(one["removedAt"]) + (f" by {one['removedBy']}" if one["removedBy"] else "")),
            ("Waits for", one["waitingFor"]),
            ("Data", pairs(one["data"])),
            ("From workers", pairs(one["workerData"])),
        ]
    )
    for title, steps in (("Steps", "steps"), ("Rollbacks", "rollbacks"), ("Leaving", "removals")):
        if found[steps]:
            click.echo(f"\n{title}:")
            _print(found[steps], values=values)


@click.command()
@batch_id_argument
@click.option("--limit", type=click.IntRange(1, 500), metavar="N", help="How many kinds at most, 1 to 500.")
@asks
def failures(batch_id: int, limit: int | None, api_url: str | None, output: str) -> None:
    """Say what went wrong in the batch ID: what is alike counted together, the most frequent first."""
    from matoolkit.cli.showing.tables import Column, field
    from matoolkit.cli.showing.times import moment

    with api_client(api_url) as client:
        found = client.failures(batch_id, limit=limit)
    if output == "json":
        echo_json(found)
        return
    columns = [
        field("Times", "count", right=True),
        field("Kind", "kind", rank=4),
        field("Phase", "phaseName", rank=2, folds=True),
        field("Step", "stepName", folds=True),
        field("Error", "errorMessage", folds=True),
        field("Function", "functionName", rank=5, folds=True),
        field("Worker", "workerId", rank=3, folds=True),
        Column("Last", lambda row: moment(row["lastAt"]), rank=1),
    ]
    print_rows(found["failures"], columns, "Nothing went wrong.")


def _print(steps: Sequence[Mapping[str, Any]], *, values: bool) -> None:
    from matoolkit.cli.batch.columns import STEPS, pairs
    from matoolkit.cli.showing.tables import Column, field, print_table

    columns = [field("Rollback of", "rollbackName", rank=2, folds=True)]
    columns += [each for each in STEPS if each.title != "Member"]
    if values:
        columns.append(Column("Sent", lambda row: pairs(row["parameters"]), rank=1, folds=True))
        columns.append(Column("Result", lambda row: _value(row["result"]), rank=1, folds=True))
    print_table(steps, columns)


def _value(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)
