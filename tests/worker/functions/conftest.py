"""One tenant for all tests of the functions; each uses names of its own and leaves nothing wrong behind."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from matoolkit.simulation.tenant import Api, Application, SimulatedTenant, make_client_certificate
from tests.worker.hands import CLIENT_ID, CLIENT_SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.simulation.tenant import ClientCertificate

_numbers = count(1)


@pytest.fixture(scope="session")
def certificate() -> ClientCertificate:
    return make_client_certificate()


@pytest.fixture(scope="session")
def running(certificate: ClientCertificate) -> Iterator[SimulatedTenant]:
    with SimulatedTenant(seed=1) as server:
        server.tenant.register(
            Application(client_id=CLIENT_ID, secrets={CLIENT_SECRET}, certificates=[certificate.certificate_pem])
        )
        yield server


@pytest.fixture
def server(running: SimulatedTenant) -> Iterator[SimulatedTenant]:
    running.tenant.records.clear()
    yield running
    running.tenant.faults.clear()
    for api in Api:
        running.tenant.throttle(api, None)
    running.tenant.directory.delay_seconds = 0


@pytest.fixture
def name() -> str:
    """A name nobody else has."""
    return f"person{next(_numbers)}"
