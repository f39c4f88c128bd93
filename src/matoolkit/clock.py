"""Time as it is handed to everything that needs it: nothing below the hosts reads a clock of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The current time, with the zone UTC."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The current time, with the zone UTC."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that moves only when it is told to: for simulations, rehearsals and tests."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """The time this clock was last set to."""
        return self._now

    def set(self, moment: datetime) -> None:
        """Jump to a moment, forwards or back."""
        self._now = moment

    def advance(self, **amount: float) -> None:
        """Move on by what `timedelta` takes: `clock.advance(minutes=5)`."""
        self._now += timedelta(**amount)
