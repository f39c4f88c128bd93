"""From a source's rows to who is to be in which batch: read once, in chunks, without a database.

A row that cannot be read says nothing about its member, who neither joins nor leaves because of it. Columns that
cannot be used say nothing about anybody.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from matoolkit.batches.errors import UnreadableRow
from matoolkit.batches.member_data import MemberData, member_key, place_of
from matoolkit.runbooks import required_columns
from matoolkit.scheduler.batch_times import BatchTimes
from matoolkit.scheduler.sources.errors import NothingToRead

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from matoolkit.runbooks import Runbook
    from matoolkit.scheduler.sources.port import Source

_SHOWN = 3

Person = tuple[str, str]
"""Key and data."""


@dataclass(slots=True)
class Problems:
    """What was wrong with rows: of each kind how many there were, and a few of them by key or number."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """One more of a kind."""
        self.counts[kind] += 1
        shown = self.examples.setdefault(kind, [])
        if len(shown) < _SHOWN:
            shown.append(example)

    def told(self) -> list[str]:
        """A sentence for each kind."""
        return [
            f"{count} {'row was' if count == 1 else 'rows were'} passed over: {kind}"
            f" ({', '.join(self.examples[kind])}{', …' if count > _SHOWN else ''})"
            for kind, count in self.counts.items()
        ]


@dataclass(slots=True)
class Gathered:
    """Everybody a source knows."""

    columns: tuple[str, ...] = ()
    rows: int = 0
    groups: dict[datetime | None, dict[str, Person]] = field(default_factory=dict)
    """People by folded key, by the start of their batch; by None where batches start as soon as people appear."""
    unreadable: set[str] = field(default_factory=set)
    """Folded keys of those whose rows could not be read."""
    problems: list[str] = field(default_factory=list)

    @property
    def everybody(self) -> dict[str, Person]:
        """Where batches start as soon as people appear: all of them."""
        return self.groups.get(None, {})


def gather(source: Source, runbook: Runbook) -> Gathered:
    """Read everybody; UnusableColumns or a SourceError when nothing can be said about anybody."""
    reader: Reader | None = None
    with closing(source.read()) as chunks:
        for chunk in chunks:
            if reader is None:
                reader = Reader(runbook, chunk.columns)
            reader.take(chunk.rows)
    if reader is None:
        raise NothingToRead("the query gave no columns")
    return reader.finished()


class Reader:
    """Takes in rows of one set of columns."""

    def __init__(self, runbook: Runbook, columns: tuple[str, ...]) -> None:
        source = runbook.data_source
        self._encode = MemberData(columns, source.multi_valued_columns).encode
        self._key_at = place_of(columns, source.primary_key)
        self._time_at: int | None = None
        self._time_column = source.batch_time_column or ""
        if source.batch_time_column is not None:
            self._time_at = place_of(columns, source.batch_time_column)
        self._times = BatchTimes(source.time_zone)
        self._seen: set[str] = set()
        self._problems = Problems()
        self._found = Gathered(columns, problems=_lacking(runbook, columns))

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Read some rows; the first of a key counts."""
        key_at, time_at, moment, encode = self._key_at, self._time_at, self._times.of, self._encode
        seen, groups = self._seen, self._found.groups
        number = self._found.rows
        add_key: Callable[[str], None] = seen.add
        for row in rows:
            number += 1
            try:
                key = member_key(row[key_at])
            except UnreadableRow as error:
                self._problems.add(str(error), f"row {number}")
                continue
            folded = key.casefold()
            if folded in seen:
                self._problems.add("the key occurs more than once, and the first row counts", key)
                continue
            add_key(folded)
            start: datetime | None = None
            if time_at is not None:
                start = moment(row[time_at])
                if start is None:
                    self._pass_over(folded, f"{self._time_column} holds no time", key)
                    continue
            try:
                data = encode(row)
            except UnreadableRow as error:
                self._pass_over(folded, str(error), key)
                continue
            group = groups.get(start)
            if group is None:
                group = groups[start] = {}
            group[folded] = (key, data)
        self._found.rows = number

    def _pass_over(self, folded: str, reason: str, key: str) -> None:
        self._problems.add(reason, key)
        self._found.unreadable.add(folded)

    def finished(self) -> Gathered:
        """Everything that was read."""
        self._found.problems += self._problems.told()
        return self._found


def _lacking(runbook: Runbook, columns: Sequence[str]) -> list[str]:
    """Columns that steps will ask for and that are not there: worth saying before the steps fail."""
    there = {column.casefold() for column in columns}
    lacking = [column for column in required_columns(runbook) if column.casefold() not in there]
    return [f"steps need columns that the query does not give: {', '.join(lacking)}"] if lacking else []
