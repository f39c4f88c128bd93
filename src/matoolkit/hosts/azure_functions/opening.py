"""What invocations share: opened by the first of them, kept for as long as the process lives."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

Kept = TypeVar("Kept")
Given = TypeVar("Given")

PATIENCE_SECONDS = 30.0
"""How long a database that is away is waited for. The messages' locks last a minute, of which sending takes some."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0


class Opening(Generic[Kept]):
    """Something that is opened when it is first needed: again and again, should that fail."""

    def __init__(self, make: Callable[[ExitStack], Kept]) -> None:
        self._make = make
        self._lock = Lock()
        self._closing = ExitStack()
        self._kept: Kept | None = None

    def __call__(self) -> Kept:
        """It, open."""
        with self._lock:
            if self._kept is None:
                with ExitStack() as closing:
                    self._kept = self._make(closing)
                    self._closing = closing.pop_all()
            return self._kept

    def close(self) -> None:
        """Close it, if it was opened."""
        with self._lock:
            self._kept = None
            self._closing.close()


def patiently(work: Callable[[], Given], seconds: float = PATIENCE_SECONDS) -> Given:
    """Do something, again for a while when it fails: each failure costs all messages one of ten deliveries.

    What is wrong with a message does not come here. What does is a database that is away or has not been migrated yet.
    """
    ends, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while True:
        try:
            return work()
        except MatoolkitError as error:
            if time.monotonic() + pause > ends:
                raise
            log.warning("%s; trying again in %g s", error, pause)
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
