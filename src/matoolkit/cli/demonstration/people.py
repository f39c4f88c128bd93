"""Who moves in the demonstration, where they are found, and what must become of each."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

SOURCE_DOMAIN, TARGET_DOMAIN = "source.example", "target.example"
_TAKEN_EVERY, _STUMBLES_EVERY, _CUT_EVERY = 40, 9, 25
_LEAVES = 1


@dataclass(frozen=True, slots=True)
class Person:
    """One of them."""

    number: int

    @property
    def key(self) -> str:
        """By which the wave knows them."""
        return f"person{self.number:04}@{SOURCE_DOMAIN}"

    @property
    def name(self) -> str:
        """As people call them."""
        return f"Person {self.number}"

    @property
    def target(self) -> str:
        """What they sign in with afterwards."""
        return f"person{self.number:04}@{TARGET_DOMAIN}"

    @property
    def address(self) -> str:
        """Where their mail goes afterwards."""
        return f"mail{self.number:04}@{TARGET_DOMAIN}"

    @property
    def address_is_taken(self) -> bool:
        """Whether somebody in the tenant has that address already: they fail, and are taken back."""
        return self.number % _TAKEN_EVERY == 3  # noqa: PLR2004 - any would do

    @property
    def stumbles(self) -> bool:
        """Whether the tenant is not to be reached when they come for the first time."""
        return self.number % _STUMBLES_EVERY == 5  # noqa: PLR2004 - the same

    @property
    def answer_is_lost(self) -> bool:
        """Whether their account is made and nobody hears of it."""
        return self.number % _CUT_EVERY == 7  # noqa: PLR2004 - the same


class People:
    """A department: `count` of them from the beginning, one who comes late, one who leaves."""

    def __init__(self, count: int, file: Path) -> None:
        self.count, self.file = count, file
        self.everybody = [Person(number) for number in range(count + 1)]

    @property
    def url(self) -> str:
        """The data source."""
        return f"sqlite:///{self.file}"

    @property
    def late(self) -> Person:
        """Who comes late."""
        return self.everybody[-1]

    @property
    def leaver(self) -> Person:
        """Who leaves."""
        return self.everybody[_LEAVES]

    def write(self, moves_at: datetime) -> None:
        """Write down those who are there from the beginning."""
        with closing(sqlite3.connect(self.file)) as source, source:
            source.execute(
                "CREATE TABLE people (UserPrincipalName TEXT PRIMARY KEY, DisplayName TEXT, TargetUpn TEXT,"
                " NewAddress TEXT, MovesAt TEXT)"
            )
            rows = [_row(each, moves_at.isoformat()) for each in self.everybody[:-1]]
            source.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)

    def change(self) -> None:
        """One comes, one goes."""
        with closing(sqlite3.connect(self.file)) as source, source:
            (moves_at,) = source.execute("SELECT max(MovesAt) FROM people").fetchone()
            source.execute("INSERT INTO people VALUES (?, ?, ?, ?, ?)", _row(self.late, moves_at))
            source.execute("DELETE FROM people WHERE UserPrincipalName = ?", (self.leaver.key,))

    def expected(self) -> dict[str, str]:
        """How each must end, by key."""
        return {each.key: self._expected(each) for each in self.everybody}

    def expected_counts(self) -> Counter[str]:
        """How many must end how."""
        return Counter(self.expected().values())

    def _expected(self, person: Person) -> str:
        if person == self.leaver:
            return "removed"
        return "failed" if person.address_is_taken else "completed"


def _row(person: Person, moves_at: str) -> tuple[str, ...]:
    return person.key, person.name, person.target, person.address, moves_at
