"""Everything that goes wrong between the parts: a tenth of the messages twice, the bus killed, relays killed."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import count
from threading import Event, Thread
from typing import TYPE_CHECKING

from matoolkit.bus.relay import Relay, RelaySettings
from matoolkit.bus.service_bus.bus import ServiceBus
from matoolkit.hosts import service_bus

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from matoolkit.bus import Outgoing
    from tests.doubles.service_bus.server import Namespace

_KILLED_AT = (40, 150)
"""How many messages have been sent when the bus is killed."""
_AWAY_SECONDS = 0.5
_BEFORE, _AFTER = frozenset({3, 11, 23}), frozenset({6, 15, 31})
"""The calls to send in which a relay's process ends: after its commit, and before it can say that it has sent."""


class Killed(Exception):
    """A process ends where it stands: whatever it was called with comes again."""


class Deaths:
    """How often relays died."""

    def __init__(self) -> None:
        self.before = self.after = 0


def kill_relays(patch: pytest.MonkeyPatch) -> Deaths:
    """Have relays die; what they had taken is another's after two seconds instead of a minute."""
    deaths, calls, send = Deaths(), count(1), ServiceBus.deliver

    def deliver(bus: ServiceBus, topic: str, messages: Sequence[Outgoing]) -> list[int | None]:
        call = next(calls)
        if call in _BEFORE:
            deaths.before += 1
            raise Killed
        sent = send(bus, topic, messages)
        if call in _AFTER:
            deaths.after += 1
            raise Killed
        return sent

    patch.setattr(ServiceBus, "deliver", deliver)
    patch.setattr(service_bus, "Relay", partial(Relay, settings=RelaySettings(hold_for=timedelta(seconds=2))))
    return deaths


class Disturbed:
    """A namespace that is killed and comes back, twice, and delivers every tenth message twice."""

    def __init__(self, namespace: Namespace) -> None:
        self.kills = 0
        self._namespace = namespace
        self._ending = Event()
        numbers = count()
        namespace.broker.twice = lambda _: next(numbers) % 10 == 0
        self._thread = Thread(target=self._run, name="killer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No more of it."""
        self._ending.set()
        self._thread.join(30)

    def _run(self) -> None:
        for limit in _KILLED_AT:
            while self._namespace.broker.accepted < limit:
                if self._ending.wait(0.02):
                    return
            self._namespace.kill()
            self.kills += 1
            self._ending.wait(_AWAY_SECONDS)
            self._namespace.restart()
