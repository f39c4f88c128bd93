"""A batch told line by line: for logs, for pipes, and, as JSON, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from matoolkit.cli.options import json_text
from matoolkit.cli.watch.words import line_of

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.cli.watch.changes import Change
    from matoolkit.cli.watch.looking import Look


class TextLines:
    """A line a change, with its time."""

    def change(self, change: Change, now: datetime) -> None:
        """Print it."""
        click.echo(f"{now:%Y-%m-%d %H:%M:%SZ}  {line_of(change, now)}")

    def draw(self, look: Look | None, per_minute: float | None, now: datetime) -> None:
        """There is nothing to draw."""


class JsonLines:
    """An object a change."""

    def change(self, change: Change, now: datetime) -> None:  # noqa: ARG002 - the time is in the change
        """Print it."""
        click.echo(json_text(change))

    def draw(self, look: Look | None, per_minute: float | None, now: datetime) -> None:
        """There is nothing to draw."""
