"""Messages between our form and the SDK's."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from azure.servicebus import ServiceBusMessage

from matoolkit.bus.port import DeadLetter, Received
from matoolkit.bus.times import milliseconds_at_least, moment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from azure.servicebus import ServiceBusReceivedMessage

    from matoolkit.bus.port import Outgoing, Subscription

_LONGEST_TIME_TO_LIVE = timedelta(days=49)
"""In milliseconds it has to fit 32 bits. No topic lets messages live as long."""
_REASON, _DESCRIPTION = "DeadLetterReason", "DeadLetterErrorDescription"


def outgoing(message: Outgoing) -> ServiceBusMessage:
    """A message to be sent; who gave no id gets one that never occurred."""
    properties: dict[str | bytes, Any] = dict(message.properties.items())
    return ServiceBusMessage(
        message.body.encode(),
        application_properties=properties,
        message_id=message.message_id or str(uuid4()),
        time_to_live=None if message.time_to_live is None else min(message.time_to_live, _LONGEST_TIME_TO_LIVE),
        content_type="application/json",
    )


def due(message: Outgoing) -> datetime | None:
    """When a message may be handed out, in whole milliseconds, which is all that travels."""
    return None if message.deliver_at is None else moment(milliseconds_at_least(message.deliver_at))


def received(message: ServiceBusReceivedMessage, subscription: Subscription) -> Received:
    """A message that was handed out."""
    return Received(
        message.sequence_number or 0,
        subscription.topic,
        subscription.name,
        _id(message),
        _body(message),
        _properties(message.application_properties),
        # The SDK counts the deliveries before this one.
        (message.delivery_count or 0) + 1,
        _known(message.enqueued_time_utc),
        _known(message.locked_until_utc),
    )


def dead_letter(message: ServiceBusReceivedMessage, subscription: Subscription, seen_at: datetime) -> DeadLetter:
    """A message that was set aside; Service Bus does not keep when, so that is when it was seen."""
    properties = _properties(message.application_properties)
    return DeadLetter(
        message.sequence_number or 0,
        subscription.topic,
        subscription.name,
        _id(message),
        _body(message),
        {name: value for name, value in properties.items() if name not in {_REASON, _DESCRIPTION}},
        message.delivery_count or 0,
        _known(message.enqueued_time_utc),
        seen_at,
        properties.get(_REASON, ""),
        properties.get(_DESCRIPTION, ""),
    )


def _id(message: ServiceBusReceivedMessage) -> str:
    return message.message_id or f"bus-{message.sequence_number}"


def _body(message: ServiceBusReceivedMessage) -> str:
    """What is no text is made some, and found unreadable by who reads it."""
    body = message.body
    parts = [body] if isinstance(body, bytes) else list(body)
    return b"".join(part if isinstance(part, bytes) else str(part).encode() for part in parts).decode(
        "utf-8", "replace"
    )


def _properties(properties: Mapping[Any, Any] | None) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in (properties or {}).items()}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _known(at: datetime | None) -> datetime:
    return moment(0) if at is None else at
