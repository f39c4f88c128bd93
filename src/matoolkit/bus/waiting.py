"""Blocks until something may be there to receive, without asking the database again and again.

A waiting thread looks once, then sleeps until somebody says that there is something to look at, or until the first
message it saw is due: a scheduled one, or one whose lock ends. Then it looks again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from matoolkit.bus.errors import SubscriptionNotFound
from matoolkit.bus.signals import Outcome
from matoolkit.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from matoolkit.bus.listening import Listener
    from matoolkit.bus.port import Subscription
    from matoolkit.bus.signals import Noted, Signals
    from matoolkit.bus.storage import Storage
    from matoolkit.store.database import Database, Transaction

_PAUSE_BEFORE_LOOKING_AGAIN = 0.05
"""Seconds, when what is ready cannot be had because another transaction has it in its hands: should that one be undone,
nobody would say so."""
_PAUSE_WITHOUT_DATABASE = 0.5


class _Seen(NamedTuple):
    subscription: Subscription
    id: int
    due_in: float


class Waiting:
    """The threads of this process that wait for messages."""

    def __init__(self, database: Database, storage: Storage, signals: Signals) -> None:
        self._database = database
        self._storage = storage
        self._signals = signals
        self._listener: Listener | None = None
        self._came_up_empty: dict[Subscription, Noted] = {}

    def came_up_empty(self, subscription: Subscription, noted: Noted) -> None:
        """Nothing could be had of this subscription; `noted` was what had been said before trying."""
        self._came_up_empty[subscription] = noted

    def wait(self, subscriptions: Collection[Subscription], timeout: float) -> bool:
        """Whether something may be there; not, when the time is over or somebody wants the waiting to end."""
        self._listen()
        ends = time.monotonic() + timeout
        first_look = True
        while not self._signals.closed:
            noted = self._signals.noted()
            seen = self._look(subscriptions)
            ids = [each.id for each in seen or ()]
            left = max(0.0, ends - time.monotonic())
            ready = [each for each in seen or () if each.due_in <= 0]
            if ready:
                if first_look and all(self._in_other_hands(each, noted) for each in ready):
                    self._signals.wait(ids, noted, min(left, _PAUSE_BEFORE_LOOKING_AGAIN))
                return not self._signals.closed
            due_in = _PAUSE_WITHOUT_DATABASE if seen is None else min((each.due_in for each in seen), default=left)
            outcome = self._signals.wait(ids, noted, min(left, due_in))
            if outcome is Outcome.INTERRUPTED or (outcome is Outcome.TIMED_OUT and left <= due_in):
                return False
            first_look = False
        return False

    def wake(self) -> None:
        """End every wait under way."""
        self._signals.interrupt()

    def close(self) -> None:
        """End every wait, under way and to come."""
        self._signals.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _listen(self) -> None:
        """From the first wait on: a process that only publishes needs no listener."""
        if self._listener is None and self._database.dialect == "postgresql" and not self._signals.closed:
            from matoolkit.bus.listening import Listener

            self._listener = Listener(self._database.engine, self._signals)

    def _look(self, subscriptions: Collection[Subscription]) -> Sequence[_Seen] | None:
        """What is in the subscriptions; None when the database is away, which who receives is told."""
        try:
            with self._database.reading() as tx:
                return [self._seen(tx, subscription) for subscription in subscriptions]
        except StoreError as error:
            if not error.retryable:
                raise
            return None

    def _seen(self, tx: Transaction, subscription: Subscription) -> _Seen:
        subscription_id, now, available_at = first_of(tx, self._storage, subscription)
        due_in = float("inf") if available_at is None else (available_at - now) / 1000
        return _Seen(subscription, subscription_id, due_in)

    def _in_other_hands(self, seen: _Seen, noted: Noted) -> bool:
        """Whether nothing could be had the last time, and nothing has been said since."""
        before = self._came_up_empty.get(seen.subscription)
        return before is not None and before.same_for(noted, [seen.id])


def first_of(tx: Transaction, storage: Storage, subscription: Subscription) -> tuple[int, int, int | None]:
    """The subscription's id, now, and when its first message is available."""
    row: Any = tx.execute(
        storage.statements.next_due,
        topic=subscription.topic,
        subscription=subscription.name,
        **storage.times(),
    ).first()
    if row is None:
        raise not_found(subscription)
    return row[0], row[1], row[2]


def not_found(subscription: Subscription) -> SubscriptionNotFound:
    """The error that says which."""
    return SubscriptionNotFound(f"there is no subscription {subscription.name} of topic {subscription.topic}")
