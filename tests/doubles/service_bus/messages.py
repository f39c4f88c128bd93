"""Messages: taken apart for what the broker has to know, put together again for who receives them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from tests.doubles.service_bus.encoding import Symbol, Timestamp, UInt, decode_all, described, encode, encode_list

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION, DATA, SEQUENCE, VALUE = range(0x70, 0x78)


@dataclass
class Message:
    """A message in a topic or subscription; times are milliseconds since 1970."""

    message_id: Any
    application: dict[str, Any]
    properties: bytes
    body: bytes
    time_to_live: int | None
    deliver_at: int | None
    sequence: int = 0
    enqueued_at: int = 0
    expires_at: int = 0
    deliveries: int = 0
    locked_until: int = 0
    lock: UUID = field(default_factory=uuid4)

    def copy(self) -> Message:
        """One more of the same, not locked by anybody."""
        return replace(self, application=dict(self.application), lock=uuid4())

    def encoded(self, deliveries_before: int) -> bytes:
        """As it travels to who receives it."""
        annotations: dict[Any, Any] = {
            Symbol("x-opt-enqueued-time"): Timestamp(self.enqueued_at),
            Symbol("x-opt-sequence-number"): self.sequence,
        }
        if self.locked_until:
            annotations[Symbol("x-opt-locked-until")] = Timestamp(self.locked_until)
        time_to_live = None if self.time_to_live is None else UInt(self.time_to_live)
        header = encode_list([True, None, time_to_live, None, UInt(deliveries_before)])
        return b"".join(
            (
                described(HEADER, header),
                described(ANNOTATIONS, encode(annotations)),
                self.properties,
                described(APPLICATION, encode(self.application)) if self.application else b"",
                self.body,
            )
        )


def parsed(payload: bytes) -> Message:
    """A message as a client sent it."""
    message = Message(None, {}, b"", b"", None, None)
    body = []
    for section, begin, end in decode_all(payload):
        raw = payload[begin:end]
        if section.descriptor == HEADER:
            message.time_to_live = section.value[2] if len(section.value) > 2 else None
        elif section.descriptor == ANNOTATIONS:
            message.deliver_at = _scheduled(section.value)
        elif section.descriptor == PROPERTIES:
            message.properties = raw
            message.message_id = section.value[0] if section.value else None
        elif section.descriptor == APPLICATION:
            message.application = section.value
        elif section.descriptor >= DATA:
            body.append(raw)
    message.body = b"".join(body)
    return message


def in_batch(payload: bytes) -> list[bytes]:
    """The messages of a batch: each is one data section."""
    return [section.value for section, _, _ in decode_all(payload) if section.descriptor == DATA]


def request(payload: bytes) -> tuple[Any, Any, Mapping[str, Any], Any]:
    """Id, reply address, application properties and value of a request."""
    sections = {int(section.descriptor): section.value for section, _, _ in decode_all(payload)}
    properties = sections.get(PROPERTIES, [])
    message_id = properties[0] if properties else None
    reply_to = properties[4] if len(properties) > 4 else None
    return message_id, reply_to, sections.get(APPLICATION, {}), sections.get(VALUE)


def response(correlation_id: Any, application: Mapping[str, Any], value: Any) -> bytes:
    """The answer to a request; the id is the request's own, of its own type."""
    return b"".join(
        (
            described(PROPERTIES, encode_list([None, None, None, None, None, correlation_id])),
            described(APPLICATION, encode(dict(application))),
            described(VALUE, encode(value)),
        )
    )


def _scheduled(annotations: Mapping[Any, Any]) -> int | None:
    at = annotations.get("x-opt-scheduled-enqueue-time")
    return None if at is None else int(at)
