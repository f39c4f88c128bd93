"""What goes between the parts: the bus, the orchestrators that empty it, and messages that come twice or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from matoolkit.bus import EmbeddedBus, Names, Outgoing, SubscriptionRule, Topology
from matoolkit.clock import ManualClock
from matoolkit.orchestrator import Orchestrator, Settings
from tests.orchestrator.views import Views

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.store.database import Database

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
NAMES = Names()
WORKER = NAMES.worker("worker-1")
_TAP = SubscriptionRule(NAMES.events, "tap")
TURNS = 300
"""After how many turns something is taken never to end."""


class Post(Views):
    """Two orchestrators on one bus under a clock that stands still."""

    def __init__(self, database: Database, **settings: Any) -> None:
        super().__init__(database)
        self.clock = ManualClock(START)
        self.bus = EmbeddedBus(database, self.clock)
        self.orchestrators = self.boot(**settings)
        with database.transaction() as tx:
            self.bus.declare(tx, NAMES.topology())
            self.bus.declare(tx, Topology(subscriptions=(WORKER, _TAP)))

    def boot(self, **settings: Any) -> list[Orchestrator]:
        """Start the orchestrators, or start them again with other settings."""
        self.settings = Settings(**settings)
        self.orchestrators = [Orchestrator(self.database, self.bus, self.clock, self.settings) for _ in range(2)]
        return self.orchestrators

    @property
    def now(self) -> datetime:
        """The time."""
        return self.clock.now()

    def pump(self) -> None:
        """Both orchestrators take turns until nothing is left to be handled now."""
        for _ in range(TURNS):
            if not sum(each.handle_events() + each.handle_results() for each in self.orchestrators):
                return
        raise AssertionError("the orchestrators do not come to rest")

    def send_result(self, body: str) -> None:
        """Something arrives among the results."""
        self.send(NAMES.results, body)

    def send_event(self, body: str, message_type: str = "") -> None:
        """Something arrives among the events."""
        self.send(NAMES.events, body, {"MessageType": message_type} if message_type else {})

    def send(self, topic: str, body: str, properties: Mapping[str, str] | None = None) -> None:
        """Something arrives."""
        with self.database.transaction() as tx:
            self.bus.publish(tx, topic, [Outgoing(body, properties or {})])

    def events(self, message_type: str = "") -> list[Outgoing]:
        """Events that have been published since this was asked last, and whose time has come."""
        with self.database.transaction() as tx:
            received = self.bus.receive(tx, _TAP.subscription, 5000)
            self.bus.complete(tx, received)
        found = [Outgoing(each.body, each.properties) for each in received]
        return [each for each in found if not message_type or each.properties["MessageType"] == message_type]

    def redeliver(self, events: list[Outgoing]) -> None:
        """Events come once more."""
        with self.database.transaction() as tx:
            self.bus.publish(tx, NAMES.events, events)
        self.pump()

    def lose_events(self) -> int:
        """Events that wait are gone, those whose time has not come included; how many there were."""
        return self._lose("orchestrator")

    def lose_jobs(self) -> int:
        """Jobs that wait are gone without a trace."""
        return self._lose(WORKER.name)

    def _lose(self, subscription: str) -> int:
        rule = "(SELECT id FROM bus_subscriptions WHERE name = '{}')"
        with self.database.transaction() as tx:
            statement = f"DELETE FROM bus_messages WHERE subscription_id IN {rule.format(subscription)}"
            return int(tx.connection.exec_driver_sql(statement).rowcount)
