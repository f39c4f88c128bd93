"""TDS messages in packets, over a plain connection or over TLS."""

from __future__ import annotations

import select
import ssl
import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket

_HEADER = struct.Struct(">BBHHBB")
_END_OF_MESSAGE = 1


class PacketType(IntEnum):
    BATCH = 1
    RPC = 3
    REPLY = 4
    ATTENTION = 6
    TRANSACTION = 14
    LOGIN = 16
    PRELOGIN = 18


class HungUp(Exception):
    """The client has gone."""


class Stream(Protocol):
    """Bytes both ways."""

    def receive(self, size: int) -> bytes: ...

    def send(self, data: bytes) -> None: ...

    def has_news(self, seconds: float) -> bool: ...


class PlainStream:
    """As they are."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._connection.recv(size - len(data))
            if not part:
                raise HungUp
            data += part
        return bytes(data)

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def has_news(self, seconds: float) -> bool:
        return bool(select.select([self._connection], [], [], seconds)[0])


class TlsStream:
    """Encrypted; the handshake travels in packets of the message that comes before the login."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        plain = PlainStream(connection)
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                if answer := self._outgoing.read():
                    write_message(plain, PacketType.PRELOGIN, answer)
                self._incoming.write(read_message(plain)[1])
            else:
                break
        if answer := self._outgoing.read():
            write_message(plain, PacketType.PRELOGIN, answer)

    def receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._tls.read(size - len(data))
            except ssl.SSLWantReadError:
                encrypted = self._connection.recv(65_536)
                if not encrypted:
                    raise HungUp from None
                self._incoming.write(encrypted)
            else:
                if not part:
                    raise HungUp
                data += part
        return bytes(data)

    def send(self, data: bytes) -> None:
        self._tls.write(data)
        self._connection.sendall(self._outgoing.read())

    def has_news(self, seconds: float) -> bool:
        return bool(self._incoming.pending) or bool(select.select([self._connection], [], [], seconds)[0])


def read_message(stream: Stream) -> tuple[int, bytes]:
    """The next message: its type and all that its packets hold."""
    content = bytearray()
    while True:
        kind, status, size, *_ = _HEADER.unpack(stream.receive(_HEADER.size))
        content += stream.receive(size - _HEADER.size)
        if status & _END_OF_MESSAGE:
            return kind, bytes(content)


class MessageWriter:
    """One message under way, sent packet by packet as they fill up."""

    def __init__(self, stream: Stream, kind: PacketType, packet_size: int, *, ragged: bool = False) -> None:
        self._stream = stream
        self._kind = kind
        self._largest = self._room = packet_size - _HEADER.size
        self._ragged = ragged
        self._waiting = bytearray()
        self._number = 0

    def write(self, data: bytes) -> None:
        self._waiting += data
        while len(self._waiting) > self._room:
            self._send(self._waiting[: self._room], last=False)
            del self._waiting[: self._room]
            if self._ragged:
                self._room = self._room * 7 % 97 + 1

    def flush(self) -> None:
        """Send what there is in a packet that is not full, as servers may."""
        if self._waiting:
            self._send(self._waiting, last=False)
            self._waiting.clear()

    def end(self) -> None:
        self._send(self._waiting, last=True)
        self._waiting.clear()

    def _send(self, content: bytes | bytearray, *, last: bool) -> None:
        self._number = self._number % 255 + 1
        status = _END_OF_MESSAGE if last else 0
        header = _HEADER.pack(self._kind, status, len(content) + _HEADER.size, 0, self._number, 0)
        self._stream.send(header + bytes(content))


def write_message(stream: Stream, kind: PacketType, content: bytes, packet_size: int = 4096) -> None:
    writer = MessageWriter(stream, kind, packet_size)
    writer.write(content)
    writer.end()
