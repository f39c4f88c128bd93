"""How fast steps end, measured over the last while."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

_WINDOW_SECONDS = 60.0
_ENDED = ("succeeded", "failed", "poll_timeout")


def done(steps: dict[str, int]) -> int:
    """How many steps have ended by running."""
    return sum(steps.get(status, 0) for status in _ENDED)


def left(steps: dict[str, int]) -> int:
    """How many of the steps that are written are still to end."""
    return sum(number for status, number in steps.items() if status not in (*_ENDED, "cancelled"))


@dataclass
class Pace:
    """Steps that ended, and when they were seen to have."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, seconds: float, number: int) -> None:
        """So many had ended at this time."""
        self._seen.append((seconds, number))
        while len(self._seen) > 2 and self._seen[1][0] <= seconds - _WINDOW_SECONDS:  # noqa: PLR2004 - both ends of the window stay
            self._seen.popleft()

    @property
    def per_minute(self) -> float | None:
        """How many end in a minute; None as long as that cannot be said."""
        if len(self._seen) < 2:  # noqa: PLR2004 - a pace takes two moments
            return None
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) * 60 / (ended - began) if ended > began and last >= first else None
