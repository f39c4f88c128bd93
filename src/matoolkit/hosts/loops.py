"""Loops: something to do again and again, in a thread of its own, until it is told to stop.

A loop that fails because the database is away waits a little and goes on; one that fails for another reason says so
loudly and goes on as well, since a stopped loop would help nobody.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from matoolkit.errors import MatoolkitError
from matoolkit.telemetry import SILENT
from matoolkit.telemetry.metrics import LOOP_FAILURES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matoolkit.bus import Bus, Subscription
    from matoolkit.telemetry import Telemetry

log = logging.getLogger(__name__)

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_LOOK_AGAIN = 30.0
"""Seconds after which a consumer looks even if nobody told it to."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What one thread does."""

    name: str
    work: Callable[[], int]
    """Gives how much there was to do."""
    rest: Callable[[], object]
    """What is done until there may be something to do again."""
    full: int = 1
    """With less to do than this, there is nothing left that is worth another look right away."""


class Loops:
    """Threads that belong together."""

    def __init__(self, *, look_again_seconds: float = _LOOK_AGAIN, telemetry: Telemetry = SILENT) -> None:
        self._telemetry = telemetry
        self._look_again = look_again_seconds
        self._stopping = Event()
        self._threads: list[Thread] = []
        self._wakers: list[Callable[[], None]] = []
        self._failing: set[str] = set()

    @property
    def failing(self) -> set[str]:
        """Loops whose last round failed; the log has the reason."""
        return set(self._failing)

    @property
    def dead(self) -> set[str]:
        """Loops whose threads have ended though nobody told them to."""
        return set() if self.stopping else {thread.name for thread in self._threads if not thread.is_alive()}

    @property
    def stopping(self) -> bool:
        """Whether they have been told to end."""
        return self._stopping.is_set()

    def consume(
        self, name: str, work: Callable[[], int], bus: Bus, subscriptions: Sequence[Subscription], *, full: int = 1
    ) -> None:
        """Handle messages as they come; who takes less than a full set has taken all there was."""
        self.start(Loop(name, work, lambda: bus.wait(subscriptions, self._look_again), full))
        if bus.close not in self._wakers:
            self._wakers.append(bus.close)

    def every(self, name: str, seconds: float, work: Callable[[], object]) -> None:
        """Do something at an interval."""

        def once() -> int:
            work()
            return 0

        self.start(Loop(name, once, lambda: self._stopping.wait(seconds)))

    def on_stop(self, wake: Callable[[], None]) -> None:
        """Have something done when the loops are told to end, so that one that waits sees it."""
        self._wakers.append(wake)

    def serve(self, name: str, run: Callable[[], object], stop: Callable[[], None]) -> None:
        """Have something run that goes on by itself until it is stopped; begun again when it fails."""

        def once() -> int:
            run()
            return 0

        self.on_stop(stop)
        self.start(Loop(name, once, lambda: self._stopping.wait(_SHORTEST_PAUSE)))

    def start(self, loop: Loop) -> None:
        """Begin a loop."""
        thread = Thread(target=self._run, args=(loop,), name=loop.name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, timeout: float = 30.0) -> bool:
        """Have every loop end after what it is doing; whether all of them did in this time."""
        self._stopping.set()
        for wake in self._wakers:
            wake()
        ends = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, ends - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, loop: Loop) -> None:
        pause = _SHORTEST_PAUSE
        while not self.stopping:
            try:
                found = loop.work()
                pause = _SHORTEST_PAUSE
                self._failing.discard(loop.name)
                if found < loop.full:
                    loop.rest()
            except MatoolkitError as error:
                self._failing.add(loop.name)
                if error.retryable:
                    log.warning("%s: %s; trying again in %.2f s", loop.name, error, pause)
                else:
                    log.exception("%s: failed", loop.name)
            except Exception:
                self._failing.add(loop.name)
                log.exception("%s: failed", loop.name)
            else:
                continue
            self._telemetry.count(LOOP_FAILURES, 1, loop=loop.name)
            self._stopping.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
