"""How a process is told to end: by SIGTERM or Ctrl-C, and by a second one at once.

The main thread only waits for signals, so that they are heeded whatever the other threads do.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_LOOK_UP = 0.25
"""Seconds: a signal that comes just as a wait begins is noticed when that wait ends."""
_AT_ONCE = b"told again: ending at once\n"


class Ending:
    """Word that the process is to end."""

    def __init__(self) -> None:
        # Unlike an event's, its methods may be called by a handler that interrupts one of them.
        self._told: SimpleQueue[str] = SimpleQueue()
        self._times = 0

    def wait(self) -> str:
        """Until somebody says so; what they said."""
        while True:
            try:
                return self._told.get(timeout=_LOOK_UP)
            except Empty:
                continue

    def tell(self, why: str) -> None:
        """Say so from within."""
        self._told.put(why)

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Whoever is told twice ends where they stand, as if killed: that is what everything is made to bear."""
        self._times += 1
        if self._times > 1:
            os.write(2, _AT_ONCE)
            os._exit(1)
        self._told.put(signal.Signals(number).name)


@contextmanager
def told_to_end() -> Iterator[Ending]:
    """Signals, from here on, are word that the process is to end."""
    ending = Ending()
    before = {each: signal.signal(each, ending.on_signal) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
