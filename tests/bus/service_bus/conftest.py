"""A Service Bus line alone, and one that publishes through the outbox of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.bus.outbox import Outbox
from tests.bus.lines import TOPOLOGY
from tests.bus.service_bus_line import ServiceBusLine, Shared

if TYPE_CHECKING:
    from matoolkit.clock import ManualClock


@pytest.fixture
def line(namespace: Shared, clock: ManualClock) -> ServiceBusLine:
    made = ServiceBusLine(namespace.bus(clock, Outbox(clock)), clock, namespace=namespace.namespace)
    namespace.namespace.declare(TOPOLOGY)
    return made
