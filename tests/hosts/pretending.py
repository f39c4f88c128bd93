"""A worker that only pretends, run as the real one is: until it is stopped."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

from matoolkit.simulation.noop import NoopWorker

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.bus import Bus, SubscriptionRule
    from matoolkit.clock import Clock
    from matoolkit.messages import WorkerJob, WorkerResult

_LOOK_AGAIN_SECONDS = 0.3


class PretendingHand:
    """Runs it in the thread that calls `run`."""

    def __init__(
        self, bus: Bus, place: SubscriptionRule, clock: Clock, function: Callable[[WorkerJob], WorkerResult]
    ) -> None:
        self._bus, self._place = bus, place
        self._worker = NoopWorker(bus, place.subscription, clock, function=function)
        self._stopping = Event()

    def run(self) -> None:
        """Work until stopped."""
        while not self._stopping.is_set():
            if not self._worker.work():
                self._bus.wait([self._place.subscription], _LOOK_AGAIN_SECONDS)

    def stop(self) -> None:
        """End after what is being done."""
        self._stopping.set()
