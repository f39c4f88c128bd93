"""A question before what cannot be undone, which says whom it concerns."""

from __future__ import annotations

import shutil
import sys

import click

from matoolkit.cli.showing.safe import safe

force_option = click.option("--force", is_flag=True, help="Do not ask first.")


def confirm(consequence: str) -> None:
    """Go on only when a person says so; `consequence` is a sentence with the number of people."""
    consequence = safe(consequence)
    if not sys.stdin.isatty():
        raise click.ClickException(
            f"{consequence} That cannot be undone, and there is no terminal to ask at: "
            "give --force to do it all the same. Nothing was done."
        )
    click.echo(click.wrap_text(f"{consequence} That cannot be undone.", _width()), err=True)
    if not click.confirm("Go on?", default=False, err=True):
        raise click.ClickException("nothing was done")


def _width() -> int:
    return max(20, min(shutil.get_terminal_size().columns - 1, 100))


def people(number: int) -> str:
    """So many of them."""
    return f"{number:,} {'person' if number == 1 else 'people'}"
