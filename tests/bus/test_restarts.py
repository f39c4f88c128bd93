"""A PostgreSQL server that goes away, and a bus that is still there afterwards."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from devtools.postgres import PostgresServer
from matoolkit.bus.embedded import EmbeddedBus
from matoolkit.bus.port import Outgoing
from matoolkit.bus.signals import Outcome
from matoolkit.store import bus_schema
from matoolkit.store.database import open_database
from matoolkit.store.errors import DatabaseUnavailable
from tests.bus.lines import EVENTS, TOPOLOGY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database

AT_ONCE = 5.0


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def opened(server: PostgresServer) -> tuple[Database, EmbeddedBus]:
    database = open_database(server.url())
    return database, EmbeddedBus(database)


@pytest.fixture
def waiting_bus(server: PostgresServer) -> Iterator[EmbeddedBus]:
    database, bus = opened(server)
    bus_schema.bus_messages.metadata.create_all(database.engine)
    with bus.transaction() as tx:
        bus.declare(tx, TOPOLOGY)
    yield bus
    bus.close()
    database.close()


class Heard(logging.Handler):
    """Knows when the listener has noticed that its connection is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.noticed = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.noticed.set()


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler = Heard()
    logger = logging.getLogger("matoolkit.bus.listening")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@contextmanager
def asleep(bus: EmbeddedBus) -> Iterator[Future[bool]]:
    """A wait for events, by a process whose listener listens."""
    noted = bus._signals.noted()._replace(everything=0)
    with ThreadPoolExecutor(1) as threads:
        try:
            woken = threads.submit(bus.wait, [EVENTS], 60)
            assert bus._signals.wait([], noted, AT_ONCE) is Outcome.SIGNALLED
            yield woken
        finally:
            bus.wake()


def publish_from_elsewhere(server: PostgresServer) -> None:
    database, bus = opened(server)
    with bus.transaction() as tx:
        bus.publish(tx, EVENTS.topic, [Outgoing("a")])
    database.close()


@pytest.mark.parametrize("fault", ["restart", "terminate"])
def test_who_waits_through_a_crash_is_woken_afterwards(
    server: PostgresServer, waiting_bus: EmbeddedBus, heard: Heard, fault: str
) -> None:
    with asleep(waiting_bus) as woken:
        for _ in range(2):
            heard.noticed.clear()
            noted = waiting_bus._signals.noted()
            if fault == "restart":
                server.stop("immediate")
                assert heard.noticed.wait(AT_ONCE)
                server.start()
            else:
                server.terminate_backends()
                assert heard.noticed.wait(AT_ONCE)
            assert waiting_bus._signals.wait([], noted, AT_ONCE) is Outcome.SIGNALLED, "it listens again"
            assert not woken.done()
        publish_from_elsewhere(server)
        assert woken.result(AT_ONCE)


def test_what_was_announced_while_nobody_heard_it_is_found(
    server: PostgresServer, waiting_bus: EmbeddedBus, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not waiting_bus.wait([EVENTS], 0.2)
    listener = waiting_bus._waiting._listener
    assert listener is not None
    connect, published = listener._connected, threading.Event()

    def connect_when_published() -> object:
        assert published.wait(60)
        return connect()

    monkeypatch.setattr(listener, "_connected", connect_when_published)
    with asleep(waiting_bus) as woken:
        server.terminate_backends()
        assert heard.noticed.wait(AT_ONCE)
        publish_from_elsewhere(server)
        published.set()
        assert woken.result(AT_ONCE)


def test_waiting_without_a_server_ends_with_the_time_and_receiving_says_why(
    server: PostgresServer, waiting_bus: EmbeddedBus
) -> None:
    server.stop("immediate")
    assert not waiting_bus.wait([EVENTS], 0.7)
    with pytest.raises(DatabaseUnavailable) as error, waiting_bus.transaction() as tx:
        waiting_bus.receive(tx, EVENTS, 1)
    assert error.value.retryable
    waiting_bus.close()


def test_what_was_committed_survives_the_crash_and_a_lost_commit_loses_nothing(
    server: PostgresServer, waiting_bus: EmbeddedBus
) -> None:
    with waiting_bus.transaction() as tx:
        waiting_bus.publish(tx, EVENTS.topic, [Outgoing("a"), Outgoing("b")])

    def complete_into_the_crash() -> None:
        with waiting_bus.transaction() as tx:
            waiting_bus.complete(tx, waiting_bus.receive(tx, EVENTS, 1))
            server.restart("immediate")

    with pytest.raises(DatabaseUnavailable):
        complete_into_the_crash()
    with waiting_bus.transaction() as tx:
        assert [message.body for message in waiting_bus.receive(tx, EVENTS, 10)] == ["a", "b"]
