"""A bus on each kind of database, under a clock that moves only when told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.bus.embedded import EmbeddedBus
from matoolkit.clock import ManualClock
from matoolkit.store import bus_schema
from matoolkit.store.database import open_database
from tests.bus.lines import START, TOPOLOGY, Line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matoolkit.store.database import Database


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    on_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'bus.sqlite'}" if on_sqlite else request.getfixturevalue("postgres_url")
    database = open_database(url)
    bus_schema.bus_messages.metadata.create_all(database.engine)
    yield database
    database.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def line(database: Database, clock: ManualClock) -> Iterator[Line]:
    """What the conformance tests run on; another bus is one more way to make it."""
    bus = EmbeddedBus(database, clock)
    with bus.transaction() as tx:
        bus.declare(tx, TOPOLOGY)
    yield Line(bus, clock)
    bus.close()
