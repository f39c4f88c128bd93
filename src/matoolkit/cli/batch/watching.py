"""`batch watch`, and what `batch advance --auto` shares with it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from matoolkit.cli.asking import api_client, asks
from matoolkit.cli.batch.looking import batch_id_argument

if TYPE_CHECKING:
    from matoolkit.cli.client import ApiClient
    from matoolkit.cli.watch.following import Teller
    from matoolkit.cli.watch.looking import Look

every_option = click.option(
    "--every",
    type=click.FloatRange(0.2, 15),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look, when following.",
)


@click.command()
@batch_id_argument
@every_option
@asks
def watch(batch_id: int, every: float, api_url: str | None, output: str) -> None:
    """Follow the batch ID until it ends.

    Shows its phases, its members by state, how fast steps end, failures as they come, and what happens next. A server
    that goes away is waited for. As JSON: an object a line for each change. Exit code 0 when the batch completed, 1
    when it failed or was cancelled.
    """
    with api_client(api_url) as client:
        follow_to_the_end(client, batch_id, output, every)


def follow_to_the_end(client: ApiClient, batch_id: int, output: str, every: float, *, advancing: bool = False) -> None:
    """Show how a batch goes until it has ended, and end with the exit code that says how."""
    import time

    from matoolkit.cli.showing.tables import is_terminal
    from matoolkit.cli.watch.following import Following
    from matoolkit.clock import SystemClock

    def following(teller: Teller) -> Look:
        return Following(
            client, batch_id, teller, SystemClock(), time.sleep, time.monotonic, every, advancing=advancing
        ).to_the_end()

    try:
        if output == "json":
            from matoolkit.cli.watch.lines import JsonLines

            last = following(JsonLines())
        elif is_terminal() and os.environ.get("TERM") not in {"dumb", "unknown"}:
            from matoolkit.cli.watch.screen import Screen

            with Screen(advancing) as screen:
                last = following(screen)
        else:
            from matoolkit.cli.watch.lines import TextLines

            last = following(TextLines())
    except KeyboardInterrupt:
        click.echo(f"\nThe batch goes on; `matoolkit batch watch {batch_id}` follows it again.", err=True)
        sys.exit(1)
    if output != "json":
        _close(last, batch_id)
    if last.batch["status"] != "completed":
        sys.exit(1)


def _close(last: Look, batch_id: int) -> None:
    from matoolkit.cli.watch.words import counted

    click.echo(f"\nBatch {batch_id} is {last.batch['status']}: {counted(last.members) or 'it has no members'}.")
    if last.members.get("failed"):
        click.echo(f"`matoolkit batch steps {batch_id} --status failed` lists what failed.")
