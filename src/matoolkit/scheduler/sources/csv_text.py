"""CSV files as DuckDB is to read them: every cell is text, and a line that does not fit is an error.

Nothing is left to DuckDB's guessing, which takes `0042` for 42 and leaves out lines in front of one that is longer.
"""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING, Final, TextIO

from matoolkit.scheduler.sources.errors import QueryRefused
from matoolkit.scheduler.sources.quoting import column_names, literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_DELIMITERS: Final = ",;\t|"


def select_text(files: Sequence[Path]) -> str:
    """A query for the lines of all these files, columns matched by name."""
    return " UNION ALL BY NAME ".join(map(_select, files))


def _select(file: Path) -> str:
    try:
        with _opened(file) as lines:
            delimiter = _delimiter(lines)
            head = next(csv.reader(lines, delimiter=delimiter), None)
    except (UnicodeError, csv.Error, EOFError, gzip.BadGzipFile) as error:
        raise QueryRefused(f"{file.name} cannot be read as CSV: it has to be text in UTF-8") from error
    if not head:
        raise QueryRefused(f"{file.name} is empty: its first line has to name the columns")
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in column_names(head))
    return (
        f"SELECT * FROM read_csv({literal(str(file))}, columns = {{{columns}}}, delim = {literal(delimiter)},"  # noqa: S608 - every part is quoted
        " header = true, auto_detect = false, quote = '\"', escape = '\"', strict_mode = true)"
    )


def _opened(file: Path) -> TextIO:
    if file.suffix.lower() == ".gz":
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return file.open(encoding="utf-8-sig", newline="")


def _delimiter(lines: TextIO) -> str:
    """What separates the columns of the first line the most; quoted text does not count."""
    head = lines.readline(1_000_000)
    lines.seek(0)
    outside = "".join(head.split('"')[::2])
    return max(_DELIMITERS, key=outside.count)
