"""What a runbook's query would find now, without anything being changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.batches.errors import UnreadableRow, UnusableColumns
from matoolkit.batches.member_data import MemberData
from matoolkit.scheduler.batch_times import bucket
from matoolkit.scheduler.gathering import Gathered, Reader

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.runbooks import Runbook
    from matoolkit.scheduler.sources.port import Chunk, Source

SAMPLE = 100


@dataclass(slots=True)
class Preview:
    """Of the rows how many there are, some of them as members' data, and how many people each batch would get."""

    row_count: int = 0
    columns: tuple[str, ...] = ()
    sample: list[dict[str, Any]] = field(default_factory=list)
    batch_groups: list[tuple[datetime, int]] = field(default_factory=list)
    """Start times in their order, each with its number of members."""
    problems: list[str] = field(default_factory=list)
    """Everything that a tick would report of these rows."""


def preview(source: Source, runbook: Runbook, now: datetime) -> Preview:
    """Ask a source as a tick would; a SourceError when it cannot be read.

    How long that may take is for the source's settings to say. Columns that cannot be used are a problem to be told of,
    beside the number of rows.
    """
    found = Preview()
    reader: Reader | None = None
    chunks = source.read()
    try:
        for chunk in chunks:
            if not found.row_count and not found.columns:
                found.columns = chunk.columns
                reader = _reader(found, runbook)
            found.row_count += len(chunk.rows)
            _sample(found, runbook, chunk)
            if reader is not None:
                reader.take(chunk.rows)
    finally:
        chunks.close()
    if reader is not None:
        gathered = reader.finished()
        found.problems += gathered.problems
        found.batch_groups = _groups(gathered, now)
    return found


def _reader(found: Preview, runbook: Runbook) -> Reader | None:
    try:
        return Reader(runbook, found.columns)
    except UnusableColumns as error:
        found.problems.append(str(error))
        return None


def _sample(found: Preview, runbook: Runbook, chunk: Chunk) -> None:
    """The first rows as their members' data would be; where a multi-valued cell is unfit, as it stands there."""
    wanted = chunk.rows[: SAMPLE - len(found.sample)]
    if not wanted:
        return
    try:
        plain = MemberData(chunk.columns)
        packed = MemberData(chunk.columns, runbook.data_source.multi_valued_columns)
    except UnusableColumns:
        return
    for row in wanted:
        try:
            data = packed.encode(row)
        except UnreadableRow:
            data = plain.encode(row)
        found.sample.append(msgspec.json.decode(data))


def _groups(gathered: Gathered, now: datetime) -> list[tuple[datetime, int]]:
    return sorted((start or bucket(now), len(people)) for start, people in gathered.groups.items())
