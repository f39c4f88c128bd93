"""The bus as everything else knows it: Service Bus's own notions, whichever bus is underneath.

A message is published to a *topic*; each *subscription* of the topic whose filter it passes gets a copy, and a message
that passes none is dropped without a word. Who receives a copy *locks* it for a while: nobody else sees it until it is
*completed* (gone), *abandoned* (back at its old place), *dead-lettered* (set aside, with a reason) or the lock expires.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from contextlib import AbstractContextManager

    from matoolkit.bus.topology import Topology
    from matoolkit.store.database import Transaction


class DeadReason(StrEnum):
    """Why the bus itself sets a message aside; in Service Bus's words. Consumers add reasons of their own."""

    MAX_DELIVERY_COUNT = "MaxDeliveryCountExceeded"
    """It was handed out as often as its subscription allows, and never settled."""
    TIME_TO_LIVE = "TTLExpiredException"
    """Nobody took it in time."""


class Subscription(Struct, frozen=True, order=True):
    """Which subscription of which topic."""

    topic: str
    name: str


class Outgoing(Struct, frozen=True):
    """A message to be published."""

    body: str
    properties: Mapping[str, str] = {}
    message_id: str | None = None
    """Another message with this id is dropped for ten minutes. None: the bus gives one that never occurred."""
    deliver_at: datetime | None = None
    """Not to be handed out before."""
    time_to_live: timedelta | None = None
    """Dead-lettered when not taken by then, counted from when it could first be handed out; at most the topic's."""


class Received(Struct, frozen=True):
    """A message that was handed out. Its sequence and delivery count together are the lock."""

    sequence: int
    topic: str
    subscription: str
    message_id: str
    body: str
    properties: Mapping[str, str]
    delivery_count: int
    """How often it was handed out, this time included."""
    enqueued_at: datetime
    """When it could first be handed out."""
    locked_until: datetime


class DeadLetter(Struct, frozen=True):
    """A message that was set aside."""

    sequence: int
    topic: str
    subscription: str
    message_id: str
    body: str
    properties: Mapping[str, str]
    delivery_count: int
    enqueued_at: datetime
    dead_at: datetime
    reason: str
    description: str


class Depth(Struct, frozen=True):
    """What lies in a subscription."""

    ready: int
    scheduled: int
    locked: int
    dead: int
    oldest_enqueued_at: datetime | None
    """Of those ready or locked."""


class SweepReport(Struct, frozen=True):
    """What a sweep did; as much as its limit allowed when there is more to do."""

    expired: int
    forgotten_ids: int


class Publisher(Protocol):
    """Takes messages as part of a transaction: the bus itself, or the outbox that feeds one elsewhere."""

    def publish(self, tx: Transaction, topic: str, messages: Sequence[Outgoing]) -> None:
        """Have messages delivered once the transaction is committed, and not at all otherwise."""


class Bus(Publisher, Protocol):
    """Topics and subscriptions."""

    @property
    def in_database(self) -> bool:
        """Whether messages lie beside the state: settled with its commits, and to be had by `take`."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A unit of bus work for a part that has no store of its own: the worker."""

    def declare(self, tx: Transaction, topology: Topology) -> None:
        """Make topics and subscriptions, or bring those that exist up to date."""

    def remove(self, tx: Transaction, subscription: Subscription) -> None:
        """Remove a subscription and all that lies in it; nothing happens when there is none."""

    def cancel_scheduled(self, tx: Transaction, topic: str, message_ids: Collection[str]) -> int:
        """Withdraw messages whose time has not come; how many there were. Their ids stay taken for the ten minutes."""

    def receive(
        self, tx: Transaction, subscription: Subscription, limit: int, lock_for: timedelta | None = None
    ) -> list[Received]:
        """Lock messages that are ready, oldest first: for the subscription's lock duration, or for `lock_for`."""

    def take(self, tx: Transaction, subscription: Subscription, limit: int) -> list[Received]:
        """Receive and complete in one, for who does all that follows in the same transaction.

        Only for a bus that is `in_database`. What is undone with the transaction was no delivery.
        """

    def subscriptions(self, tx: Transaction, topic: str) -> list[Subscription]:
        """The subscriptions a topic has now."""

    def listeners(self, tx: Transaction, topic: str, property_name: str) -> frozenset[str] | None:
        """The values of a property that some subscription of a topic lets through; None when one lets through all."""

    def complete(self, tx: Transaction, messages: Sequence[Received]) -> None:
        """Be done with messages: all of them or, with `LockLost`, none once the transaction is undone."""

    def abandon(self, tx: Transaction, messages: Sequence[Received]) -> None:
        """Give messages back to be handed out again at once, at their old place; `LockLost` likewise."""

    def dead_letter(self, tx: Transaction, messages: Sequence[Received], reason: str, description: str = "") -> None:
        """Set messages aside, saying why; `LockLost` likewise."""

    def renew(self, tx: Transaction, messages: Sequence[Received], lock_for: timedelta | None = None) -> datetime:
        """Lock messages anew; until when the first of them is locked then. `LockLost` says which were renewed."""

    def dead_letters(self, tx: Transaction, subscription: Subscription, limit: int, after: int = 0) -> list[DeadLetter]:
        """Read what was set aside, by sequence, from the one that follows `after`."""

    def resubmit(self, tx: Transaction, subscription: Subscription, sequences: Collection[int]) -> int:
        """Put dead letters back into their subscription as new messages, with new ids; how many there were."""

    def take_dead(self, tx: Transaction, subscription: Subscription, limit: int) -> list[DeadLetter]:
        """Remove and return what was set aside; two who do this at the same time get different ones."""

    def sweep(self, tx: Transaction, limit: int = 1000) -> SweepReport:
        """Set aside what outlived its time, and forget ids whose ten minutes are over: at most `limit` of each."""

    def depth(self, tx: Transaction, subscription: Subscription) -> Depth:
        """Count what lies in a subscription."""

    def next_due(self, tx: Transaction, subscription: Subscription) -> datetime | None:
        """When its first message is or was available: ready, scheduled, or locked and not settled by then."""

    def wait(self, subscriptions: Collection[Subscription], timeout: float) -> bool:
        """Block until something may be there to receive. False: the time is over, or `wake` or `close` ended it."""

    def wake(self) -> None:
        """End every `wait` under way."""

    def close(self) -> None:
        """End every `wait`, under way and to come. Everything else goes on working, so that a host can drain."""
