"""A line to the Service Bus double: the real SDK over a real socket, with links that all tests share."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.pipeline.transport import RequestsTransport
from azure.servicebus._pyamqp._connection import Connection
from azure.servicebus.management import ServiceBusAdministrationClient

from matoolkit.bus.service_bus import ServiceBusSettings
from matoolkit.bus.service_bus.bus import ServiceBus
from matoolkit.bus.service_bus.links import Links
from tests.bus.lines import Line
from tests.doubles.service_bus.server import Namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.bus.outbox import Outbox
    from matoolkit.bus.port import Received, Subscription
    from matoolkit.bus.topology import Topology
    from matoolkit.clock import Clock


class Plainly(RequestsTransport):  # type: ignore[misc]  # azure-core gives no types for it
    """Speaks to the double's management without TLS."""

    def send(self, request: Any, **more: Any) -> Any:
        request.url = request.url.replace("https://", "http://", 1)
        return super().send(request, **more)


def links_to(namespace: Namespace, *, known: Topology | None = None, **settings: Any) -> Links:
    """Links as quick as a loopback allows."""
    quick = {"patience": 0.05, "slice": 0.1, "socket_timeout": 0.02, "attempts": 1, "first_pause": 0.05, **settings}
    if known is not None:
        quick["known"] = known
    administration = ServiceBusAdministrationClient.from_connection_string(
        namespace.connection_string, transport=Plainly(), retry_total=0
    )
    return Links(ServiceBusSettings(connection_string=namespace.connection_string, **quick), administration)


_LONGEST = 5.0


@dataclass
class ServiceBusLine(Line):
    """A bus on the double. Nothing is left asked for after a receive, so that the next one locks what comes."""

    namespace: Namespace = field(kw_only=True)

    def receive(self, subscription: Subscription, limit: int = 100, **more: Any) -> list[Received]:
        """On a busy machine a receive may end before what it asked for has arrived: then it is asked for again."""
        there = min(limit, self.namespace.ready(subscription.topic, subscription.name))
        received = super().receive(subscription, limit, **more)
        ends = time.monotonic() + _LONGEST
        while len(received) < there and time.monotonic() < ends:
            received += super().receive(subscription, limit - len(received), **more)
        self.namespace.revoke_credit()
        return received


@contextmanager
def broken_sockets_closed() -> Iterator[None]:
    """The SDK leaves the socket of a connection that broke to the collector; here it is closed when it is given up."""
    give_up = Connection._disconnect

    def and_close(connection: Connection) -> None:
        give_up(connection)
        connection._transport.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "_disconnect", and_close)
        yield


class Shared:
    """A namespace and its links for many tests, each of which finds it empty."""

    def __init__(self, clock: Clock) -> None:
        self.namespace = Namespace(clock).start()
        self.links = links_to(self.namespace)

    def bus(self, clock: Clock, outbox: Outbox | None = None) -> ServiceBus:
        """A bus that has seen nothing yet, on links that are open."""
        self.namespace.empty()
        self.namespace.clock = clock
        return ServiceBus(self.links, clock, outbox)

    def close(self) -> None:
        self.links.close()
        self.namespace.stop()
