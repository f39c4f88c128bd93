"""A TDS server of our own, in plain Python: enough of SQL Server's protocol for real clients to sign in and ask.

What it answers to a query is a list of steps; a test gives them, by the query's text or with a function.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from tests.doubles.tds import tokens
from tests.doubles.tds.login import Login, prelogin_options, prelogin_reply, read_login
from tests.doubles.tds.packets import HungUp, MessageWriter, PacketType, PlainStream, Stream, TlsStream, read_message

if TYPE_CHECKING:
    from tests.doubles.tds.types import Column

_ENCRYPTED, _NOT_SUPPORTED, _REQUIRED = 1, 2, 3


@dataclass(frozen=True)
class Rows:
    """A result."""

    columns: Sequence[Column]
    rows: Iterable[Sequence[Any] | Step] = ()
    """Rows, and among them what else is to happen there."""
    compressed: bool = False


@dataclass(frozen=True)
class Failure:
    """An error of the server."""

    number: int
    text: str
    severity: int = 16


@dataclass(frozen=True)
class Hold:
    """Nothing, until the event is set; the rest waits, but what is ready is sent."""

    until: Event


class Break:
    """The connection ends here."""


class Stop:
    """The reply ends here, as if all had been said."""


Step = Rows | Failure | Hold | Break | Stop
Answer = Callable[[str], Sequence[Step]]


class Stopped(Exception):
    """Nothing is added to the reply."""


class Interrupted(Exception):
    """The client has had enough."""


@dataclass
class TdsDouble:
    """One server on a free port of this machine."""

    answers: dict[str, Sequence[Step]] | Answer = field(default_factory=dict)
    token: str | None = "a-good-token"
    """The access token that is accepted; without one, anybody with a user name is."""
    tls: ssl.SSLContext | None = None
    encryption: int | None = None
    """What is said about encryption, when that is not the truth."""
    routes: list[tuple[str, int]] = field(default_factory=list)
    """Where those who sign in are sent first."""
    packet_size: int = 4096
    ragged: bool = False
    """Whether packets of a reply are of all sizes, however much there is to send."""
    logins: list[Login] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    attention: Event = field(default_factory=Event)
    gone: Event = field(default_factory=Event)
    """Set once a client that had signed in has hung up."""

    def __post_init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._acceptor = Thread(target=self._accept)
        self._acceptor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, suppress(HungUp, OSError, ssl.SSLError):
            stream = self._greet(connection)
            if self._sign_in(stream):
                try:
                    while True:
                        self._handle(stream)
                finally:
                    self.gone.set()

    def _greet(self, connection: socket.socket) -> Stream:
        plain = PlainStream(connection)
        _, content = read_message(plain)
        wanted = prelogin_options(content)
        said = self.encryption
        if said is None:
            said = (_REQUIRED if wanted[1][0] == _NOT_SUPPORTED else _ENCRYPTED) if self.tls else _NOT_SUPPORTED
        self._send(plain, prelogin_reply(said, federated=6 in wanted))
        return TlsStream(connection, self.tls) if self.tls else plain

    def _sign_in(self, stream: Stream) -> bool:
        login = read_login(read_message(stream)[1])
        self.logins.append(login)
        accepted = login.token == self.token if self.token is not None else bool(login.user)
        if not accepted:
            refusal = tokens.message_token(18456, "Login failed for user '<token-identified principal>'.", severity=14)
            self._send(stream, refusal + tokens.done_token(tokens.ERROR))
            return False
        route = tokens.route_token(*self.routes.pop(0)) if self.routes else b""
        self._send(
            stream,
            route
            + tokens.login_tokens(
                self.packet_size, signed_in_with_token=login.token is not None, database=login.database or "master"
            ),
        )
        return True

    def _handle(self, stream: Stream) -> None:
        kind, content = read_message(stream)
        match kind:
            case PacketType.BATCH:
                query = content[struct.unpack_from("<I", content)[0] :].decode("utf-16-le")
                self.queries.append(query)
                steps = self.answers(query) if callable(self.answers) else self.answers.get(query)
                self._reply(stream, [Failure(208, f"Invalid object name in {query}.")] if steps is None else steps)
            case PacketType.ATTENTION:
                self.attention.set()
                self._send(stream, tokens.done_token(tokens.ATTENTION))
            case _:
                self._send(stream, tokens.message_token(40510, "not here") + tokens.done_token(tokens.ERROR))

    def _reply(self, stream: Stream, steps: Sequence[Step]) -> None:
        writer = MessageWriter(stream, PacketType.REPLY, self.packet_size, ragged=self.ragged)
        try:
            for place, step in enumerate(steps):
                self._take(stream, writer, step, tokens.MORE if place + 1 < len(steps) else 0)
        except Stopped:
            writer.end()
            return
        except Interrupted:
            read_message(stream)
            self.attention.set()
            writer.write(tokens.done_token(tokens.ATTENTION))
        if not steps:
            writer.write(tokens.done_token())
        writer.end()

    def _take(self, stream: Stream, writer: MessageWriter, step: Step, more: int) -> None:
        match step:
            case Rows():
                self._rows(stream, writer, step, more)
            case Failure():
                writer.write(tokens.message_token(step.number, step.text, severity=step.severity))
                if step.severity > 10:
                    writer.write(tokens.done_token(tokens.ERROR | more))
            case Hold():
                writer.flush()
                while not step.until.is_set():
                    if stream.has_news(0.02):
                        raise Interrupted
            case Stop():
                raise Stopped
            case Break():
                writer.flush()
                raise HungUp

    def _rows(self, stream: Stream, writer: MessageWriter, step: Rows, more: int) -> None:
        writer.write(tokens.columns_token(step.columns))
        count = 0
        row_token = tokens.compressed_row_token if step.compressed else tokens.row_token
        for count, row in enumerate(step.rows, 1):
            if not isinstance(row, Sequence):
                self._take(stream, writer, row, 0)
                continue
            writer.write(row_token(step.columns, row))
            if count % 500 == 0 and stream.has_news(0):
                raise Interrupted
        writer.write(tokens.done_token(tokens.COUNT | more, count))

    def _send(self, stream: Stream, content: bytes) -> None:
        writer = MessageWriter(stream, PacketType.REPLY, 4096)
        writer.write(content)
        writer.end()
