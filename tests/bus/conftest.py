"""A bus on each kind of database, under a clock that moves only when told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.bus.embedded import EmbeddedBus
from matoolkit.clock import ManualClock
from matoolkit.store import bus_schema
from matoolkit.store.database import open_database
from tests.bus.lines import START, TOPOLOGY, Line
from tests.bus.service_bus_line import ServiceBusLine, Shared, broken_sockets_closed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matoolkit.store.database import Database


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Database]:
    yield from opened(f"sqlite:///{tmp_path / 'bus.sqlite'}")


@pytest.fixture
def postgresql_store(postgres_url: str) -> Iterator[Database]:
    yield from opened(postgres_url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_store")
    return found


def opened(url: str) -> Iterator[Database]:
    database = open_database(url)
    bus_schema.bus_messages.metadata.create_all(database.engine)
    yield database
    database.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture(scope="session")
def namespace() -> Iterator[Shared]:
    """A Service Bus double and open links to it, for all tests of this process."""
    with broken_sockets_closed():
        shared = Shared(ManualClock(START))
        yield shared
        shared.close()


@pytest.fixture(params=["sqlite", "postgresql", "service bus"])
def line(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Line]:
    """What the conformance tests run on; another bus is one more way to make it."""
    made: Line
    if request.param == "service bus":
        shared: Shared = request.getfixturevalue("namespace")
        made = ServiceBusLine(shared.bus(clock), clock, namespace=shared.namespace)
    else:
        made = Line(EmbeddedBus(request.getfixturevalue(f"{request.param}_store"), clock), clock)
    with made.bus.transaction() as tx:
        made.bus.declare(tx, TOPOLOGY)
    yield made
    made.bus.close()
