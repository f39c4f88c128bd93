"""Options that several commands share, and what they mean."""

from __future__ import annotations

import json
from typing import Any

import click

output_option = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or for programs.",
)


def echo_json(value: Any) -> None:
    """Print what a program will read."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
