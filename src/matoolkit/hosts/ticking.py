"""The scheduler's threads: a beat that nothing holds up, and a thread for each source that is being asked.

An answer is applied as soon as it is there, whatever the other sources do. A source that has not answered in its time
is given up: the runbook says so, it is asked again when its thread has come back, and what it says late is not used.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING

from matoolkit.scheduler.sources import TimeLimitExceeded
from matoolkit.store.runbooks import folded
from matoolkit.telemetry import SILENT
from matoolkit.telemetry.metrics import BEAT, TICK

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.errors import MatoolkitError
    from matoolkit.hosts.loops import Loops
    from matoolkit.scheduler import Gathered, Question, Scheduler
    from matoolkit.telemetry import Telemetry

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 180.0
"""Longer than the time limit of any source, which ends a query properly; this is for what does not even end then."""


@dataclass(slots=True)
class _Asking:
    question: Question
    asked_at: float
    given_up: bool = False


@dataclass(slots=True)
class Ticking:
    """Runs one scheduler."""

    scheduler: Scheduler
    beat_seconds: float = 5.0
    patience_seconds: float = _PATIENCE_SECONDS
    telemetry: Telemetry = SILENT
    _wanted: Event = field(default_factory=Event)
    _answers: SimpleQueue[tuple[_Asking, Gathered | MatoolkitError] | None] = field(default_factory=SimpleQueue)
    _asked: dict[str, _Asking] = field(default_factory=dict)
    _tick_began: float | None = None

    def start(self, loops: Loops) -> None:
        """Begin: one loop for what must be on time, one for what comes of the sources."""
        loops.every("beat", self.beat_seconds, self.beat)
        loops.every("tick", 0.0, self.work)
        loops.on_stop(lambda: self._answers.put(None))

    def beat(self) -> None:
        """What is due; and word to the other loop when a tick is."""
        began = time.monotonic()
        is_tick_due = self.scheduler.beat()
        self.telemetry.took(BEAT, time.monotonic() - began)
        if is_tick_due:
            self._wanted.set()
            self._answers.put(None)

    def work(self) -> None:
        """Wait for the next answer, or for the next tick, and do what it asks for."""
        try:
            answered = self._answers.get(timeout=self.beat_seconds)
        except Empty:
            answered = None
        if answered is not None:
            self._apply(*answered)
        self._give_up()
        if self._wanted.is_set():
            self._tick_began = time.monotonic()
            questions = self.scheduler.begin(frozenset(self._asked))
            # Ticks that came due while we were busy are one.
            self._wanted.clear()
            for question in questions:
                self._ask(question)
        if self._tick_began is not None and not any(not each.given_up for each in self._asked.values()):
            self.telemetry.took(TICK, time.monotonic() - self._tick_began)
            self._tick_began = None

    def once(self, between: Callable[[], object]) -> None:
        """A beat, and the tick to its end when one is due, with beats meanwhile: for who is called by a timer.

        `between` is done again and again. A source that hangs keeps nobody for longer than its time; what is open then
        goes on at the next call.
        """
        ends = time.monotonic() + self.patience_seconds
        self.beat()
        while self._is_busy and time.monotonic() < ends:
            between()
            self.work()
            self.beat()
        between()

    @property
    def _is_busy(self) -> bool:
        return self._wanted.is_set() or any(not each.given_up for each in self._asked.values())

    def _ask(self, question: Question) -> None:
        asking = _Asking(question, time.monotonic())
        self._asked[folded(question.published.name)] = asking
        name = f"source of {question.published.name}"
        Thread(target=self._gather, args=(asking,), name=name, daemon=True).start()

    def _gather(self, asking: _Asking) -> None:
        self._answers.put((asking, self.scheduler.gather(asking.question)))

    def _apply(self, asking: _Asking, answer: Gathered | MatoolkitError) -> None:
        self._asked.pop(folded(asking.question.published.name), None)
        if not asking.given_up:
            self.scheduler.compare(asking.question, answer)

    def _give_up(self) -> None:
        now = time.monotonic()
        for asking in list(self._asked.values()):
            if not asking.given_up and now - asking.asked_at > self.patience_seconds:
                asking.given_up = True
                log.warning("%s: its data source does not answer", asking.question.published.name)
                late = TimeLimitExceeded(f"no answer after {self.patience_seconds:g} seconds")
                self.scheduler.compare(asking.question, late)
