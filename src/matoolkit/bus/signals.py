"""Waiting for messages without asking again and again: who may have brought something says so, and the waiting look.

Each subscription has a count of how often something was said of it. Who is about to look notes the counts first, so
that nothing said in between is missed.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum, auto
from threading import TIMEOUT_MAX, Condition
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection


class Outcome(Enum):
    """What ended a wait."""

    SIGNALLED = auto()
    """Something may be there."""
    INTERRUPTED = auto()
    """Somebody wants the waiting to end."""
    TIMED_OUT = auto()
    """The time is over."""


class Noted(NamedTuple):
    """The counts as they were."""

    subscriptions: dict[int, int]
    everything: int
    interruptions: int

    def same_for(self, later: Noted, subscription_ids: Collection[int]) -> bool:
        """Whether nothing was said of these subscriptions between this note and a later one."""
        before, after = self.subscriptions, later.subscriptions
        return self.everything == later.everything and all(
            before.get(each, 0) == after.get(each, 0) for each in subscription_ids
        )


class Signals:
    """Who waits for which subscription in this process, and what ends that."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._subscriptions: Counter[int] = Counter()
        self._everything = 0
        self._interruptions = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether no wait is to begin any more."""
        return self._closed

    def noted(self) -> Noted:
        """The counts as they are."""
        with self._changed:
            return self._now()

    def signal(self, subscription_ids: Collection[int]) -> None:
        """Something may have come to these subscriptions."""
        with self._changed:
            self._subscriptions.update(subscription_ids)
            self._changed.notify_all()

    def signal_everything(self) -> None:
        """Something may have come anywhere: who listens for it was away for a while."""
        with self._changed:
            self._everything += 1
            self._changed.notify_all()

    def interrupt(self) -> None:
        """End every wait under way."""
        with self._changed:
            self._interruptions += 1
            self._changed.notify_all()

    def close(self) -> None:
        """End every wait, under way and to come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, subscription_ids: Collection[int], noted: Noted, seconds: float) -> Outcome:
        """Wait until something is said of these subscriptions that was not when the counts were noted."""

        def ended() -> bool:
            return self._interrupted_since(noted) or not noted.same_for(self._now(), subscription_ids)

        with self._changed:
            if not self._changed.wait_for(ended, min(seconds, TIMEOUT_MAX)):
                return Outcome.TIMED_OUT
            return Outcome.INTERRUPTED if self._interrupted_since(noted) else Outcome.SIGNALLED

    def _interrupted_since(self, noted: Noted) -> bool:
        return self._closed or self._interruptions != noted.interruptions

    def _now(self) -> Noted:
        return Noted(dict(self._subscriptions), self._everything, self._interruptions)
