"""For engines of coroutines: an event loop in a thread of its own, where the engine runs as it would alone."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.peers.engines.contest import Assignment, Contestant

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

T = TypeVar("T")


class Looped(Contestant):
    """A contestant with a loop."""

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self.loop = self.new_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._background: list[Future[Any]] = []

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """The kind of loop that suits the engine."""
        return asyncio.new_event_loop()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Have something done in the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Have something done in the loop from now on; its failure is raised by `insist`."""
        self._background.append(asyncio.run_coroutine_threadsafe(work, self.loop))

    def insist(self) -> None:
        """Raise what ended something that was to go on."""
        for each in self._background:
            if each.done():
                each.result()
