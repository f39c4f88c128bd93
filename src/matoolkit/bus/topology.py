"""Which topics and subscriptions there are, and by what rules; the product's own, with Service Bus's settings."""

from __future__ import annotations

import re
from datetime import timedelta

from msgspec import Struct

from matoolkit.bus.errors import InvalidTopology
from matoolkit.bus.port import Subscription

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

WORKER_ID = "WorkerId"
"""The property by which jobs find their worker."""


class Filter(Struct, frozen=True):
    """Lets through the messages that have this property with this value."""

    property: str
    value: str


class TopicRule(Struct, frozen=True):
    """A topic, and what holds for its messages."""

    name: str
    time_to_live: timedelta = timedelta(days=7)
    duplicate_window: timedelta = timedelta(minutes=10)


class SubscriptionRule(Struct, frozen=True):
    """A subscription, and what holds for what lies in it."""

    topic: str
    name: str
    filter: Filter | None = None
    lock_duration: timedelta = timedelta(seconds=60)
    max_delivery_count: int = 10

    @property
    def subscription(self) -> Subscription:
        """The name everything else knows it by."""
        return Subscription(self.topic, self.name)


class Topology(Struct, frozen=True):
    """Topics and subscriptions to be declared together."""

    topics: tuple[TopicRule, ...] = ()
    subscriptions: tuple[SubscriptionRule, ...] = ()

    def check(self) -> None:
        """Refuse names that some bus cannot carry, and subscriptions whose topic is not there."""
        for name in (*(topic.name for topic in self.topics), *(rule.name for rule in self.subscriptions)):
            if not _NAME.fullmatch(name):
                raise InvalidTopology(f"{name!r} cannot name a topic or subscription")
        for rule in self.subscriptions:
            if rule.filter is not None and not _PROPERTY.fullmatch(rule.filter.property):
                raise InvalidTopology(f"{rule.filter.property!r} cannot name the property of a filter")
            if rule.max_delivery_count < 1 or rule.lock_duration <= timedelta(0):
                raise InvalidTopology(f"{rule.name} allows no delivery at all")


class Names(Struct, frozen=True):
    """What the topics and the orchestrator's subscriptions are called here."""

    events: str = "orchestrator-events"
    jobs: str = "worker-jobs"
    results: str = "worker-results"
    orchestrator: str = "orchestrator"
    """Its place at events."""
    orchestrator_results: str = "orchestrator"
    """Its place at results."""

    def topology(self, lock_duration: timedelta = timedelta(seconds=60)) -> Topology:
        """The three topics, and the orchestrator's place at events and results."""
        return Topology(
            topics=(TopicRule(self.events), TopicRule(self.jobs), TopicRule(self.results)),
            subscriptions=(
                SubscriptionRule(self.events, self.orchestrator, lock_duration=lock_duration),
                SubscriptionRule(self.results, self.orchestrator_results, lock_duration=lock_duration),
            ),
        )

    def worker(self, worker_id: str | None, lock_duration: timedelta = timedelta(seconds=60)) -> SubscriptionRule:
        """A worker's place at the jobs: at its own, or at everybody's when it has no id."""
        if worker_id is None:
            return SubscriptionRule(self.jobs, "every-worker", lock_duration=lock_duration)
        return SubscriptionRule(
            self.jobs, f"worker-{worker_id}", filter=Filter(WORKER_ID, worker_id), lock_duration=lock_duration
        )
