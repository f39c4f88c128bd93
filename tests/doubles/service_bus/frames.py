"""Frames: the nine performatives of a connection, and the five of signing in."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.doubles.service_bus.encoding import Described, Symbol, ULong, decode, described, encode_list

if TYPE_CHECKING:
    import asyncio

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
LARGEST_FRAME = 65536
_SASL_FRAME = 1


class Code(IntEnum):
    """What a frame is; the numbers are the standard's."""

    OPEN = 0x10
    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15
    DETACH = 0x16
    END = 0x17
    CLOSE = 0x18
    SASL_MECHANISMS = 0x40
    SASL_INIT = 0x41
    SASL_OUTCOME = 0x44


class Outcome(IntEnum):
    """What becomes of a delivery."""

    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27


ERROR = 0x1D
SOURCE, TARGET = 0x28, 0x29


class Frame(NamedTuple):
    """A performative as it arrived; fields that were left out are None."""

    channel: int
    code: Code
    fields: list[Any]
    payload: bytes

    def field(self, place: int) -> Any:
        """A field by its place in the standard's table."""
        return self.fields[place] if place < len(self.fields) else None


def framed(channel: int, code: Code, fields: list[Any], payload: bytes = b"") -> bytes:
    """A frame on the wire."""
    body = described(code, encode_list(fields)) + payload
    kind = _SASL_FRAME if code >= Code.SASL_MECHANISMS else 0
    return struct.pack(">IBBH", len(body) + 8, 2, kind, channel) + body


async def read_frame(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame; None for an empty one, which only says that the other side is alive."""
    size, offset, _, channel = struct.unpack(">IBBH", await reader.readexactly(8))
    body = (await reader.readexactly(size - 8))[offset * 4 - 8 :]
    if not body:
        return None
    performative, end = decode(body)
    return Frame(channel, Code(performative.descriptor), performative.value, body[end:])


def error(condition: str, description: str) -> Described:
    """Why something ended."""
    return Described(ULong(ERROR), [Symbol(condition), description, {}])


def outcome(code: Outcome, fields: list[Any] | None = None) -> Described:
    """What became of a delivery."""
    return Described(ULong(code), fields or [])
