"""Messages that the host of Azure Functions hands over, in our form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.bus.port import Received
from matoolkit.bus.times import moment

if TYPE_CHECKING:
    from azure.functions import ServiceBusMessage

    from matoolkit.bus import Subscription


def received(message: ServiceBusMessage, subscription: Subscription) -> Received:
    """A message; its lock is the host's. What is no text is made some, and found unreadable by who reads it."""
    sequence = message.sequence_number or 0
    properties = message.application_properties or message.user_properties or {}
    return Received(
        sequence,
        subscription.topic,
        subscription.name,
        message.message_id or f"bus-{sequence}",
        message.get_body().decode("utf-8", "replace"),
        {str(name): str(value) for name, value in properties.items()},
        message.delivery_count or 1,
        message.enqueued_time_utc or moment(0),
        message.locked_until or moment(0),
    )
