"""Columns and values as TDS 7.4 writes them; every type in the form that can be null."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

COLLATION = bytes((0x09, 0x04, 0xD0, 0x00, 0x34))
_LONG = 0xFFFF
_NULL = b"\x00"


@dataclass(frozen=True)
class Type:
    """How a column says what it holds, and how it writes a value."""

    info: bytes
    write: Callable[[Any], bytes]


@dataclass(frozen=True)
class Column:
    name: str
    type: Type

    def metadata(self) -> bytes:
        name = self.name.encode("utf-16-le")
        return struct.pack("<IH", 0, 0x0009) + self.type.info + bytes([len(name) // 2]) + name


def _short(convert: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """A value with its length in one byte."""

    def write(value: Any) -> bytes:
        if value is None:
            return _NULL
        data = convert(value)
        return bytes([len(data)]) + data

    return write


def integer(size: int) -> Type:
    return Type(bytes([0x26, size]), _short(lambda value: value.to_bytes(size, "little", signed=size > 1)))


INT, BIGINT, TINYINT = integer(4), integer(8), integer(1)
BIT = Type(bytes([0x68, 1]), _short(lambda value: bytes([bool(value)])))
FLOAT = Type(bytes([0x6D, 8]), _short(lambda value: struct.pack("<d", value)))
GUID = Type(bytes([0x24, 16]), _short(lambda value: UUID(value).bytes_le))


def decimal(precision: int, scale: int) -> Type:
    def convert(value: Decimal) -> bytes:
        number = int(value.scaleb(scale))
        return bytes([number >= 0]) + abs(number).to_bytes(16, "little")

    return Type(bytes([0x6A, 17, precision, scale]), _short(convert))


def _offset(value: datetime) -> bytes:
    utc = value.astimezone(UTC)
    minutes = (value.utcoffset() or timedelta()) // timedelta(minutes=1)
    return _ticks(utc.time()) + _days(utc.date()) + struct.pack("<h", minutes)


DATETIMEOFFSET = Type(bytes([0x2B, 7]), _short(_offset))


def _sized(convert: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def write(value: Any) -> bytes:
        if value is None:
            return struct.pack("<H", 0xFFFF)
        data = convert(value)
        return struct.pack("<H", len(data)) + data

    return write


def _in_pieces(convert: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """A value of any length, whose whole length is not told before."""

    def write(value: Any) -> bytes:
        if value is None:
            return b"\xff" * 8
        data = convert(value)
        pieces = [data[start : start + 5000] for start in range(0, len(data), 5000)]
        return (
            struct.pack("<Q", 0xFFFFFFFFFFFFFFFE)
            + b"".join(struct.pack("<I", len(piece)) + piece for piece in pieces)
            + struct.pack("<I", 0)
        )

    return write


def _utf16(value: str) -> bytes:
    return value.encode("utf-16-le")


NVARCHAR = Type(bytes([0xE7]) + struct.pack("<H", 8000) + COLLATION, _sized(_utf16))
NVARCHAR_MAX = Type(bytes([0xE7]) + struct.pack("<H", _LONG) + COLLATION, _in_pieces(_utf16))
VARBINARY = Type(bytes([0xA5]) + struct.pack("<H", 8000), _sized(bytes))
VARBINARY_MAX = Type(bytes([0xA5]) + struct.pack("<H", _LONG), _in_pieces(bytes))


def _days(value: date) -> bytes:
    return (value.toordinal() - 1).to_bytes(3, "little")


def _ticks(value: time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return ((seconds * 1_000_000 + value.microsecond) * 10).to_bytes(5, "little")


def _old_datetime(value: datetime) -> bytes:
    days = value.date().toordinal() - date(1900, 1, 1).toordinal()
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack("<iI", days, seconds * 300 + round(value.microsecond * 3 / 10_000))


def _money(value: Decimal) -> bytes:
    high, low = divmod(int(value.scaleb(4)), 1 << 32)
    return struct.pack("<iI", high, low)


DATE = Type(bytes([0x28]), _short(_days))
TIME = Type(bytes([0x29, 7]), _short(_ticks))
DATETIME2 = Type(bytes([0x2A, 7]), _short(lambda value: _ticks(value.time()) + _days(value.date())))
DATETIME = Type(bytes([0x6F, 8]), _short(_old_datetime))
MONEY = Type(bytes([0x6E, 8]), _short(_money))
