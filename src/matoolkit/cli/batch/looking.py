"""`batch list`, `batch get`, `batch phases` and `batch steps`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.options import echo_json
from matoolkit.cli.showing.lists import paged, print_rows, show_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matoolkit.cli.showing.lists import Page

batch_id_argument = click.argument("batch_id", metavar="ID", type=click.IntRange(1, 2**63 - 1))
BATCH_STATES = ["detected", "init_dispatched", "active", "completed", "failed", "cancelled"]
STEP_STATES = ["pending", "dispatched", "succeeded", "failed", "polling", "poll_timeout", "cancelled"]


@click.command("list")
@click.option("--runbook", metavar="NAME", help="Only of this runbook.")
@click.option("--status", type=click.Choice(BATCH_STATES), help="Only those in this state.")
@click.option("--manual/--automatic", default=None, help="Only those made by hand, or only the others.")
@paged(100)
@asks
def list_batches(
    runbook: str | None, status: str | None, page: Page, api_url: str | None, output: str, *, manual: bool | None
) -> None:
    """List batches, the newest first."""
    from matoolkit.cli.batch.columns import BATCHES

    chosen = {"runbook": runbook, "status": status, "manual": manual}
    with api_client(api_url) as client:
        show_list(
            client.batches,
            "batches",
            BATCHES,
            output=output,
            page=page,
            empty="There are no such batches.",
            chosen=chosen,
        )


@click.command()
@batch_id_argument
@asks
def get(batch_id: int, api_url: str | None, output: str) -> None:
    """Show the batch ID: where it is, its phases, its init, and what it waits for."""
    with api_client(api_url) as client:
        found = client.batch(batch_id)
    if output == "json":
        echo_json(found)
    else:
        _print(found)


@click.command()
@batch_id_argument
@click.option(
    "--counts/--no-counts", default=True, help="Count the steps of each phase by their state.  [default: yes]"
)
@asks
def phases(batch_id: int, api_url: str | None, output: str, *, counts: bool) -> None:
    """List the phases of the batch ID in the order of time."""
    with api_client(api_url) as client:
        found = client.phases(batch_id, counts=counts)
    if output == "json":
        echo_json(found)
    else:
        _print_phases(found["phases"])


@click.command()
@batch_id_argument
@click.option("--phase", metavar="NAME", help="Only of this phase.")
@click.option("--status", type=click.Choice(STEP_STATES), help="Only those in this state.")
@click.option("--member", metavar="KEY", help="Only of this member, by key or by id.")
@paged(1000)
@asks
def steps(
    *,
    batch_id: int,
    phase: str | None,
    status: str | None,
    member: str | None,
    page: Page,
    api_url: str | None,
    output: str,
) -> None:
    """List what the members of the batch ID went through, step by step."""
    from matoolkit.cli.batch.columns import STEPS

    chosen = {"phase": phase, "status": status, "member": member}
    with api_client(api_url) as client:

        def ask(**query: Any) -> dict[str, Any]:
            return client.steps(batch_id, **query)

        show_list(ask, "steps", STEPS, output=output, page=page, empty="There are no such steps.", chosen=chosen)


def _print(found: Mapping[str, Any]) -> None:
    from matoolkit.cli.batch.columns import INIT_STEPS, counted
    from matoolkit.cli.showing.tables import coloured, print_fields, print_table
    from matoolkit.cli.showing.times import moment

    batch = found["batch"]
    by = f" by {batch['createdBy']}" if batch.get("createdBy") else ""
    held = batch["heldRemovals"]
    print_fields(
        [
            ("Batch", f"{batch['id']}, {'made by hand' if batch['isManual'] else 'made by itself'}"),
            ("Runbook", f"{batch['runbookName']}, version {batch['runbookVersion']}"),
            ("Status", coloured(batch["status"])),
            ("Cancelled by", batch["cancelledBy"]),
            ("Starts", moment(batch["batchStartTime"])),
            ("Made", moment(batch["detectedAt"]) + by),
            ("Ended", moment(batch["completedAt"])),
            ("Members", f"{batch['memberCount']:,}: {counted(batch['membersByStatus'])}"),
            ("Phase", batch["currentPhase"]),
            (
                "Held removals",
                f"{held:,}; `matoolkit batch release-removals {batch['id']}` lets them go" if held else "",
            ),
            ("Waits for", batch["waitingFor"]),
        ]
    )
    if found["phases"]:
        click.echo()
        _print_phases(found["phases"])
    if found["initSteps"]:
        click.echo("\nInit:")
        print_table(found["initSteps"], INIT_STEPS)


def _print_phases(found: Sequence[Mapping[str, Any]]) -> None:
    from matoolkit.cli.batch.columns import phase_columns

    several = len({each["runbookVersion"] for each in found}) > 1
    print_rows(found, phase_columns(versions=several), "It has no phases.")
