"""Processes that take turns: each runs until it is about to begin a transaction, sleeps, or waits for messages.

Who goes next is drawn from the seed, so that whatever can happen between two transactions of one process does happen
in some history. A process that dies takes its memory with it; the database stays.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import greenlet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime, timedelta
    from random import Random

    from matoolkit.bus import Subscription
    from matoolkit.clock import ManualClock


class Killed(BaseException):  # not an Exception: no handler may survive it
    """The process is dead."""


@dataclass(slots=True)
class Process:
    """Something that runs beside others."""

    name: str
    host: str
    """What it dies with: the processes of one host share their memory."""
    turn: greenlet.greenlet
    ready_at: datetime | None = None
    """None: at once."""
    waits_for: frozenset[Subscription] = frozenset()


@dataclass(slots=True)
class Processes:
    """All of them, and the clock they live by."""

    clock: ManualClock
    chance: Random
    heads: Callable[[], dict[Subscription, datetime]]
    """When the first message of each subscription is available."""
    reborn: Callable[[str], None]
    """Starts a host again that died."""
    running: list[Process] = field(default_factory=list)
    current: Process | None = None
    home: greenlet.greenlet = field(default_factory=greenlet.getcurrent)
    """Who deals out the turns."""
    _doomed: list[str] = field(default_factory=list)

    def start(self, name: str, host: str, body: Callable[[], None], *, after: timedelta | None = None) -> None:
        """Begin a process, at once or after a while."""

        def live() -> None:
            with suppress(Killed):
                body()

        process = Process(name, host, greenlet.greenlet(live, parent=self.home))
        process.ready_at = None if after is None else self.clock.now() + after
        self.running.append(process)

    def doom(self) -> None:
        """The process that runs is about to die, and its host with it; it ends itself, the others follow."""
        if self.current is not None:
            self._doomed.append(self.current.host)

    def kill(self, host: str) -> None:
        """End every process of a host, wherever it is between two transactions."""
        for process in [each for each in self.running if each.host == host]:
            self.running.remove(process)
            if process.turn:
                process.turn.throw(Killed)

    def pause(self) -> None:
        """Let others go first, maybe; called by the process that runs."""
        process = self.current
        if process is None or greenlet.getcurrent() is not process.turn:
            return
        process.ready_at, process.waits_for = None, frozenset()
        self.home.switch()

    def sleep(self, amount: timedelta, waits_for: Collection[Subscription] = ()) -> None:
        """Do nothing for a while, or until messages come."""
        process = self.current
        if process is None:
            raise RuntimeError("only a process can sleep")
        process.ready_at, process.waits_for = self.clock.now() + amount, frozenset(waits_for)
        self.home.switch()

    def step(self) -> bool:
        """Let one process have its turn, moving the clock on when all of them sleep; False when there are none."""
        now = self.clock.now()
        heads = self.heads() if any(each.waits_for for each in self.running) else {}
        times = [(self._wakes_at(process, heads, now), process) for process in self.running]
        if not times:
            return False
        ready = [process for at, process in times if at <= now]
        if not ready:
            earliest = min(at for at, _process in times)
            self.clock.set(earliest)
            ready = [process for at, process in times if at <= earliest]
        process = ready[0] if len(ready) == 1 else ready[self.chance.randrange(len(ready))]
        self.current = process
        try:
            process.turn.switch()
        finally:
            self.current = None
        while self._doomed:
            host = self._doomed.pop()
            self.kill(host)
            self.reborn(host)
        if process.turn.dead and process in self.running:
            self.running.remove(process)
        return True

    def _wakes_at(self, process: Process, heads: dict[Subscription, datetime], now: datetime) -> datetime:
        if process.ready_at is None:
            return now
        return min([process.ready_at, *(heads[each] for each in process.waits_for if each in heads)])
