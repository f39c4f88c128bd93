"""Service Bus for a process: what it makes at its start, what it sends without threads, and where it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.bus import Names, Outgoing
from matoolkit.bus.service_bus.bus import ServiceBus
from matoolkit.clock import SystemClock
from matoolkit.hosts import service_bus
from matoolkit.hosts.service_bus import RelayedBus, ServiceBusAddress, TwoNamespaces
from matoolkit.settings import Secret
from tests.bus.service_bus_line import broken_sockets_closed, links_to
from tests.doubles.service_bus.faults import Fault
from tests.doubles.service_bus.server import Namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.bus.outbox import Outbox
    from matoolkit.bus.service_bus import ServiceBusSettings
    from matoolkit.clock import Clock
    from matoolkit.store.database import Database

NAMES = Names()


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    with broken_sockets_closed():
        namespace = Namespace(SystemClock()).start()
        yield namespace
        namespace.stop()


@pytest.fixture
def relayed(namespace: Namespace, sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[RelayedBus]:
    def opened(settings: ServiceBusSettings, clock: Clock, outbox: Outbox) -> ServiceBus:
        return ServiceBus(links_to(namespace, known=settings.known), clock, outbox)

    monkeypatch.setattr(service_bus, "open_service_bus", opened)
    address = ServiceBusAddress(connection_string=Secret(namespace.connection_string))
    found = RelayedBus(address, sqlite_database, SystemClock(), NAMES, ["worker-01"])
    yield found
    found.close()


def publish(relayed: RelayedBus, database: Database, *bodies: str) -> None:
    with database.transaction() as tx:
        relayed.bus.publish(tx, NAMES.jobs, [Outgoing(each, {"WorkerId": "worker-01"}) for each in bodies])


def test_with_the_right_to_it_makes_what_is_not_there(relayed: RelayedBus, namespace: Namespace) -> None:
    relayed.declare()
    assert sorted(namespace.broker.topics) == sorted([NAMES.events, NAMES.jobs, NAMES.results])
    worker = namespace.broker.subscription(NAMES.jobs, "worker-worker-01")
    assert worker is not None
    assert [rule.value for rule in worker.rules.values()] == ["worker-01"]


def test_a_namespace_that_is_away_keeps_nobody_from_starting(
    relayed: RelayedBus, namespace: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    namespace.kill()
    relayed.declare()
    assert "topics and subscriptions are not looked at" in caplog.text


def test_without_threads_everything_is_sent_that_can_be(
    relayed: RelayedBus, namespace: Namespace, sqlite_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    relayed.declare()
    publish(relayed, sqlite_database, *map(str, range(700)))
    relayed.send()
    assert namespace.ready(NAMES.jobs, "worker-worker-01") == 700
    namespace.faults.plan(Fault.SERVER_BUSY, 10)
    publish(relayed, sqlite_database, "later")
    relayed.send()
    assert "what was published is sent later" in caplog.text
    assert relayed.relay.lag().waiting == 1


def test_it_is_in_one_place() -> None:
    with pytest.raises(TwoNamespaces, match="SERVICE_BUS_CONNECTION_STRING cannot be set beside a namespace"):
        ServiceBusAddress("contoso", Secret("Endpoint=sb://x"))
    assert not ServiceBusAddress()
    assert ServiceBusAddress("contoso").settings(NAMES, ()).host == "contoso.servicebus.windows.net"
