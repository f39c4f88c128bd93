"""What is checked of a message before any bus takes it, and the form in which the database gets it.

A NUL character is refused: PostgreSQL's text cannot hold one, and a replaced one would be another message than the one
that was sent. JSON writes it as an escape, so only properties and hand-made bodies can have one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from matoolkit.bus.errors import InvalidMessage, MessageTooLarge
from matoolkit.bus.times import duration, milliseconds_at_least

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from matoolkit.bus.port import Outgoing

LARGEST_BODY = 256 * 1024
"""In bytes of UTF-8: Service Bus's limit, kept on every bus, so that none takes what another refuses."""

_LONGEST_MESSAGE_ID = 128
_MOST_BYTES_OF_A_CHARACTER = 4
_encode = msgspec.json.Encoder().encode


class Entry(NamedTuple):
    """A message in the database's terms."""

    message_id: str | None
    properties: str
    body: str
    deliver_at: int | None
    time_to_live: int | None
    routing: Mapping[str, str]
    """The properties once more, as they were given, for who compares them with filters outside the database."""


def distinct(topic: str, messages: Iterable[Outgoing]) -> Iterator[Outgoing]:
    """The messages, checked; of those that share an id, the first."""
    seen: set[str] = set()
    for message in messages:
        message_id = message.message_id
        if message_id is not None:
            if message_id in seen:
                continue
            seen.add(message_id)
        check(topic, message)
        yield message


def entries(topic: str, messages: Iterable[Outgoing]) -> list[Entry]:
    """The messages, checked, in the database's terms; of those that share an id, the first."""
    prepared: list[Entry] = []
    for message in distinct(topic, messages):
        deliver_at, time_to_live = message.deliver_at, message.time_to_live
        prepared.append(
            Entry(
                message.message_id,
                _encode(message.properties).decode(),
                message.body,
                None if deliver_at is None else milliseconds_at_least(deliver_at),
                None if time_to_live is None else duration(time_to_live),
                message.properties,
            )
        )
    return prepared


def storable(text: str, limit: int) -> str:
    """Free text, such as an error's, made fit for every database: what cannot be stored is replaced."""
    return text[:limit].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def check(topic: str, message: Outgoing) -> None:
    """Refuse what not every bus and database can carry."""
    body, message_id = message.body, message.message_id
    if len(body) * _MOST_BYTES_OF_A_CHARACTER > LARGEST_BODY or not body.isascii():
        size = len(_utf8(topic, message, body))
        if size > LARGEST_BODY:
            raise MessageTooLarge(
                f"{_named(topic, message)} has a body of {size:,} bytes; the limit is {LARGEST_BODY:,}"
            )
    if "\0" in body:
        raise InvalidMessage(f"{_named(topic, message)} has a NUL character in its body")
    if message_id is not None and (not 0 < len(message_id) <= _LONGEST_MESSAGE_ID or "\0" in message_id):
        raise InvalidMessage(
            f"{_named(topic, message)} has a message id that is empty, too long or holds a NUL character"
        )
    properties = "".join((*message.properties, *message.properties.values()))
    if not (properties.isascii() and properties.isprintable()):
        for name, value in message.properties.items():
            if "\0" in name or "\0" in value:
                raise InvalidMessage(f"{_named(topic, message)} has a NUL character in its property {name!r}")
            _utf8(topic, message, name + value)
    if message.deliver_at is not None and message.deliver_at.tzinfo is None:
        raise InvalidMessage(f"{_named(topic, message)} is to be delivered at a time without a zone")


def _utf8(topic: str, message: Outgoing, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidMessage(f"{_named(topic, message)} holds half of a surrogate pair") from error


def _named(topic: str, message: Outgoing) -> str:
    """Which message it is, without its body."""
    return f"a message of type {_type(message.properties)} for topic {topic}"


def _type(properties: Mapping[str, str]) -> str:
    return properties.get("MessageType") or properties.get("FunctionName") or properties.get("Status") or "unknown"
