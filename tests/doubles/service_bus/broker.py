"""What a namespace holds: topics with their duplicate window, subscriptions with locks and a dead-letter queue.

It is told the time and never waits; whoever serves it calls `tick` before looking at what is there.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID, uuid4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.doubles.service_bus.messages import Message

WEEK = 7 * 24 * 3600 * 1000
MINUTE = 60 * 1000


class Rule(NamedTuple):
    """A filter: everything, or what has a property with a value."""

    name: str
    expression: str = "1=1"
    property: str | None = None
    value: str | None = None

    def passes(self, message: Message) -> bool:
        """Whether it lets a message through."""
        return self.property is None or message.application.get(self.property) == self.value


EVERYTHING = Rule("$Default")


class LockLost(Exception):
    """Nobody holds this lock any more."""


@dataclass
class Queue:
    """Messages of a subscription, or of its dead-letter queue."""

    lock_ms: int = MINUTE
    max_deliveries: int | None = None
    dead: Queue | None = None
    messages: dict[int, Message] = field(default_factory=dict)
    _first_expiry: int = 0
    _ready: list[tuple[int, int]] = field(default_factory=list)
    _locked: dict[UUID, Message] = field(default_factory=dict)

    def put(self, message: Message) -> None:
        """Add a message that may be handed out."""
        self.messages[message.sequence] = message
        self._first_expiry = min(self._first_expiry, message.expires_at)
        heapq.heappush(self._ready, (message.enqueued_at, message.sequence))

    def hand_out(self, now: int) -> Message | None:
        """Lock the oldest message that is ready."""
        while self._ready:
            _, sequence = heapq.heappop(self._ready)
            message = self.messages.get(sequence)
            if message is None or message.locked_until:
                continue
            if self._is_over(message, now):
                continue
            message.lock = uuid4()
            message.locked_until = now + self.lock_ms
            message.deliveries += 1
            self._locked[message.lock] = message
            return message
        return None

    def held(self, lock: UUID) -> Message:
        """The message that a lock is on."""
        message = self._locked.get(lock)
        if message is None:
            raise LockLost(str(lock))
        return message

    def complete(self, lock: UUID) -> None:
        """It is gone."""
        message = self.held(lock)
        del self._locked[lock], self.messages[message.sequence]

    def give_back(self, lock: UUID, *, counted: bool, now: int) -> None:
        """It is ready again, at its old place; a release is no delivery."""
        message = self.held(lock)
        del self._locked[lock]
        message.locked_until = 0
        if not counted:
            message.deliveries -= 1
        if not self._is_over(message, now):
            heapq.heappush(self._ready, (message.enqueued_at, message.sequence))

    def bury(self, message: Message, reason: str, description: str) -> None:
        """It goes to the dead-letter queue, or from there nowhere."""
        self._locked.pop(message.lock, None)
        message.locked_until = 0
        if self.dead is None:
            heapq.heappush(self._ready, (message.enqueued_at, message.sequence))
            return
        del self.messages[message.sequence]
        message.application["DeadLetterReason"] = reason
        message.application["DeadLetterErrorDescription"] = description
        self.dead.put(message)

    def tick(self, now: int) -> None:
        """Give back what has been locked for too long, and bury what nobody took in time."""
        for message in [each for each in self._locked.values() if each.locked_until <= now]:
            self.give_back(message.lock, counted=True, now=now)
        if self.dead is not None and self._first_expiry <= now:
            for message in [each for each in self.messages.values() if not each.locked_until]:
                self._is_over(message, now)
            self._first_expiry = min((each.expires_at for each in self.messages.values()), default=now + WEEK)

    def counts(self) -> tuple[int, int]:
        """How many there are, and how many of them are locked."""
        return len(self.messages), len(self._locked)

    def _is_over(self, message: Message, now: int) -> bool:
        if self.dead is None:
            return False
        if self.max_deliveries is not None and message.deliveries >= self.max_deliveries:
            self.bury(message, "MaxDeliveryCountExceeded", "handed out as often as allowed, and never settled")
            return True
        if message.expires_at <= now:
            self.bury(message, "TTLExpiredException", "nobody took the message within its time to live")
            return True
        return False


@dataclass
class Subscription:
    """A subscription of a topic."""

    name: str
    queue: Queue
    rules: dict[str, Rule]


@dataclass
class Topic:
    """A topic: what is sent to it goes to every subscription whose rules let it through."""

    name: str
    time_to_live: int = WEEK
    duplicate_window: int = 10 * MINUTE
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    scheduled: dict[int, Message] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def is_duplicate(self, message: Message, now: int) -> bool:
        """Whether a message with its id came within the window; if not, it is remembered."""
        if message.message_id is None:
            return False
        if self._seen.get(message.message_id, 0) > now:
            return True
        self._seen[message.message_id] = now + self.duplicate_window
        return False


class Broker:
    """A namespace."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.topics: dict[str, Topic] = {}
        self.twice: Callable[[Message], bool] = lambda _: False
        """Which messages reach their subscriptions a second time."""
        self.looked: Callable[[str], object] = lambda _: None
        """Told of each filter that looks at a message, by its subscription."""
        self.accepted = 0
        """How many messages were sent, duplicates aside."""
        self.handed_out = 0
        """How many messages were received."""
        self._sequence = 0

    def topic(self, name: str) -> Topic | None:
        """A topic, however its name is written."""
        return self.topics.get(name.lower())

    def subscription(self, topic: str, name: str) -> Subscription | None:
        """A subscription, however its names are written."""
        found = self.topic(topic)
        return None if found is None else found.subscriptions.get(name.lower())

    def queue(self, path: str) -> Queue | None:
        """What `topic/Subscriptions/name` and `…/$DeadLetterQueue` mean."""
        parts = path.strip("/").split("/")
        dead = len(parts) > 3 and parts[-1].lower() == "$deadletterqueue"
        if len(parts) - dead < 3 or parts[-2 - dead].lower() != "subscriptions":
            return None
        found = self.subscription("/".join(parts[: -2 - dead]), parts[-1 - dead])
        return None if found is None else found.queue.dead if dead else found.queue

    def send(self, topic: Topic, message: Message) -> int:
        """Take a message in; its sequence."""
        now = self.now()
        self._sequence += 1
        message.sequence = self._sequence
        if topic.is_duplicate(message, now):
            return message.sequence
        self.accepted += 1
        if message.deliver_at is not None and message.deliver_at > now:
            topic.scheduled[message.sequence] = message
        else:
            self._distribute(topic, message, now)
        return message.sequence

    def cancel(self, topic: Topic, sequences: Iterable[int]) -> bool:
        """Withdraw scheduled messages; whether all of them were still there."""
        wanted = set(sequences)
        there = wanted & set(topic.scheduled)
        for sequence in there:
            del topic.scheduled[sequence]
        return there == wanted

    def tick(self) -> None:
        """Do everything whose time has come."""
        now = self.now()
        for topic in self.topics.values():
            for message in sorted(topic.scheduled.values(), key=lambda each: (each.deliver_at, each.sequence)):
                if message.deliver_at is not None and message.deliver_at <= now:
                    del topic.scheduled[message.sequence]
                    self._distribute(topic, message, message.deliver_at)
            for subscription in topic.subscriptions.values():
                subscription.queue.tick(now)
                if subscription.queue.dead is not None:
                    subscription.queue.dead.tick(now)

    def _distribute(self, topic: Topic, message: Message, now: int) -> None:
        for subscription in topic.subscriptions.values():
            passes = False
            for rule in subscription.rules.values():
                self.looked(subscription.name)
                passes = passes or rule.passes(message)
            if passes:
                for _ in range(2 if self.twice(message) else 1):
                    self._sequence += 1
                    copy = message.copy()
                    copy.sequence, copy.enqueued_at = self._sequence, now
                    lives = topic.time_to_live if copy.time_to_live is None else copy.time_to_live
                    copy.expires_at = now + min(lives, topic.time_to_live)
                    subscription.queue.put(copy)
