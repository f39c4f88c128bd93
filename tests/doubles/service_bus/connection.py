"""One client's connection: signing in, sessions, links, and what travels on them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.doubles.service_bus.encoding import Array, Described, Symbol, UByte, UInt, ULong, UShort
from tests.doubles.service_bus.frames import (
    AMQP_HEADER,
    LARGEST_FRAME,
    SASL_HEADER,
    Code,
    Frame,
    error,
    framed,
    read_frame,
)
from tests.doubles.service_bus.links import Detach, Drop, Giving, Managing, SignIn, Taking

if TYPE_CHECKING:
    from tests.doubles.service_bus.server import Namespace

End = Taking | Giving | SignIn | Managing
_WINDOW = UInt(2**31 - 1)
_CREDIT = 1000
_OVERHEAD = 512
SENDER, RECEIVER = False, True


class Link:
    """One link: its end, and how many messages the client has asked for."""

    def __init__(self, session: Session, handle: int, address: str, end: End, *, gives: bool) -> None:
        self.session = session
        self.handle = handle
        self.address = address
        self.end = end
        self.gives = gives
        self.credit = 0
        self.count = 0
        self.incoming = bytearray()
        self.delivery: tuple[int, int] = (0, 0)
        """Id and format of the message that is coming in."""

    def deliver(self, payload: bytes, tag: bytes, *, settled: bool) -> int | None:
        """Send a message, in as many frames as it takes."""
        if self.credit <= 0:
            return None
        delivery = self.session.next_delivery
        self.session.next_delivery += 1
        self.credit -= 1
        self.count += 1
        size = self.session.connection.largest_frame - _OVERHEAD
        for at in range(0, len(payload) or 1, size):
            more = at + size < len(payload)
            fields = [UInt(self.handle), UInt(delivery), tag, UInt(0), settled, more]
            self.session.send(Code.TRANSFER, fields, payload[at : at + size])
        return delivery


class Session:
    """A session: links by handle."""

    def __init__(self, connection: Connection, channel: int) -> None:
        self.connection = connection
        self.channel = channel
        self.links: dict[int, Link] = {}
        self.next_delivery = 0
        self.received = 0

    def send(self, code: Code, fields: list[Any], payload: bytes = b"") -> None:
        """Send a frame."""
        self.connection.send(self.channel, code, fields, payload)

    def attach(self, frame: Frame) -> None:
        """Begin a link, if what it is about is there."""
        name, handle, role, send_mode, receive_mode, source, target = (*frame.fields, *[None] * 7)[:7]
        terminus = source if role == RECEIVER else target
        address = _path(terminus.value[0])
        end = self.connection.namespace.end_of(address, gives=role == RECEIVER)
        fields: list[Any] = [name, UInt(handle), not role, send_mode, receive_mode]
        if end is None:
            self.send(Code.ATTACH, [*fields, None, None, None, None, UInt(0) if role else None])
            missing = error("amqp:not-found", f"The messaging entity '{address}' could not be found.")
            self.send(Code.DETACH, [UInt(handle), True, missing])
            return
        count = UInt(0) if role == RECEIVER else None
        largest = ULong(self.connection.namespace.largest_message)
        self.send(Code.ATTACH, [*fields, source, target, None, None, count, largest])
        link = self.links[handle] = Link(self, handle, address, end, gives=role == RECEIVER)
        if not link.gives:
            self._grant(link)

    def flow(self, frame: Frame) -> None:
        """The client asks for messages on a link."""
        link = self.links.get(frame.field(4))
        if link is None or not link.gives:
            return
        link.credit = max(0, (frame.field(5) or 0) + (frame.field(6) or 0) - link.count)
        if isinstance(link.end, Giving):
            if link.credit:
                link.end.flowed()
            self.connection.namespace.pump()
        if frame.field(8):
            link.count += link.credit
            link.credit = 0
            self.send(Code.FLOW, [*self._window(), UInt(link.handle), UInt(link.count), UInt(0), None, True])

    def transfer(self, frame: Frame) -> None:
        """Part of a message, or all of it."""
        self.received += 1
        link = self.links.get(frame.field(0))
        if link is None:
            return
        if frame.field(1) is not None and not link.incoming:
            link.delivery = (frame.field(1), frame.field(3) or 0)
        link.incoming += frame.payload
        if frame.field(5):
            return
        payload, link.incoming = bytes(link.incoming), bytearray()
        delivery, message_format = link.delivery
        link.count += 1
        state: Described | None = None
        if isinstance(link.end, Taking):
            state = link.end.take(payload, message_format)
        elif isinstance(link.end, SignIn | Managing):
            self._answer(link, payload)
        if not frame.field(4):
            self.send(Code.DISPOSITION, [RECEIVER, UInt(delivery), UInt(delivery), True, state or _ACCEPTED])
        if link.count % (_CREDIT // 2) == 0:
            self._grant(link)
        self.connection.namespace.pump()

    def settle(self, frame: Frame) -> None:
        """The client says what became of messages it was sent."""
        role, first, last, settled, state = (*frame.fields, *[None] * 5)[:5]
        if role != RECEIVER:
            return
        for delivery in range(first, (first if last is None else last) + 1):
            link = self.receiving()
            if link is None:
                return
            assert isinstance(link.end, Giving)
            answer = link.end.settle(delivery, state)
            if not settled:
                self.send(Code.DISPOSITION, [SENDER, UInt(delivery), UInt(delivery), True, answer])
        self.connection.namespace.pump()

    def detach(self, frame: Frame) -> None:
        """The client ends a link."""
        if self.links.pop(frame.field(0), None) is not None:
            self.send(Code.DETACH, [UInt(frame.field(0)), bool(frame.field(1))])

    def force_detach(self, link: Link, reason: Detach) -> None:
        """End a link."""
        del self.links[link.handle]
        self.send(Code.DETACH, [UInt(link.handle), True, error(reason.condition, str(reason))])

    def receiving(self) -> Link | None:
        """The link messages are handed out on; the client opens one for each session."""
        return next((link for link in self.links.values() if isinstance(link.end, Giving)), None)

    def _answer(self, link: Link, payload: bytes) -> None:
        assert isinstance(link.end, SignIn | Managing)
        answer = link.end.answer(payload)
        for each in self.links.values():
            if each.gives and each.address == link.address:
                each.deliver(answer, b"answer", settled=True)
                return

    def _grant(self, link: Link) -> None:
        self.send(Code.FLOW, [*self._window(), UInt(link.handle), UInt(link.count), UInt(_CREDIT)])

    def _window(self) -> list[Any]:
        return [UInt(self.received), _WINDOW, UInt(self.next_delivery), _WINDOW]


_ACCEPTED = Described(ULong(0x24), [])


class Connection:
    """A connection, from its first byte on."""

    def __init__(self, namespace: Namespace, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.namespace = namespace
        self.largest_frame = LARGEST_FRAME
        self.sessions: dict[int, Session] = {}
        self._reader = reader
        self._writer = writer

    async def run(self) -> None:
        """Serve until one side ends it."""
        await self._sign_in()
        await self._reader.readexactly(len(AMQP_HEADER))
        self._writer.write(AMQP_HEADER)
        while True:
            frame = await read_frame(self._reader)
            if frame is None:
                continue
            if frame.code == Code.CLOSE:
                self.send(0, Code.CLOSE, [])
                return
            try:
                self._handle(frame)
            except Drop:
                self.abort()
                return
            await self._writer.drain()
            if self.namespace.delay:
                await asyncio.sleep(self.namespace.delay)

    def send(self, channel: int, code: Code, fields: list[Any], payload: bytes = b"") -> None:
        """Send a frame."""
        self._writer.write(framed(channel, code, fields, payload))

    def abort(self) -> None:
        """End it without a word."""
        self._writer.transport.abort()

    async def _sign_in(self) -> None:
        mechanisms = [Symbol("MSSBCBS"), Symbol("ANONYMOUS"), Symbol("EXTERNAL")]
        self._writer.write(SASL_HEADER)
        self.send(0, Code.SASL_MECHANISMS, [Array(mechanisms)])
        await read_frame(self._reader)
        self.send(0, Code.SASL_OUTCOME, [UByte(0)])

    def _handle(self, frame: Frame) -> None:
        if frame.code == Code.OPEN:
            self.largest_frame = min(frame.field(2) or LARGEST_FRAME, LARGEST_FRAME)
            self.send(0, Code.OPEN, ["double", None, UInt(LARGEST_FRAME), UShort(255), UInt(240_000)])
        elif frame.code == Code.BEGIN:
            self.sessions[frame.channel] = Session(self, frame.channel)
            begin = [UShort(frame.channel), UInt(0), _WINDOW, _WINDOW, UInt(255)]
            self.send(frame.channel, Code.BEGIN, begin)
        elif frame.code == Code.END:
            if self.sessions.pop(frame.channel, None) is not None:
                self.send(frame.channel, Code.END, [])
        elif frame.channel in self.sessions:
            self._on_link(self.sessions[frame.channel], frame)

    def _on_link(self, session: Session, frame: Frame) -> None:
        verb = {
            Code.ATTACH: session.attach,
            Code.FLOW: session.flow,
            Code.TRANSFER: session.transfer,
            Code.DISPOSITION: session.settle,
            Code.DETACH: session.detach,
        }[frame.code]
        try:
            verb(frame)
        except Detach as reason:
            handle = frame.field(4 if frame.code == Code.FLOW else 0)
            link = session.links.get(handle) if frame.code != Code.DISPOSITION else session.receiving()
            if link is not None:
                session.force_detach(link, reason)


def _path(address: str) -> str:
    """What an address is about, without scheme and host."""
    return address.split("://", 1)[-1].split("/", 1)[-1] if "://" in address else address
