"""A CSV file as records, read strictly and a line at a time: RFC 4180, whatever else a file may turn out to be.

What is wrong is collected and told all at once; rows are numbered as a spreadsheet numbers them, the header being 1.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_RECORD: Final = 1_000_000
"""In bytes: above it a file is something else than a list of people."""
_KEPT_PROBLEMS: Final = 1_000
_BOM: Final = b"\xef\xbb\xbf"
_NOT_TEXT: Final = {
    b"PK\x03\x04": "it is a zip archive or an Excel workbook: save it as CSV (UTF-8)",
    b"\xd0\xcf\x11\xe0": "it is an old Excel workbook: save it as CSV (UTF-8)",
    b"%PDF": "it is a PDF document",
    b"\x1f\x8b": "it is compressed: unpack it first",
    b"\xff\xfe": "it is UTF-16: save it as CSV (UTF-8)",
    b"\xfe\xff": "it is UTF-16: save it as CSV (UTF-8)",
}
_REPHRASED: Final = {
    "unexpected end of data": "a quote is opened and never closed",
    "expected after": "after a closing quote there is something else than a delimiter",
    "field larger": "a cell is longer than 131,072 characters, or a quote before it was never closed",
    "new-line character": "a carriage return stands alone: lines end with a line feed, after a carriage return or not",
}


class Stop(Exception):
    """Nothing that follows can be understood."""


@dataclass
class Problems:
    """What is wrong, in the order of the file; beyond a thousand it is counted and no longer kept."""

    found: list[str] = field(default_factory=list)
    beyond: int = 0

    def add(self, problem: str) -> None:
        """Note one."""
        if len(self.found) < _KEPT_PROBLEMS:
            self.found.append(problem)
        else:
            self.beyond += 1

    def all(self) -> list[str]:
        """What was noted."""
        return [*self.found, f"and {self.beyond:,} more"] if self.beyond else self.found

    def __bool__(self) -> bool:
        return bool(self.found)


class _Lines:
    """Lines of text, watched: how long the record under way is, and whether its quotes pair up."""

    def __init__(self, file: IO[bytes], problems: Problems) -> None:
        self._file = file
        self._problems = problems
        self.row = 1
        self._size = 0
        self._quotes = 0

    def __iter__(self) -> Iterator[str]:
        first = True
        while line := self._file.readline(LONGEST_RECORD + 1):
            if first:
                line, first = line.removeprefix(_BOM), False
            self._size += len(line)
            if self._size > LONGEST_RECORD:
                self._problems.add(
                    f"row {self.row}: longer than {LONGEST_RECORD:,} bytes, or a quote was never closed;"
                    " the rest was not read"
                )
                raise Stop
            if b"\0" in line:
                self._problems.add(f"row {self.row}: holds a NUL byte, so this is no text; the rest was not read")
                raise Stop
            self._quotes += line.count(b'"')
            yield self._decoded(line)

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            self._problems.add(
                f"row {self.row}: not UTF-8 at byte {error.start + 1} of the line: save the file as CSV (UTF-8)"
            )
            return line.decode("utf-8", "replace")

    def ended(self) -> bool:
        """A record is over; whether its quotes paired up."""
        paired = self._quotes % 2 == 0
        self._quotes = self._size = 0
        self.row += 1
        return paired


def delimiter_of(file: IO[bytes], wanted: frozenset[str]) -> str:
    """Comma or semicolon, by which of them finds more of the wanted columns, or else more columns."""
    start = file.read(65_536).removeprefix(_BOM).decode("utf-8", "replace")
    file.seek(0)
    scores: dict[str, tuple[int, int]] = {}
    for delimiter in ",;":
        try:
            header = next(csv.reader(start.splitlines(keepends=True), delimiter=delimiter), [])
        except csv.Error:
            header = []
        scores[delimiter] = (len({cell.strip().casefold() for cell in header} & wanted), len(header))
    return max(scores, key=lambda each: scores[each])


def records(file: IO[bytes], delimiter: str, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """The records that are not empty, each with its row, from the header on; what is no record is noted."""
    start = file.read(4)
    file.seek(0)
    for magic, complaint in _NOT_TEXT.items():
        if start.startswith(magic):
            problems.add(f"this is no CSV file: {complaint}")
            return
    lines = _Lines(file, problems)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        try:
            record = next(reader)
        except (StopIteration, Stop):
            return
        except csv.Error as error:
            known = next((text for part, text in _REPHRASED.items() if part in str(error)), str(error))
            problems.add(f"row {lines.row}: {known}")
            if "field larger" in str(error):
                return  # what follows is in the middle of something
            lines.ended()
            continue
        row = lines.row
        if not lines.ended():
            problems.add(f"row {row}: a quote stands alone in a cell")
        elif record:
            yield row, record
