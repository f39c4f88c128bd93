"""Options that several commands share, and what they mean."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import Any

import click

from matoolkit.cli.showing.safe import safe_json


class _Duration(click.ParamType[timedelta]):
    """A duration, written as in runbooks."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Read it."""
        if isinstance(value, timedelta):
            return value
        from matoolkit.hosts.durations import duration
        from matoolkit.settings import Unusable

        try:
            return duration(str(value))
        except Unusable as error:
            self.fail(f"{value!r} is not {error}", param, ctx)


DURATION = _Duration()

output_option = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or for programs.",
)


def echo_json(value: Any) -> None:
    """Print what a program will read."""
    click.echo(json_text(value, indent=2))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that goes through any pipe, and does nothing to a terminal."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    plain = encoding.lower().replace("-", "") != "utf8"
    return safe_json(json.dumps(value, indent=indent, ensure_ascii=plain))
