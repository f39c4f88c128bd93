"""A made-up data source: people who come, go, move and change, in rows that are sometimes late, wrong or not there."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from matoolkit.scheduler.sources import Chunk, SourceUnavailable
from matoolkit.simulation.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from datetime import datetime

    from matoolkit.simulation.faults import Faults
    from matoolkit.simulation.scenario import Scenario

_COLUMNS = ("Key", "Start", "Name", "Kind", "Nickname")
_ROWS = 7


@dataclass(slots=True)
class People:
    """Everybody the source knows; it outlives the processes that ask."""

    scenario: Scenario
    epoch: datetime
    faults: Faults
    settled: Callable[[], set[str]]
    """Keys of those who are through or failed: where batches start at once, the source leaves them out."""
    changes: int = 0
    gone: set[str] = field(default_factory=set)
    joined: int = 0

    def rows(self) -> list[tuple[Any, ...]]:
        """What a query finds now."""
        done = self.settled() if self.scenario.immediate else set()
        return [
            self._row(key, index)
            for key, index in self.scenario.people.items()
            if key not in self.gone and key.casefold() not in done
        ]

    def change(self) -> None:
        """Somebody joins, leaves, comes back, moves or changes, while the wave runs."""
        chances, chance, people = self.faults.likelihoods, self.faults.chance, self.scenario.people
        if self.faults.strikes(Fault.MEMBER_JOINED, chances.join):
            self.joined += 1
            people[f"Late{self.joined}@contoso.example"] = chance.randrange(len(self.scenario.starts))
        here = sorted(set(people) - self.gone)
        if len(here) > 1 and self.faults.strikes(Fault.MEMBER_LEFT, chances.leave):
            self.gone.add(here[chance.randrange(len(here))])
        if self.gone and self.faults.strikes(Fault.MEMBER_RETURNED, chances.come_back):
            away = sorted(self.gone)
            self.gone.discard(away[chance.randrange(len(away))])
        if self.faults.strikes(Fault.DATA_CHANGED, chances.change_data):
            self.changes += 1
        if len(self.scenario.starts) > 1 and self.faults.strikes(Fault.MEMBER_MOVED, chances.move):
            mover = here[chance.randrange(len(here))]
            people[mover] = (people[mover] + 1) % len(self.scenario.starts)

    def _row(self, key: str, index: int) -> tuple[Any, ...]:
        start = self.epoch + timedelta(minutes=self.scenario.starts[index])
        # What looks like a reference to a secret is unfit for every step that asks for it.
        nickname = key[:4] if len(key) % 2 else "{{secret:NICKNAME}}"
        return key, start, f"{key} {self.changes}", "Thing", nickname


@dataclass(slots=True)
class SimulatedSource:
    """One reading of it."""

    people: People

    def read(self) -> Generator[Chunk]:
        """Give the rows, as far as the source is up to it."""
        faults = self.people.faults
        chances = faults.likelihoods
        self.people.change()
        if faults.strikes(Fault.SOURCE_FAILED, chances.source_fails):
            raise SourceUnavailable("the simulated source cannot be reached")
        rows = [] if faults.strikes(Fault.SOURCE_EMPTY, chances.source_empty) else self.people.rows()
        if rows and faults.strikes(Fault.ROWS_TWICE, chances.rows_twice):
            twin = list(rows[faults.chance.randrange(len(rows))])
            twin[1] += timedelta(minutes=15)
            rows.append(tuple(twin))
        if rows and faults.strikes(Fault.ROW_UNREADABLE, chances.unreadable):
            self._spoil(rows, 1, lambda _start: "soon")
        if rows and faults.strikes(Fault.KEY_RESPELLED, chances.respell):
            self._spoil(rows, 0, lambda key: f" {key.upper()} ")
        breaks_off = faults.strikes(Fault.SOURCE_BROKE_OFF, chances.source_breaks_off)
        for first in range(0, max(len(rows), 1), _ROWS):
            yield Chunk(_COLUMNS, rows[first : first + _ROWS])
            if breaks_off:
                raise SourceUnavailable("the simulated source broke off")

    def _spoil(self, rows: list[tuple[Any, ...]], column: int, spoilt: Callable[[Any], Any]) -> None:
        index = self.people.faults.chance.randrange(len(rows))
        row = list(rows[index])
        row[column] = spoilt(row[column])
        rows[index] = tuple(row)
