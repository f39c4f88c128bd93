"""Events for the orchestrator, published with the rows they speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matoolkit.bus import Outgoing
from matoolkit.messages import Event, encode, message_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.bus import Publisher
    from matoolkit.store.database import Transaction


@dataclass(frozen=True, slots=True)
class Announcer:
    """Where events for the orchestrator go."""

    bus: Publisher
    topic: str = "orchestrator-events"

    def send(self, tx: Transaction, events: Sequence[Event]) -> None:
        """Publish events with the rows they speak of."""
        if events:
            outgoing = [Outgoing(body=encode(each), properties={"MessageType": message_type(each)}) for each in events]
            self.bus.publish(tx, self.topic, outgoing)
