"""Files that are sent to the server, and files that are written: read whole, refused early, never overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

readable_file = click.Path(exists=True, dir_okay=False, allow_dash=True)
LARGEST_FILE = 50 * 1024 * 1024
LARGEST_RUNBOOK = 4 * 1024 * 1024


def read_bytes(file: str, most: int) -> bytes:
    """A file that the server will take, as far as its size goes; `-` is standard input."""
    try:
        with click.open_file(file, "rb") as stream:
            content: bytes = stream.read(most + 1)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be read: {error.strerror}") from error
    if len(content) > most:
        raise click.ClickException(f"{_named(file)} is larger than {most // 1024 // 1024} MB, and not taken")
    if not content:
        raise click.ClickException(f"{_named(file)} is empty")
    return content


def read_text(file: str, most: int) -> str:
    """The same, of text."""
    content = read_bytes(file, most)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.ClickException(
            f"{_named(file)} is not text in UTF-8: byte {error.start:,} is none; save it as UTF-8"
        ) from error


def file_name(file: str) -> str:
    """What the server is told that the file is called."""
    return "people.csv" if file == "-" else Path(file).name


def write_new(file: Path, content: bytes, *, force: bool) -> None:
    """Write a file that is not there yet."""
    try:
        with file.open("wb" if force else "xb") as opened:
            opened.write(content)
    except FileExistsError:
        raise click.ClickException(f"{file} is there already: name another one, or give --force") from None
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from error


def warn(answer: dict[str, Any]) -> None:
    """What the server has to remark, on standard error."""
    from matoolkit.cli.showing.safe import safe

    for each in answer.get("warnings") or ():
        click.echo(f"Warning: {safe(each)}", err=True)


def _named(file: str) -> str:
    return "standard input" if file == "-" else file
