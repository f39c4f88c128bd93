"""One tenant for the tests of a process: each uses names of its own and leaves nothing wrong behind."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from matoolkit.simulation.tenant import Api, Application, SimulatedTenant
from tests.simulation.tenant.client import CLIENT_ID, SECRET, Client

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = count(1)


@pytest.fixture(scope="session")
def running() -> Iterator[SimulatedTenant]:
    """A tenant that runs as long as the tests do."""
    with SimulatedTenant(seed=1) as server:
        server.tenant.register(Application(client_id=CLIENT_ID, secrets={SECRET}))
        yield server


@pytest.fixture
def server(running: SimulatedTenant) -> Iterator[SimulatedTenant]:
    """The tenant with nothing going wrong and nothing recorded."""
    running.tenant.records.clear()
    yield running
    running.tenant.faults.clear()
    for api in Api:
        running.tenant.throttle(api, None)
    running.tenant.directory.delay_seconds = 0


@pytest.fixture
def client(server: SimulatedTenant) -> Iterator[Client]:
    """A client that may do everything."""
    with Client(server) as client:
        yield client


@pytest.fixture
def name() -> str:
    """A name nobody else has."""
    return f"person{next(_numbers)}"
