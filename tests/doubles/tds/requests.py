"""What a client asks for in other ways than by plain text: procedures with parameters, and transactions."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

_NAMES = {10: "sp_executesql", 11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec", 15: "sp_unprepare"}
_BY_NUMBER, _LONG = 0xFFFF, 0xFFFF
_EPOCH = date(1, 1, 1).toordinal()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a procedure."""

    name: str
    output: bool
    value: Any


@dataclass(frozen=True)
class Call:
    """A procedure with its parameters."""

    procedure: str
    parameters: list[Parameter]


@dataclass(frozen=True)
class Query:
    """A statement with what it was given, as tests ask for it."""

    text: str
    declared: str = ""
    """The types of the parameters, in the words of the server."""
    values: tuple[Any, ...] = ()


class Reader:
    """Bytes, from the front."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0

    @property
    def left(self) -> int:
        return len(self._content) - self._place

    def take(self, size: int) -> bytes:
        part = self._content[self._place : self._place + size]
        assert len(part) == size, "the client's message ends early"
        self._place += size
        return part

    def number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def short_text(self) -> str:
        return self.take(self.number(1) * 2).decode("utf-16-le")


def without_headers(content: bytes) -> Reader:
    """The message behind what says to which transaction it belongs."""
    reader = Reader(content)
    reader.take(reader.number(4) - 4)
    return reader


def read_call(content: bytes) -> Call:
    """The first call of a message; clients of ours never send several."""
    reader = without_headers(content)
    length = reader.number(2)
    name = _NAMES[reader.number(2)] if length == _BY_NUMBER else reader.take(length * 2).decode("utf-16-le")
    reader.take(2)
    parameters = []
    while reader.left:
        parameter = reader.short_text()
        status = reader.number(1)
        parameters.append(Parameter(parameter, bool(status & 1), _value(reader)))
    return Call(name, parameters)


def _value(reader: Reader) -> Any:
    kind = reader.number(1)
    match kind:
        case 0x26:  # integers
            reader.take(1)
            size = reader.number(1)
            return reader.number(size, signed=size > 1) if size else None
        case 0x68:  # bit
            reader.take(1)
            return bool(reader.number(1)) if reader.number(1) else None
        case 0x6D:  # floats
            reader.take(1)
            size = reader.number(1)
            return struct.unpack("<d" if size == 8 else "<f", reader.take(size))[0] if size else None
        case 0x2A:  # datetime2
            reader.take(1)
            return _moment(reader)
        case 0xE7 | 0xEF | 0xA7 | 0xAF:  # text, as Unicode or not
            largest = reader.number(2)
            reader.take(5)
            data = _in_pieces(reader) if largest == _LONG else _sized(reader)
            return None if data is None else data.decode("utf-16-le" if kind & 0x40 else "cp1252")
        case 0xA5:  # bytes
            return _in_pieces(reader) if reader.number(2) == _LONG else _sized(reader)
        case _:
            raise AssertionError(f"the double does not read parameters of type {kind:#x}")


def _sized(reader: Reader) -> bytes | None:
    size = reader.number(2)
    return None if size == _LONG else reader.take(size)


def _in_pieces(reader: Reader) -> bytes | None:
    if reader.number(8) == 0xFFFFFFFFFFFFFFFF:
        return None
    data = bytearray()
    while size := reader.number(4):
        data += reader.take(size)
    return bytes(data)


def _moment(reader: Reader) -> datetime | None:
    size = reader.number(1)
    if not size:
        return None
    # Of scale 5 to 7, the time has five bytes; the drivers send scale 6 or 7.
    raw = reader.take(size)
    ticks, days = int.from_bytes(raw[:5], "little"), int.from_bytes(raw[5:], "little")
    moment = datetime.combine(date.fromordinal(_EPOCH + days), time())
    return moment + timedelta(microseconds=ticks // 10 if ticks > 86_400_000_000 else ticks)
