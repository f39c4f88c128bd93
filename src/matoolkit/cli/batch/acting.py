"""`batch advance`, `batch cancel` and `batch release-removals`: what operators decide."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.batch.looking import batch_id_argument
from matoolkit.cli.batch.watching import every_option
from matoolkit.cli.confirming import confirm, force_option, people
from matoolkit.cli.options import echo_json

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command()
@batch_id_argument
@click.option("--auto", is_flag=True, help="Go through init and every phase to the end, and show how it goes.")
@every_option
@force_option
@asks
def advance(batch_id: int, every: float, api_url: str | None, output: str, *, auto: bool, force: bool) -> None:
    """Begin the init of the batch ID, or its next phase.

    Of batches that were made by hand. On a terminal it asks first, and says how many people it concerns; elsewhere it
    does not, as scripts advance batches as a matter of course. With --auto: exit code 0 when the batch completed, 1
    when it failed or was cancelled.
    """
    with api_client(api_url) as client:
        if not force and sys.stdin.isatty():
            found = client.batch(batch_id)
            begun = _next_of(found, to_the_end=auto)
            if begun:
                active = found["batch"]["membersByStatus"].get("active", 0)
                of_batch = f"batch {batch_id} ('{found['batch']['runbookName']}')"
                confirm(f"This would begin {begun} of {of_batch} for {people(active)}.")
        if auto:
            from matoolkit.cli.batch.watching import follow_to_the_end

            follow_to_the_end(client, batch_id, output, every, advancing=True)
            return
        answer = client.advance_batch(batch_id)
    if output == "json":
        echo_json(answer)
    else:
        click.echo(_told(batch_id, answer))


@click.command()
@batch_id_argument
@force_option
@asks
def cancel(batch_id: int, api_url: str | None, output: str, *, force: bool) -> None:
    """End the batch ID: nothing more is sent; jobs that run finish, and rollbacks that have begun."""
    from matoolkit.cli.batch.columns import counted
    from matoolkit.cli.showing.safe import safe

    with api_client(api_url) as client:
        if not force:
            batch = client.batch(batch_id)["batch"]
            by_status = batch["membersByStatus"]
            confirm(
                f"This would cancel batch {batch_id} ('{batch['runbookName']}', {batch['status']}) for "
                f"{people(by_status.get('active', 0))} under way (its members: {counted(by_status) or 'none'})."
            )
        answer = client.cancel_batch(batch_id)
    if output == "json":
        echo_json(answer)
    else:
        click.echo(safe(answer["message"]))


@click.command("release-removals")
@batch_id_argument
@force_option
@asks
def release_removals(batch_id: int, api_url: str | None, output: str, *, force: bool) -> None:
    """Let go the members of the batch ID whose removal is held.

    They are missing from the data source, and so many at once that an operator has to say that this is meant.
    """
    with api_client(api_url) as client:
        if not force:
            batch = client.batch(batch_id)["batch"]
            held = batch["heldRemovals"]
            if held:
                confirm(
                    f"This would take {people(held)} of {batch['memberCount']:,} out of batch {batch_id} "
                    f"('{batch['runbookName']}'), cancel what is open of theirs, and run the steps of leaving."
                )
        answer = client.release_removals(batch_id)
    if output == "json":
        echo_json(answer)
    elif answer["releasedCount"]:
        click.echo(f"Released {people(answer['releasedCount'])} from batch {batch_id}.")
    else:
        click.echo(f"No removals of batch {batch_id} are held.")


def _next_of(found: Mapping[str, Any], *, to_the_end: bool) -> str | None:
    """What an advance would begin, in words; None when there is nothing."""
    pending = [each["phaseName"] for each in found["phases"] if each["status"] == "pending"]
    if not pending:
        return None
    if to_the_end and pending[1:]:
        return f"{len(pending)} phases, one after another ({', '.join(pending)}),"
    init = found["batch"]["status"] == "detected" and not found["batch"]["initDispatchedAt"]
    return f"{'init, or ' if init else ''}phase '{pending[0]}'{' where there is none,' if init else ''}"


def _told(batch_id: int, answer: Mapping[str, Any]) -> str:
    from matoolkit.cli.showing.safe import safe

    after: Any = answer["nextPhase"]
    then = f" Next: phase '{safe(after)}'." if after else ""
    match answer["action"]:
        case "init_dispatched":
            return f"Init of batch {batch_id} has begun.{then}"
        case "phase_dispatched":
            steps = f"{answer['stepCount']} {'step' if answer['stepCount'] == 1 else 'steps'} each"
            return (
                f"Phase '{safe(answer['phaseName'])}' of batch {batch_id} has begun for "
                f"{people(answer['memberCount'])}, {steps}.{then}"
            )
        case _:
            return f"Batch {batch_id} has ended: every phase has."
