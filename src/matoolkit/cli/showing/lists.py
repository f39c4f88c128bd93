"""Lists page by page: the options that say which page, and what is printed of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.options import echo_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matoolkit.cli.client import Answer
    from matoolkit.cli.showing.tables import Column


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is wanted."""

    limit: int | None
    offset: int | None
    cursor: str | None
    everything: bool
    most: int

    @property
    def query(self) -> dict[str, Any]:
        """As the API is asked for it."""
        limit = self.most if self.everything and self.limit is None else self.limit
        return {"limit": limit, "offset": self.offset, "cursor": self.cursor}


def paged(most: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of a list whose pages hold at most so many; the command is handed a `Page`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option("--limit", type=click.IntRange(1, most), metavar="N", help=f"How many at most, 1 to {most:,}.")
        @click.option("--offset", type=click.IntRange(min=0), metavar="N", help="How many to leave out.")
        @click.option("--cursor", metavar="TEXT", help="Where to go on, as the page before said.")
        @click.option("--all", "everything", is_flag=True, help="Every page, one after another.")
        @wraps(command)
        def with_page(
            *args: Any, limit: int | None, offset: int | None, cursor: str | None, everything: bool, **given: Any
        ) -> Any:
            if offset is not None and cursor is not None:
                raise click.UsageError("--offset and --cursor exclude each other")
            return command(*args, page=Page(limit, offset, cursor, everything, most), **given)

        return with_page

    return decorate


def show_list(
    ask: Callable[..., Answer],
    key: str,
    columns: Sequence[Column],
    *,
    output: str,
    page: Page,
    empty: str,
    chosen: Mapping[str, Any] | None = None,
) -> None:
    """Ask for a page, or for all of them, and print it."""
    from matoolkit.cli.client import all_pages

    query = {**(chosen or {}), **page.query}
    pages = all_pages(ask, **query) if page.everything else iter([ask(**query)])
    answer = next(pages)
    for more in pages:
        answer[key] += more[key]
        answer["nextCursor"] = more.get("nextCursor")
    if output == "json":
        echo_json(answer)
        return
    print_rows(answer[key], columns, empty)
    shown, total = len(answer[key]), answer.get("total")
    if total is not None and shown and shown != total:
        click.echo(f"{shown:,} of {total:,}.", err=True)
    if answer.get("nextCursor"):
        click.echo(f"There is more: --cursor {answer['nextCursor']} gives the next page, --all everything.", err=True)


def print_rows(rows: Sequence[Any], columns: Sequence[Column], empty: str) -> None:
    """Print a table, or say that there is nothing to put into one."""
    from matoolkit.cli.showing.tables import print_table

    if rows:
        print_table(rows, columns)
    else:
        click.echo(empty, err=True)
