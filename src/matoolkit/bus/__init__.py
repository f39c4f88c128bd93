"""Topics and subscriptions: the interface, and the bus that is kept in the database."""

from matoolkit.bus.embedded import EmbeddedBus
from matoolkit.bus.errors import BusError, LockLost
from matoolkit.bus.outgoing import check
from matoolkit.bus.port import Bus, DeadLetter, Outgoing, Publisher, Received, Subscription
from matoolkit.bus.topology import Names, SubscriptionRule, TopicRule, Topology

__all__ = [
    "Bus",
    "BusError",
    "DeadLetter",
    "EmbeddedBus",
    "LockLost",
    "Names",
    "Outgoing",
    "Publisher",
    "Received",
    "Subscription",
    "SubscriptionRule",
    "TopicRule",
    "Topology",
    "check",
]
