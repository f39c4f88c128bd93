"""What is wrong with a runbook, and where: problems are collected, so that one reading reports all of them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

# A page of errors is read, a million are not: beyond this many, problems are counted and no longer kept.
MAX_PROBLEMS: Final = 1_000
_SHOWN_CHARACTERS: Final = 60


class Severity(StrEnum):
    """How bad a problem is."""

    ERROR = "error"
    """The runbook cannot be used."""
    WARNING = "warning"
    """The runbook can be used, and is probably not what its author meant."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; line and column count from 1."""

    line: int
    column: int
    path: str
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR
    unknown_key: bool = False

    def __str__(self) -> str:
        """Put the place first, then what is wrong, then what may help."""
        path = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"line {self.line}, column {self.column}: {path}{self.message}{hint}"


class RunbookErrors(Exception):
    """The runbook has errors; `problems` holds every one of them, in the order of the document."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        """Keep the problems; the message is one line for each."""
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class Place(Protocol):
    """Anything that knows where in the document it stands."""

    @property
    def line(self) -> int:
        """The line, from 1."""

    @property
    def column(self) -> int:
        """The column, from 1."""


class Problems:
    """Collects problems while a document is read."""

    def __init__(self) -> None:
        """Start with none."""
        # Kept apart, so that a thousand warnings do not crowd out an error.
        self._problems: dict[Severity, list[Problem]] = {severity: [] for severity in Severity}
        self._beyond = dict.fromkeys(Severity, 0)
        self._seen: set[tuple[int, int, str]] = set()

    def error(self, place: Place, path: str, message: str, hint: str = "") -> None:
        """Record what makes the runbook unusable."""
        self._add(Problem(place.line, place.column, path, message, hint))

    def warning(self, place: Place, path: str, message: str, hint: str = "", *, unknown_key: bool = False) -> None:
        """Record what is probably a mistake."""
        self._add(Problem(place.line, place.column, path, message, hint, Severity.WARNING, unknown_key))

    def nearest(self, name: str, known: Iterable[str]) -> str:
        """Return a hint at the known name that was probably meant, or an empty text."""
        if any(map(self._is_full, Severity)) or len(name) > _SHOWN_CHARACTERS:
            return ""
        folded = {candidate.casefold(): candidate for candidate in known}
        matches = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
        return f"did you mean '{folded[matches[0]]}'?" if matches else ""

    def of(self, severity: Severity) -> tuple[Problem, ...]:
        """Return the problems of one severity, in the order of the document."""
        kept = self._problems[severity]
        found = sorted(kept, key=lambda problem: (problem.line, problem.column, problem.path, problem.message))
        if beyond := self._beyond[severity]:
            last = found[-1]
            found.append(Problem(last.line, last.column, "", f"{beyond:,} more are not shown", severity=severity))
        return tuple(found)

    def _add(self, problem: Problem) -> None:
        # What an anchor holds is read again at each of its aliases; its problems are told once, where they stand.
        identity = (problem.line, problem.column, problem.message)
        if identity in self._seen:
            return
        if self._is_full(problem.severity):
            self._beyond[problem.severity] += 1
            return
        self._seen.add(identity)
        self._problems[problem.severity].append(problem)

    def _is_full(self, severity: Severity) -> bool:
        return len(self._problems[severity]) >= MAX_PROBLEMS


def shown(value: str) -> str:
    """Return the value in single quotes, cut to what fits in a message."""
    return f"'{value}'" if len(value) <= _SHOWN_CHARACTERS else f"'{value[:_SHOWN_CHARACTERS]}…'"
