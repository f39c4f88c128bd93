"""What the function apps are told beside the settings of their parts: which parts they are, and how often timers go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.errors import MatoolkitError
from matoolkit.settings import Settings, Unusable, names, required

if TYPE_CHECKING:
    from datetime import timedelta

    from matoolkit.hosts.service_bus import ServiceBusAddress

PARTS = ("scheduler", "orchestrator", "admin-api")
_MINUTE, _HOUR = 60, 3600


class NoServiceBus(MatoolkitError):
    """Functions are called by Azure Service Bus, and by no other bus."""


def parts(value: str) -> tuple[str, ...]:
    """One or several of the parts."""
    found = names(value)
    if not found or set(found) - set(PARTS):
        raise Unusable(f"one or several of {', '.join(PARTS)}, with commas between them")
    return found


class FunctionsSettings(Settings):
    """Which parts a function app is."""

    service = "Azure Functions"

    parts = required("MATOOLKIT_PARTS", parts, f"which of {', '.join(PARTS)} this function app is")


def every(period: timedelta, setting: str) -> str:
    """A timer's schedule, in the form of Azure Functions; only what divides a minute or an hour is even."""
    seconds = int(period.total_seconds())
    if 0 < seconds < _MINUTE and _MINUTE % seconds == 0:
        return f"*/{seconds} * * * * *"
    if seconds % _MINUTE == 0 and 0 < seconds < _HOUR and _HOUR % seconds == 0:
        return f"0 */{seconds // _MINUTE} * * * *"
    raise MatoolkitError(f"{setting} must divide a minute or an hour evenly on Azure Functions, as 15s, 30s or 5m do")


def insist(address: ServiceBusAddress, setting: str) -> None:
    """Refuse to start where nothing would ever be called."""
    if not address:
        raise NoServiceBus(f"on Azure Functions messages travel on Azure Service Bus: set {setting}")
