"""Time as it is handed to everything that needs it: nothing below the hosts reads a clock of its own."""

from __future__ import annotations

import time
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


class FastClock:
    """A clock that runs faster than the machine's: for demonstrations, where days must pass in a minute."""

    def __init__(self, speed: float) -> None:
        self._began = datetime.now(UTC)
        self._mark = time.monotonic()
        self._speed = speed

    def now(self) -> datetime:
        """As far past the beginning as the machine's clock is, times the speed."""
        return self._began + timedelta(seconds=(time.monotonic() - self._mark) * self._speed)
