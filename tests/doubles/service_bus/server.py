"""A Service Bus namespace on a loopback port, in a thread of its own, for the real SDK to talk to."""

from __future__ import annotations

import asyncio
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from tests.doubles.service_bus import administration
from tests.doubles.service_bus.broker import MINUTE, Broker, Queue, Rule, Subscription, Topic
from tests.doubles.service_bus.connection import Connection, End, Link
from tests.doubles.service_bus.faults import Faults
from tests.doubles.service_bus.frames import SASL_HEADER
from tests.doubles.service_bus.links import Giving, Managing, SignIn, Taking

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.bus.topology import Topology
    from matoolkit.clock import Clock

T = TypeVar("T")

PREMIUM_LARGEST = 1024 * 1024
STANDARD_LARGEST = 256 * 1024
_TICK = 0.02
_MANAGEMENT = "/$management"


class Namespace:
    """The server. What lies in it outlives being killed, unless it is emptied."""

    def __init__(self, clock: Clock, *, largest_message: int = PREMIUM_LARGEST) -> None:
        self.clock = clock
        self.faults = Faults()
        self.largest_message = largest_message
        self.delay = 0.0
        """Seconds by which each frame is held up."""
        self.broker = Broker(lambda: int(self.clock.now().timestamp() * 1000))
        self.sign_in = SignIn(self.faults)
        self.port = 0
        self.crashes: list[Exception] = []
        self._connections: set[Connection] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = Thread(target=self._run, name="service-bus-double", daemon=True)
        self._started = Event()

    @property
    def connection_string(self) -> str:
        """What a client connects with."""
        keys = "SharedAccessKeyName=test;SharedAccessKey=c2VjcmV0"
        return f"Endpoint=sb://127.0.0.1:{self.port};{keys};UseDevelopmentEmulator=true"

    # For tests -------------------------------------------------------------------------------------------------------

    def start(self) -> Namespace:
        """Listen."""
        self._thread.start()
        self._started.wait()
        self._await(self._listen())
        return self

    def stop(self) -> None:
        """End for good."""
        self.kill()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self.crashes:
            raise self.crashes[0]

    def kill(self) -> None:
        """Be gone at once: connections end without a word, and nobody can connect."""
        self._await(self._vanish())

    def restart(self) -> None:
        """Be there again, on the same port, with everything that was there."""
        self._await(self._listen())

    def call(self, action: Callable[[], T]) -> T:
        """Do something where the server does its work."""

        async def act() -> T:
            return action()

        done: T = self._await(act())
        return done

    def empty(self) -> None:
        """Forget all entities and messages, and what was to go wrong. Links to what comes back go on working."""

        def forget() -> None:
            self.faults.clear()
            self.faults.happened.clear()
            self.broker.topics.clear()
            self.broker.twice = lambda _: False
            self.broker.looked = lambda _: None
            self.broker.accepted = self.broker.handed_out = 0
            self.delay = 0.0
            for link in self._links():
                link.credit = 0

        self.call(forget)

    def ready(self, topic: str, name: str) -> int:
        """How many messages of a subscription are not in anybody's hands."""

        def count() -> int:
            self.broker.tick()
            found = self.broker.subscription(topic, name)
            if found is None:
                return 0
            there, locked = found.queue.counts()
            return there - locked

        return self.call(count)

    def revoke_credit(self) -> None:
        """Let nothing travel ahead to who asked for more messages than there were."""

        def revoke() -> None:
            for link in self._links():
                link.credit = 0

        self.call(revoke)

    def declare(self, topology: Topology) -> None:
        """Make topics and subscriptions, as infrastructure would."""

        def make() -> None:
            for topic in topology.topics:
                made = self.broker.topics.setdefault(topic.name.lower(), Topic(topic.name))
                made.time_to_live = _ms(topic.time_to_live)
                made.duplicate_window = _ms(topic.duplicate_window)
            for each in topology.subscriptions:
                queue = Queue(_ms(each.lock_duration), each.max_delivery_count, Queue(MINUTE))
                rule = Rule("$Default")
                if each.filter is not None:
                    rule = Rule("$Default", "", each.filter.property, each.filter.value)
                self.broker.topics[each.topic.lower()].subscriptions.setdefault(
                    each.name.lower(), Subscription(each.name, queue, {rule.name: rule})
                )

        self.call(make)

    # For connections -------------------------------------------------------------------------------------------------

    def end_of(self, address: str, *, gives: bool) -> End | None:
        """What is at an address; None when nothing is."""
        if address == "$cbs":
            return self.sign_in
        if address.lower().endswith(_MANAGEMENT):
            path = address[: -len(_MANAGEMENT)]
            known = self.broker.queue(path) or self.broker.topic(path)
            return None if known is None else Managing(self.broker, path, self.faults)
        if gives:
            return None if self.broker.queue(address) is None else Giving(self.broker, address, self.faults)
        if self.broker.topic(address) is None:
            return None
        return Taking(self.broker, address, self.faults, self.largest_message)

    def pump(self) -> None:
        """Hand out what can be handed out."""
        self.broker.tick()
        for link in self._links():
            if isinstance(link.end, Giving):
                link.end.pump(link)

    # -----------------------------------------------------------------------------------------------------------------

    def _links(self) -> list[Link]:
        """Those on which messages are handed out."""
        return [
            link
            for connection in self._connections
            for session in connection.sessions.values()
            for link in session.links.values()
            if isinstance(link.end, Giving)
        ]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._started.set)
        self._loop.run_forever()

    def _await(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]
        self._ticking = asyncio.ensure_future(self._tick())

    async def _vanish(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._server = None
        self._ticking.cancel()
        for writer in self._writers:
            writer.transport.abort()
        while self._writers:  # noqa: ASYNC110 - each ends by itself in the next rounds of the loop
            await asyncio.sleep(0)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self.pump()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            first = await reader.readexactly(len(SASL_HEADER))
            if first == SASL_HEADER:
                await self._speak(Connection(self, reader, writer))
            else:
                await administration.serve(self.broker, self.faults, first, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except Exception as crash:  # noqa: BLE001 - a fault of the double, which whoever stops it is told
            self.crashes.append(crash)
        finally:
            writer.close()
            self._writers.discard(writer)

    async def _speak(self, connection: Connection) -> None:
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)


def _ms(length: Any) -> int:
    return int(length.total_seconds() * 1000)
