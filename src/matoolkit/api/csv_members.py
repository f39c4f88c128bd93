"""Members from an uploaded CSV file: everything that is wrong with it is told at once, and any error refuses it whole.

Cells are text. Nothing in them is evaluated, and nothing is trimmed but the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from matoolkit.api.csv_lines import Problems, delimiter_of, records
from matoolkit.api.errors import InvalidFile
from matoolkit.batches.errors import UnreadableRow, UnusableColumns
from matoolkit.batches.member_data import MemberData, member_key
from matoolkit.runbooks import required_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matoolkit.batches.membership import Found
    from matoolkit.runbooks import Runbook

MOST_BYTES: Final = 50 * 1024 * 1024
MOST_ROWS: Final = 50_000
MOST_COLUMNS: Final = 1_000
_LONGEST_NAME: Final = 256
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Listed:
    """What a file lists."""

    members: list[Found]
    warnings: list[str]


def read_members(file: IO[bytes], runbook: Runbook) -> Listed:
    """The members a file lists for a runbook; InvalidFile with everything that is wrong otherwise."""
    required = required_columns(runbook)
    problems = Problems()
    delimiter = delimiter_of(file, frozenset(name.casefold() for name in required))
    rows = records(file, delimiter, problems)
    first = next(rows, None)
    if first is None:
        if not problems:
            problems.add("the file is empty: it needs a header and at least one row")
        raise InvalidFile(problems.all())
    header = [cell.strip() for cell in first[1]]
    if len(header) > MOST_COLUMNS:
        problems.add(f"row {first[0]}: {len(header):,} columns, where {MOST_COLUMNS:,} is the limit")
        raise InvalidFile(problems.all())
    warnings = _check_header(header, required, problems)
    members = _read_rows(rows, header, runbook, problems)
    if not members and not problems:
        problems.add("the file has a header and no rows")
    if problems:
        raise InvalidFile(problems.all(), warnings)
    return Listed(members, warnings)


def template(runbook: Runbook) -> str:
    """A header and one sample row, for people to fill in."""
    source = runbook.data_source
    packed = {each.name.casefold(): str(each.format) for each in runbook.data_source.multi_valued_columns}
    samples = {"semicolon_delimited": "first;second", "comma_delimited": "first,second", "json_array": '["first"]'}
    start = (source.batch_time_column or "").casefold()
    columns = required_columns(runbook)
    row = []
    for name in columns:
        if name.casefold() == source.primary_key.casefold():
            row.append("user@example.com")
        elif name.casefold() == start:
            row.append("2030-01-31T18:00:00Z")
        else:
            row.append(samples.get(packed.get(name.casefold(), ""), f"sample {name}"))
    return _line(columns) + _line(row)


def _check_header(header: Sequence[str], required: Sequence[str], problems: Problems) -> list[str]:
    places: dict[str, int] = {}
    for place, name in enumerate(header, 1):
        if not name:
            problems.add(f"row 1: column {place} has no name")
        elif len(name) > _LONGEST_NAME:
            problems.add(f"row 1: column {place} has a name longer than {_LONGEST_NAME} characters")
        elif name.casefold() in places:
            problems.add(f"row 1: columns {places[name.casefold()]} and {place} are both named {_shown(name)}")
        else:
            places[name.casefold()] = place
    for name in required:
        if name.casefold() not in places:
            problems.add(f"row 1: there is no column {_shown(name)}, which the runbook needs")
    wanted = {name.casefold() for name in required}
    unknown = [name for name in header if name and name.casefold() not in wanted]
    return [f"the runbook uses no column {_shown(name)}; it is kept" for name in unknown]


def _read_rows(
    rows: Iterator[tuple[int, list[str]]], header: Sequence[str], runbook: Runbook, problems: Problems
) -> list[Found]:
    source = runbook.data_source
    folded = [name.casefold() for name in header]
    key_place = folded.index(source.primary_key.casefold()) if source.primary_key.casefold() in folded else None
    try:
        data = MemberData(header, [each for each in source.multi_valued_columns if each.name.casefold() in folded])
    except UnusableColumns:
        data = None  # said of the header already
    members: list[Found] = []
    seen: dict[str, int] = {}
    for number, (row, cells) in enumerate(rows, 1):
        if number > MOST_ROWS:
            problems.add(f"row {row}: more than {MOST_ROWS:,} rows; the rest was not read")
            break
        if len(cells) != len(header):
            problems.add(f"row {row}: {_cells(len(cells))}, where the header has {len(header)}")
            continue
        try:
            key = "" if key_place is None else member_key(cells[key_place])
            encoded = "" if data is None else data.encode(cells)
        except UnreadableRow as error:
            problems.add(f"row {row}: {error}")
            continue
        if key_place is not None:
            earlier = seen.setdefault(key.casefold(), row)
            if earlier != row:
                problems.add(f"row {row}: the key {_shown(key)} is in row {earlier} already")
        if not problems:
            members.append((key, encoded))
    return members


def _cells(number: int) -> str:
    return "one cell" if number == 1 else f"{number:,} cells"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _line(cells: Sequence[str]) -> str:
    return ",".join(_quoted(cell) for cell in cells) + "\r\n"


def _quoted(cell: str) -> str:
    needs = any(letter in cell for letter in ',;"\r\n') or cell != cell.strip()
    return '"' + cell.replace('"', '""') + '"' if needs else cell
