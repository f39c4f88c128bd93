"""AMQP 1.0's types, to and from the wire.

What AMQP tells apart and Python does not is wrapped when it is written: a symbol is no string, an unsigned number no
long. Read back, numbers are plain except where an answer has to carry the very same type again.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Symbol(str):
    """A name out of a fixed set."""

    __slots__ = ()


class UByte(int):
    """Unsigned, 8 bits."""


class UShort(int):
    """Unsigned, 16 bits."""


class UInt(int):
    """Unsigned, 32 bits."""


class ULong(int):
    """Unsigned, 64 bits."""


class Timestamp(int):
    """Milliseconds since 1970."""


class Array(list[Any]):
    """Values of one type, which is written once."""


class Described(NamedTuple):
    """A value with what it means."""

    descriptor: Any
    value: Any


def encode(value: Any) -> bytes:
    """A value on the wire."""
    kind = type(value)
    if value is None:
        return b"\x40"
    if kind is bool:
        return b"\x41" if value else b"\x42"
    written = _WRITERS.get(kind)
    if written is None:
        raise TypeError(f"no AMQP type for {kind.__name__}")
    return written(value)


def described(code: int, value: bytes) -> bytes:
    """An encoded value under a numeric descriptor."""
    return b"\x00\x53" + bytes((code,)) + value


def encode_list(values: Iterable[Any]) -> bytes:
    """A list on the wire."""
    return _compound(0xC0, 0xD0, [encode(value) for value in values])


def decode(data: bytes, at: int = 0) -> tuple[Any, int]:
    """The value that begins at a place, and where it ends."""
    code = data[at]
    return _read(data, at + 1, code)


def decode_all(data: bytes) -> Iterator[tuple[Any, int, int]]:
    """Every value there is, with its beginning and its end."""
    at = 0
    while at < len(data):
        value, end = decode(data, at)
        yield value, at, end
        at = end


def _read(data: bytes, at: int, code: int) -> tuple[Any, int]:
    if code == 0:
        descriptor, at = decode(data, at)
        value, at = decode(data, at)
        return Described(descriptor, value), at
    fixed = _FIXED.get(code)
    if fixed is not None:
        size, read = fixed
        return read(data[at : at + size]), at + size
    width = 1 if code < 0xB0 or 0xC0 <= code < 0xD0 or 0xE0 <= code < 0xF0 else 4
    size = int.from_bytes(data[at : at + width], "big")
    at += width
    end = at + size
    family = code & 0x0F
    if code < 0xC0:
        raw = data[at:end]
        return (raw if family == 0 else raw.decode() if family == 1 else Symbol(raw.decode("ascii"))), end
    count = int.from_bytes(data[at : at + width], "big")
    at += width
    if code >= 0xE0:
        return _read_array(data, at, count), end
    values = []
    for _ in range(count):
        value, at = decode(data, at)
        values.append(value)
    return (dict(zip(values[::2], values[1::2], strict=True)) if family == 1 else values), end


def _read_array(data: bytes, at: int, count: int) -> Array:
    values = Array()
    code = data[at]
    at += 1
    for _ in range(count):
        value, at = _read(data, at, code)
        values.append(value)
    return values


def _unpacked(form: str, kind: Callable[[Any], Any] = lambda value: value) -> tuple[int, Callable[[bytes], Any]]:
    packed = struct.Struct(">" + form)
    return packed.size, lambda raw: kind(packed.unpack(raw)[0])


_FIXED: dict[int, tuple[int, Callable[[bytes], Any]]] = {
    0x40: (0, lambda _: None),
    0x41: (0, lambda _: True),
    0x42: (0, lambda _: False),
    0x43: (0, lambda _: UInt(0)),
    0x44: (0, lambda _: ULong(0)),
    0x45: (0, lambda _: []),
    0x50: _unpacked("B", UByte),
    0x51: _unpacked("b"),
    0x52: _unpacked("B", UInt),
    0x53: _unpacked("B", ULong),
    0x54: _unpacked("b"),
    0x55: _unpacked("b"),
    0x56: _unpacked("?"),
    0x60: _unpacked("H", UShort),
    0x61: _unpacked("h"),
    0x70: _unpacked("I", UInt),
    0x71: _unpacked("i"),
    0x72: _unpacked("f"),
    0x80: _unpacked("Q", ULong),
    0x81: _unpacked("q"),
    0x82: _unpacked("d"),
    0x83: _unpacked("q", Timestamp),
    0x98: (16, lambda raw: UUID(bytes=raw)),
}


def _binary(short: int, raw: bytes) -> bytes:
    if len(raw) < 256:
        return bytes((short, len(raw))) + raw
    return bytes((short + 0x10,)) + struct.pack(">I", len(raw)) + raw


def _compound(short: int, long: int, items: list[bytes]) -> bytes:
    if not items and short == 0xC0:
        return b"\x45"
    body = b"".join(items)
    if len(body) < 255 and len(items) < 256:
        return bytes((short, len(body) + 1, len(items))) + body
    return bytes((long,)) + struct.pack(">II", len(body) + 4, len(items)) + body


def _map(values: dict[Any, Any]) -> bytes:
    return _compound(0xC1, 0xD1, [encode(each) for pair in values.items() for each in pair])


def _array(values: Array) -> bytes:
    """Its elements are all of the type of the first one, written in full width."""
    items = [_WIDE[type(value)](value) for value in values]
    code = items[0][:1] if items else b"\x40"
    body = code + b"".join(item[1:] for item in items)
    return b"\xf0" + struct.pack(">II", len(body) + 4, len(items)) + body


_WIDE: dict[type, Callable[[Any], bytes]] = {
    int: lambda value: b"\x81" + struct.pack(">q", value),
    Timestamp: lambda value: b"\x83" + struct.pack(">q", value),
    UUID: lambda value: b"\x98" + value.bytes,
    Symbol: lambda value: b"\xb3" + struct.pack(">I", len(value)) + value.encode("ascii"),
}
_WRITERS: dict[type, Callable[[Any], bytes]] = {
    **_WIDE,
    Symbol: lambda value: _binary(0xA3, value.encode("ascii")),
    UByte: lambda value: b"\x50" + struct.pack(">B", value),
    UShort: lambda value: b"\x60" + struct.pack(">H", value),
    UInt: lambda value: b"\x70" + struct.pack(">I", value),
    ULong: lambda value: b"\x80" + struct.pack(">Q", value),
    float: lambda value: b"\x82" + struct.pack(">d", value),
    bytes: lambda value: _binary(0xA0, value),
    str: lambda value: _binary(0xA1, value.encode()),
    list: encode_list,
    dict: _map,
    Array: _array,
    Described: lambda value: b"\x00" + encode(value.descriptor) + encode(value.value),
}
