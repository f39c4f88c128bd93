"""What has to be known to reach a namespace, and how patient its users are."""

from __future__ import annotations

from msgspec import Struct

from matoolkit.bus.errors import BusError
from matoolkit.bus.topology import Topology

_SUFFIX = ".servicebus.windows.net"
_EMULATOR = "usedevelopmentemulator=true"


class NoNamespace(BusError):
    """Neither the namespace nor a connection string of Service Bus is set."""


class ServiceBusSettings(Struct, frozen=True, kw_only=True):
    """Where the namespace is, and how to talk to it."""

    namespace: str | None = None
    """`name.servicebus.windows.net`; signs in with the managed identity, or whoever is signed in on this machine."""
    connection_string: str | None = None
    """Signs in with a key; for development, or where there is no managed identity."""
    known: Topology = Topology()
    """What infrastructure made, for who has no right to ask: mainly the workers there are."""
    patience: float = 0.2
    """Seconds a receive waits for a message that is there to arrive."""
    slice: float = 0.5
    """Seconds after which who waits looks whether it is to stop, or somebody else wants the link."""
    attempts: int = 3
    """How often the SDK tries again by itself when a link or connection fails, at growing intervals."""
    first_pause: float = 0.8
    """Seconds before its first attempt; doubled for each further one."""
    socket_timeout: float = 0.2
    """Seconds that reading and writing may take at a time."""

    def __post_init__(self) -> None:
        """Refuse what leads nowhere, before anything is tried."""
        if not self.namespace and not self.connection_string:
            raise NoNamespace

    @property
    def host(self) -> str | None:
        """The namespace's full name."""
        if not self.namespace or "." in self.namespace or ":" in self.namespace:
            return self.namespace
        return self.namespace + _SUFFIX

    @property
    def is_emulator(self) -> bool:
        """Whether it is Service Bus's emulator, which is reached without TLS and managed by its own configuration."""
        parts = (self.connection_string or "").replace(" ", "").lower().split(";")
        return _EMULATOR in parts
