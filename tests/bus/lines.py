"""What the bus's tests share: topics and subscriptions, and a bus with one transaction for each verb."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from matoolkit.bus.port import Outgoing, Subscription
from matoolkit.bus.topology import Filter, Names, SubscriptionRule, Topology

if TYPE_CHECKING:
    from matoolkit.bus.port import Bus, DeadLetter, Received
    from matoolkit.clock import ManualClock

START = datetime(2126, 3, 1, 8, tzinfo=UTC)
"""So far ahead that no library that looks at the machine's clock takes a lock for expired."""

NAMES = Names()
EVENTS = Subscription(NAMES.events, NAMES.orchestrator)
RESULTS = Subscription(NAMES.results, NAMES.orchestrator)
WORKER_1 = Subscription(NAMES.jobs, "worker-1")
WORKER_2 = Subscription(NAMES.jobs, "worker-2")

TOPOLOGY = Topology(
    topics=NAMES.topology().topics,
    subscriptions=(*NAMES.topology().subscriptions, NAMES.worker("1"), NAMES.worker("2")),
)


@dataclass
class Line:
    """A bus and its clock, with one transaction for each verb."""

    bus: Bus
    clock: ManualClock

    def publish(self, topic: str, *messages: Outgoing | str) -> None:
        with self.bus.transaction() as tx:
            self.bus.publish(tx, topic, [Outgoing(each) if isinstance(each, str) else each for each in messages])

    def receive(self, subscription: Subscription, limit: int = 100, **more: Any) -> list[Received]:
        with self.bus.transaction() as tx:
            return self.bus.receive(tx, subscription, limit, **more)

    def bodies(self, subscription: Subscription, limit: int = 100) -> list[str]:
        return [message.body for message in self.receive(subscription, limit)]

    def complete(self, *messages: Received) -> None:
        with self.bus.transaction() as tx:
            self.bus.complete(tx, messages)

    def abandon(self, *messages: Received) -> None:
        with self.bus.transaction() as tx:
            self.bus.abandon(tx, messages)

    def dead_letter(self, *messages: Received, reason: str = "Poison", description: str = "") -> None:
        with self.bus.transaction() as tx:
            self.bus.dead_letter(tx, messages, reason, description)

    def renew(self, *messages: Received, lock_for: timedelta | None = None) -> datetime:
        with self.bus.transaction() as tx:
            return self.bus.renew(tx, messages, lock_for)

    def dead(self, subscription: Subscription, limit: int = 100, after: int = 0) -> list[DeadLetter]:
        with self.bus.transaction() as tx:
            return self.bus.dead_letters(tx, subscription, limit, after)

    def declare(self, *rules: SubscriptionRule) -> None:
        with self.bus.transaction() as tx:
            self.bus.declare(tx, Topology(subscriptions=rules))


def job(body: str, worker: str = "1", **more: Any) -> Outgoing:
    return Outgoing(body, properties={"WorkerId": worker, "FunctionName": "Set-Thing"}, **more)


def filtered(topic: str, name: str, property_name: str, value: str) -> SubscriptionRule:
    return SubscriptionRule(topic, name, filter=Filter(property_name, value))
