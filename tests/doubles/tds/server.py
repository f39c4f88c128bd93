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
from tests.doubles.tds.requests import Call, Query, read_call, without_headers

if TYPE_CHECKING:
    from tests.doubles.tds.types import Column

_BEGIN = 5
_ENCRYPTED, _NOT_SUPPORTED, _REQUIRED = 1, 2, 3


@dataclass(frozen=True)
class Rows:
    """A result."""

    columns: Sequence[Column]
    rows: Iterable[Sequence[Any] | Step] = ()
    """Rows, and among them what else is to happen there."""
    compressed: bool = False


@dataclass(frozen=True)
class Changed:
    """So many rows were changed."""

    rows: int


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


Step = Rows | Changed | Failure | Hold | Break | Stop
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
    refusals: list[Failure] = field(default_factory=list)
    """What the next who sign in are told, one after another."""
    routes: list[tuple[str, int]] = field(default_factory=list)
    """Where those who sign in are sent first."""
    packet_size: int = 4096
    ragged: bool = False
    """Whether packets of a reply are of all sizes, however much there is to send."""
    logins: list[Login] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    calls: list[Query] = field(default_factory=list)
    """Statements with parameters, which are among `queries` as well; and `BEGIN`, `COMMIT` and `ROLLBACK`."""
    attention: Event = field(default_factory=Event)
    gone: Event = field(default_factory=Event)
    """Set once a client that had signed in has hung up."""

    def __post_init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._prepared: dict[int, Query] = {}
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
        if self.refusals:
            told = self.refusals.pop(0)
            self._send(
                stream,
                tokens.message_token(told.number, told.text, severity=told.severity) + tokens.done_token(tokens.ERROR),
            )
            return False
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
                self._reply(stream, self._answer(Query(query)))
            case PacketType.ATTENTION:
                self.attention.set()
                self._send(stream, tokens.done_token(tokens.ATTENTION))
            case PacketType.RPC:
                self._call(stream, read_call(content))
            case PacketType.TRANSACTION:
                self._transaction(stream, content)
            case _:
                self._send(stream, tokens.message_token(40510, "not here") + tokens.done_token(tokens.ERROR))

    def _answer(self, query: Query) -> Sequence[Step]:
        self.queries.append(query.text)
        self.calls.append(query)
        steps = self.answers(query.text) if callable(self.answers) else self.answers.get(query.text)
        return [Failure(208, f"Invalid object name in {query.text}.")] if steps is None else steps

    def _transaction(self, stream: Stream, content: bytes) -> None:
        reader = without_headers(content)
        kind = reader.number(2)
        name, told = {5: ("BEGIN", tokens.BEGUN), 7: ("COMMIT", tokens.COMMITTED), 8: ("ROLLBACK", tokens.ROLLED_BACK)}[
            kind
        ]
        self.calls.append(Query(name))
        steps = self.answers(name) if callable(self.answers) else None
        failure = next((step for step in steps or () if isinstance(step, Failure | Break)), None)
        if isinstance(failure, Break):
            raise HungUp
        if isinstance(failure, Failure):
            self._send(stream, tokens.message_token(failure.number, failure.text) + tokens.done_token(tokens.ERROR))
            return
        # Whoever ends one may ask for the next in the same breath.
        next_one = kind != _BEGIN and reader.take(reader.number(1) * 2) is not None and reader.number(1) & 1
        begun = tokens.transaction_token(tokens.BEGUN) if next_one else b""
        self._send(stream, tokens.transaction_token(told) + begun + tokens.done_token())

    def _call(self, stream: Stream, call: Call) -> None:
        """A statement with parameters, however the client has it run."""
        values = [each.value for each in call.parameters]
        match call.procedure:
            case "sp_prepexec":
                query = Query(values[2], (values[1] or "").strip(), tuple(values[3:]))
                handle = len(self._prepared) + 1
                self._prepared[handle] = query
                self._reply(stream, self._answer(query), tokens.handle_token(handle))
            case "sp_execute":
                kept = self._prepared[values[0]]
                self._reply(stream, self._answer(Query(kept.text, kept.declared, tuple(values[1:]))), b"")
            case "sp_executesql":
                self._reply(stream, self._answer(Query(values[0], (values[1] or "").strip(), tuple(values[2:]))), b"")
            case "sp_unprepare":
                self._reply(stream, [], b"")
            case other:
                self._reply(stream, [Failure(2812, f"Could not find stored procedure '{other}'.")], b"")

    def _reply(self, stream: Stream, steps: Sequence[Step], at_the_end: bytes | None = None) -> None:
        """Answer; `at_the_end` is what a procedure gives back besides."""
        writer = MessageWriter(stream, PacketType.REPLY, self.packet_size, ragged=self.ragged)
        try:
            for place, step in enumerate(steps):
                last = place + 1 == len(steps) and at_the_end is None
                kind = tokens.PLAIN if at_the_end is None else tokens.IN_PROCEDURE
                self._take(stream, writer, step, 0 if last else tokens.MORE, kind)
        except Stopped:
            writer.end()
            return
        except Interrupted:
            read_message(stream)
            self.attention.set()
            writer.write(tokens.done_token(tokens.ATTENTION))
            writer.end()
            return
        if at_the_end is not None:
            failed = tokens.ERROR if any(isinstance(step, Failure) for step in steps) else 0
            writer.write(tokens.status_token() + (b"" if failed else at_the_end))
            writer.write(tokens.done_token(failed, kind=tokens.OF_PROCEDURE))
        elif not steps:
            writer.write(tokens.done_token())
        writer.end()

    def _take(self, stream: Stream, writer: MessageWriter, step: Step, more: int, kind: int = tokens.PLAIN) -> None:
        match step:
            case Rows():
                self._rows(stream, writer, step, more, kind)
            case Changed():
                writer.write(tokens.done_token(tokens.COUNT | more, step.rows, kind, tokens.UPDATED))
            case Failure():
                writer.write(tokens.message_token(step.number, step.text, severity=step.severity))
                if step.severity > 10:
                    writer.write(tokens.done_token(tokens.ERROR | more, kind=kind))
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

    def _rows(self, stream: Stream, writer: MessageWriter, step: Rows, more: int, kind: int) -> None:
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
        writer.write(tokens.done_token(tokens.COUNT | more, count, kind))

    def _send(self, stream: Stream, content: bytes) -> None:
        writer = MessageWriter(stream, PacketType.REPLY, 4096)
        writer.write(content)
        writer.end()
