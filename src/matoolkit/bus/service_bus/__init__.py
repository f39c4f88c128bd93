"""The bus on Azure Service Bus, with the official SDK; only who opens it needs the extra `azure`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.bus.errors import BusError
from matoolkit.bus.service_bus.settings import ServiceBusSettings

if TYPE_CHECKING:
    from matoolkit.bus.outbox import Outbox
    from matoolkit.bus.service_bus.bus import ServiceBus
    from matoolkit.clock import Clock

__all__ = ["ServiceBusNotInstalled", "ServiceBusSettings", "open_service_bus"]


class ServiceBusNotInstalled(BusError):
    """Azure Service Bus needs packages that are not installed: pip install 'matoolkit[azure]'."""


def open_service_bus(settings: ServiceBusSettings, clock: Clock, outbox: Outbox | None = None) -> ServiceBus:
    """A bus; nothing is connected before it is used. Without an outbox it publishes in units of its own only."""
    try:
        from matoolkit.bus.service_bus.bus import ServiceBus
        from matoolkit.bus.service_bus.links import Links
    except ModuleNotFoundError as error:
        raise ServiceBusNotInstalled from error
    return ServiceBus(Links(settings), clock, outbox)
