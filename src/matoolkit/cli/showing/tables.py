"""Tables that fit the terminal: what is least needed goes first, long texts are folded and never cut.

Where nothing is narrow, in a pipe or a file, every row is one line and nothing is left out.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from matoolkit.cli.showing.safe import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_GAP = 2
_NARROWEST = (32, 20)
"""To which a text that may be folded is squeezed before columns are left out: one that has to be there, and others."""
_UNLIMITED = 1_000_000
_COLOURS = {
    "active": "cyan",
    "cancelled": "yellow",
    "completed": "green",
    "detected": "blue",
    "dispatched": "cyan",
    "failed": "red",
    "init_dispatched": "cyan",
    "pending": "bright_black",
    "poll_timeout": "red",
    "polling": "cyan",
    "removed": "yellow",
    "running": "cyan",
    "skipped": "yellow",
    "succeeded": "green",
    "superseded": "bright_black",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, what it shows of a row, and how readily it gives way."""

    title: str
    show: Callable[[Mapping[str, Any]], object]
    rank: int = 0
    """Columns of the highest rank are left out first when it is narrow; those of rank 0 never."""
    folds: bool = False
    """Whether it may be squeezed, on several lines."""
    right: bool = False


def field(title: str, key: str, **more: Any) -> Column:
    """A column that shows a field of the answer."""
    return Column(title, lambda row: _plain(row.get(key)), **more)


def console(*, stderr: bool = False) -> Console:
    """Where people read: their terminal, or a pipe without width and colour."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _UNLIMITED
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=width is not None)


def is_terminal() -> bool:
    """Whether a person watches what is printed."""
    return sys.stdout.isatty()


def coloured(status: object) -> Text:
    """A state in its colour."""
    return Text(safe(status), _COLOURS.get(str(status), ""))


def print_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, on: Console | None = None) -> None:
    """Print rows under their titles."""
    target = on or console()
    cells = [[_cell(column, row) for column in columns] for row in rows]
    # A column in which nothing stands says nothing.
    filled = [
        index for index, column in enumerate(columns) if not column.rank or any(line[index].plain for line in cells)
    ]
    natural = {index: max(cell_len(columns[index].title), *(_width(line[index]) for line in cells)) for index in filled}
    chosen = _fitting(columns, filled, natural, target.width)
    if chosen is None:
        _print_records(target, cells, columns)
        return
    widths = [natural[index] for index in chosen]
    fits = sum(widths) + _GAP * (len(widths) - 1) <= target.width
    lines = ([line[index] for index in chosen] for line in cells)
    (_print_unfolded if fits else _print_folded)(target, [columns[index] for index in chosen], widths, lines)
    if left_out := [columns[index].title for index in filled if index not in chosen]:
        note = f"Left out, as the terminal is narrow: {', '.join(left_out)}."
        console(stderr=True).print(Text(note, "bright_black"))


def _print_unfolded(
    target: Console, columns: Sequence[Column], widths: Sequence[int], lines: Iterable[Sequence[Text]]
) -> None:
    """A line a row, put together by hand: the library takes its time, which many thousands of rows would tell."""
    titles = [Text(column.title.upper(), "bold") for column in columns]
    in_colour = target.color_system is not None
    for line in itertools.chain([titles], lines):
        row = Text()
        parts: list[str] = []
        for column, width, cell in zip(columns, widths, line, strict=True):
            blanks = " " * (width - cell_len(cell.plain))
            if in_colour:
                row.append(blanks if column.right else "").append_text(cell)
                row.append(("" if column.right else blanks) + " " * _GAP)
            else:
                parts.append(blanks + cell.plain if column.right else cell.plain + blanks)
        if in_colour:
            row.rstrip()
            target.print(row, soft_wrap=True)
        else:
            target.file.write((" " * _GAP).join(parts).rstrip() + "\n")


def _print_folded(
    target: Console, columns: Sequence[Column], widths: Sequence[int], lines: Iterable[Sequence[Text]]
) -> None:
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.title.upper(),
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=not column.folds,
            min_width=_narrowest(column, width),
        )
    for line in lines:
        table.add_row(*line)
    for each in _lines(target, table):
        target.print(each, soft_wrap=True)


def print_fields(pairs: Iterable[tuple[str, object]], *, on: Console | None = None) -> None:
    """Print what there is to say of one thing, a line each; what is empty is left out."""
    target = on or console()
    shown = [(label, value) for label, value in pairs if value not in (None, "")]
    widest = max((cell_len(label) for label, _ in shown), default=0) + 1
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, min_width=widest)
    grid.add_column(overflow="fold")
    for label, value in shown:
        grid.add_row(Text(f"{label}:", "bold"), value if isinstance(value, Text) else Text(safe(_plain(value))))
    for each in _lines(target, grid):
        target.print(each, soft_wrap=True)


def _lines(target: Console, table: Table) -> Iterable[Text]:
    """A table's lines without the blanks that fill them up: nobody wants those in a file, or in what is copied."""
    for line in target.render_lines(table, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        yield text


def _cell(column: Column, row: Mapping[str, Any]) -> Text:
    shown = column.show(row)
    if isinstance(shown, Text):
        return shown
    if column.title == "Status":
        return coloured(_plain(shown))
    return Text(safe(_plain(shown)))


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value


def _width(cell: Text) -> int:
    return max((cell_len(line) for line in cell.plain.split("\n")), default=0)


def _fitting(
    columns: Sequence[Column], filled: Sequence[int], natural: Mapping[int, int], width: int
) -> list[int] | None:
    """Which columns there is room for; None when not even those that have to be there fit."""
    chosen = list(filled)

    def narrowest() -> int:
        # There is a gap behind the last one too, or rich would cut it.
        return sum(_narrowest(columns[i], natural[i]) + _GAP for i in chosen)

    while narrowest() > width:
        rank, index = max((columns[i].rank, i) for i in chosen)
        if rank == 0:
            return None
        chosen.remove(index)
    return chosen


def _narrowest(column: Column, natural: int) -> int:
    return min(natural, _NARROWEST[bool(column.rank)]) if column.folds else natural


def _print_records(target: Console, cells: Sequence[Sequence[Text]], columns: Sequence[Column]) -> None:
    for number, line in enumerate(cells):
        if number:
            target.print()
        print_fields(
            ((column.title, cell) for column, cell in zip(columns, line, strict=True) if cell.plain), on=target
        )
