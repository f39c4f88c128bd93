"""The worker's side of the bus: results out, jobs settled, given back and taken, all in one transaction.

A result is published in the transaction that completes its job. So a job whose lock was lost leaves no result: another
worker has it, and reports.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matoolkit.bus import LockLost
from matoolkit.bus.errors import MessageTooLarge
from matoolkit.worker.running import RESULTS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import timedelta

    from matoolkit.bus import Bus, Outgoing, Received, Subscription
    from matoolkit.worker.runs import Held

log = logging.getLogger(__name__)

UNREADABLE = "UnreadableJob"
NO_RESULT = "NoResult"
RESULT_TOO_LARGE = "ResultTooLarge"


@dataclass(frozen=True, slots=True)
class DeadJob:
    """A job that nothing can be answered to."""

    message: Received
    reason: str
    description: str


@dataclass(slots=True)
class Parcel:
    """What goes out together."""

    answered: list[tuple[Received, Outgoing]] = field(default_factory=list)
    dead: list[DeadJob] = field(default_factory=list)
    given_back: list[Received] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.answered or self.dead or self.given_back)

    def messages(self) -> list[Received]:
        """Every message in it."""
        return [
            *(message for message, _ in self.answered),
            *(each.message for each in self.dead),
            *self.given_back,
        ]

    def followed_by(self, later: Parcel) -> Parcel:
        """Both in one."""
        return Parcel(self.answered + later.answered, self.dead + later.dead, self.given_back + later.given_back)

    def without_largest(self, why: str) -> Parcel:
        """What is left when the bus does not take the largest answer: its job is set aside, so that its step fails."""
        message, answer = max(self.answered, key=lambda each: len(each[1].body))
        log.error("the result of %s cannot be sent: %s", message.message_id, why)
        return Parcel(
            [each for each in self.answered if each[1] is not answer],
            [*self.dead, DeadJob(message, RESULT_TOO_LARGE, why)],
            self.given_back,
        )

    def without(self, lost: Collection[Received]) -> Parcel:
        """What is left when these can no longer be settled."""
        gone = {each.sequence for each in lost}
        return Parcel(
            [each for each in self.answered if each[0].sequence not in gone],
            [each for each in self.dead if each.message.sequence not in gone],
            [each for each in self.given_back if each.sequence not in gone],
        )


class Post:
    """Where a worker's jobs come from and its results go."""

    def __init__(self, bus: Bus, subscription: Subscription, *, results_topic: str = RESULTS) -> None:
        self._bus = bus
        self._subscription = subscription
        self._topic = results_topic

    def exchange(self, parcel: Parcel, limit: int) -> list[Received]:
        """Send and settle what is in the parcel, and take up to so many jobs."""
        while True:
            try:
                return self._exchange(parcel, limit)
            except LockLost as lost:
                # Whoever has them now runs them again, and what they answer counts.
                log.warning("%s; nothing is reported of it here", lost)
                parcel = parcel.without(lost.lost)
            except MessageTooLarge as error:
                if not parcel.answered:
                    raise
                parcel = parcel.without_largest(str(error))

    def _exchange(self, parcel: Parcel, limit: int) -> list[Received]:
        with self._bus.transaction() as tx:
            if parcel.answered:
                self._bus.publish(tx, self._topic, [answer for _, answer in parcel.answered])
                self._bus.complete(tx, [message for message, _ in parcel.answered])
            for each in parcel.dead:
                self._bus.dead_letter(tx, [each.message], each.reason, each.description)
            if parcel.given_back:
                self._bus.abandon(tx, parcel.given_back)
            return self._bus.receive(tx, self._subscription, limit) if limit else []

    def wait(self, seconds: float) -> bool:
        """Block until there may be a job to take, or `wake`."""
        return self._bus.wait([self._subscription], seconds)

    def wake(self) -> None:
        """End the waiting."""
        self._bus.wake()


class Renewal:
    """Keeps the locks of jobs that run; done from a thread of its own, whatever the jobs are up to."""

    def __init__(self, bus: Bus, held: Held, lock_for: timedelta | None = None) -> None:
        self._bus = bus
        self._held = held
        self._lock_for = lock_for

    def renew(self, now: float) -> Sequence[Received]:
        """Lock anew what is held; those that are lost. `now` is the event loop's time."""
        messages = self._held.to_renew(now)
        if not messages:
            return ()
        with self._bus.transaction() as tx:
            try:
                self._bus.renew(tx, messages, self._lock_for)
            except LockLost as lost:
                # What could be renewed is, so the transaction is committed.
                return lost.lost
        return ()
