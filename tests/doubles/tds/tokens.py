"""The tokens that a server's replies are made of."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from tests.doubles.tds.types import COLLATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.doubles.tds.types import Column

MORE, ERROR, COUNT, ATTENTION = 0x01, 0x02, 0x10, 0x20
PLAIN, OF_PROCEDURE, IN_PROCEDURE = 0xFD, 0xFE, 0xFF
"""What ends: a statement, a procedure, or a statement in a procedure."""
BEGUN, COMMITTED, ROLLED_BACK = 8, 9, 10
_TRANSACTION = bytes(range(1, 9))


def columns_token(columns: Sequence[Column]) -> bytes:
    return b"\x81" + struct.pack("<H", len(columns)) + b"".join(column.metadata() for column in columns)


def row_token(columns: Sequence[Column], row: Sequence[Any]) -> bytes:
    return b"\xd1" + b"".join(column.type.write(value) for column, value in zip(columns, row, strict=True))


def compressed_row_token(columns: Sequence[Column], row: Sequence[Any]) -> bytes:
    """A row that lists its nulls in front."""
    nulls = bytearray((len(columns) + 7) // 8)
    values = bytearray()
    for place, (column, value) in enumerate(zip(columns, row, strict=True)):
        if value is None:
            nulls[place // 8] |= 1 << place % 8
        else:
            values += column.type.write(value)
    return b"\xd2" + bytes(nulls) + bytes(values)


SELECTED, UPDATED = 0xC1, 0xC5


def done_token(status: int = 0, rows: int = 0, kind: int = PLAIN, done: int = SELECTED) -> bytes:
    return bytes([kind]) + struct.pack("<HHQ", status, done, rows)


def message_token(number: int, text: str, *, severity: int = 16, state: int = 1) -> bytes:
    """An error, or a piece of information when it is of little severity."""
    body = struct.pack("<iBBH", number, state, severity, len(text)) + text.encode("utf-16-le")
    body += _short("double") + _short("") + struct.pack("<i", 1)
    return (b"\xaa" if severity > 10 else b"\xab") + struct.pack("<H", len(body)) + body


def login_tokens(packet_size: int, *, signed_in_with_token: bool, database: str) -> bytes:
    name = "Double".encode("utf-16-le")
    acknowledged = b"\x01" + bytes((0x74, 0, 0, 4)) + bytes([len(name) // 2]) + name + bytes((16, 0, 0, 0))
    feature = b"\x02" + struct.pack("<I", 0) if signed_in_with_token else b""
    return (
        _change(1, database, "master")
        + _change(4, str(packet_size), "4096")
        + _collation()
        + b"\xad"
        + struct.pack("<H", len(acknowledged))
        + acknowledged
        + (b"\xae" + feature + b"\xff" if feature else b"")
        + done_token()
    )


def transaction_token(what: int) -> bytes:
    """A transaction has begun, or is over."""
    number = bytes([len(_TRANSACTION)]) + _TRANSACTION
    body = bytes([what]) + (number + b"\x00" if what == BEGUN else b"\x00" + number)
    return b"\xe3" + struct.pack("<H", len(body)) + body


def status_token() -> bytes:
    """What a procedure returns."""
    return b"\x79" + struct.pack("<i", 0)


def handle_token(handle: int) -> bytes:
    """By what a prepared statement is called from now on."""
    name = _short("@handle")
    return (
        b"\xac"
        + struct.pack("<H", 0)
        + name
        + b"\x01"
        + struct.pack("<IH", 0, 0)
        + b"\x26\x04\x04"
        + struct.pack("<i", handle)
    )


def route_token(host: str, port: int) -> bytes:
    """Go there instead."""
    value = b"\x00" + struct.pack("<HH", port, len(host)) + host.encode("utf-16-le")
    body = b"\x14" + struct.pack("<H", len(value)) + value + struct.pack("<H", 0)
    return b"\xe3" + struct.pack("<H", len(body)) + body


def _change(kind: int, new: str, old: str) -> bytes:
    body = bytes([kind]) + _short(new) + _short(old)
    return b"\xe3" + struct.pack("<H", len(body)) + body


def _collation() -> bytes:
    """How this database compares text; some clients insist on being told."""
    body = b"\x07" + bytes([len(COLLATION)]) + COLLATION + b"\x00"
    return b"\xe3" + struct.pack("<H", len(body)) + body


def _short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode("utf-16-le")
