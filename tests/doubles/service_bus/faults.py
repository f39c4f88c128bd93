"""What a test may have go wrong, each for as many times as it says."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum


class Fault(StrEnum):
    """A way in which a namespace fails."""

    SERVER_BUSY = "server busy"
    """Sends are refused, with the sub-code of throttling: 50009."""
    DETACH = "detach"
    """A link is detached when it is next used, as in an upgrade of the service."""
    DROP_CONNECTION = "drop connection"
    """A connection ends without a word when it is next used."""
    DROP_AFTER_ACCEPTING = "drop after accepting"
    """Messages are taken in, and the connection ends before the sender hears of it."""
    REFUSE_TOKEN = "refuse token"
    """Signing in is refused."""
    SILENT_SETTLING = "silent settling"
    """A settlement is lost: the link is detached in place of an answer."""
    DENY_MANAGEMENT = "deny management"
    """Whoever asks for entities is told that it has no right to."""


class Faults:
    """Those that are still to happen."""

    def __init__(self) -> None:
        self._due: Counter[Fault] = Counter()
        self.happened: Counter[Fault] = Counter()

    def plan(self, fault: Fault, times: int = 1) -> None:
        """Have something go wrong the next times it can."""
        self._due[fault] += times

    def strikes(self, fault: Fault) -> bool:
        """Whether it goes wrong now."""
        if self._due[fault] <= 0:
            return False
        self._due[fault] -= 1
        self.happened[fault] += 1
        return True

    def clear(self) -> None:
        """Let nothing go wrong any more."""
        self._due.clear()
