"""Jobs under way: what is held of each while it runs, and which message locks are to be kept for it."""

from __future__ import annotations

from enum import Enum, auto
from threading import Event, Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable
    from concurrent.futures import Future
    from typing import Any

    from matoolkit.bus import Outgoing, Received
    from matoolkit.messages import WorkerJob
    from matoolkit.telemetry import Span

LOCKED_PAST_DEADLINE = 300.0
"""Seconds for which a lock is kept past a job's time: whoever has not reported by then hangs, and may be replaced."""


class Ending(Enum):
    """Why a job is being ended before its function is done."""

    TIMED_OUT = auto()
    """Its time is over: reported as a failure."""
    LOCK_LOST = auto()
    """Another worker has it: not reported here."""
    GIVEN_BACK = auto()
    """This worker stops: not reported here."""


class Run:
    """A job under way."""

    __slots__ = (
        "answer",
        "begun",
        "cancelled",
        "deadline",
        "ending",
        "job",
        "message",
        "reported",
        "span",
        "started",
        "task",
        "thread",
    )

    def __init__(self, message: Received, job: WorkerJob, started: float, deadline: float) -> None:
        self.message = message
        self.job = job
        self.started = started
        """By the event loop's time, like its deadline."""
        self.deadline = deadline
        self.begun = False
        self.ending: Ending | None = None
        self.reported = False
        self.answer: Outgoing | None = None
        self.span: Span | None = None
        """Where somebody listens."""
        self.cancelled: Event | None = None
        """Made when a function asks for it."""
        self.task: asyncio.Task[None] | None = None
        self.thread: Future[Any] | None = None
        """Of a plain function, which cannot be stopped."""

    def log_fields(self) -> dict[str, str | int]:
        """What a line of the log, or a span, says of the job."""
        job, correlation = self.job, self.job.correlation_data
        fields: dict[str, str | int] = {
            "WorkerId": job.worker_id,
            "BatchId": job.batch_id,
            "JobId": job.job_id,
            "FunctionName": job.function_name,
            "RunbookName": correlation.runbook_name,
            "RunbookVersion": correlation.runbook_version,
        }
        named = correlation.execution()
        if named is not None:
            fields[f"{named[0].capitalize()}ExecutionId"] = named[1]
        return fields

    @property
    def lingers(self) -> bool:
        """Whether the function goes on although its task is over."""
        return self.thread is not None and not self.thread.done()

    def end(self, ending: Ending) -> None:
        """Have it end early: a coroutine where it waits, a thread where it asks."""
        if self.ending is not None:
            return
        self.ending = ending
        if self.cancelled is not None:
            self.cancelled.set()
        if self.task is not None and self.begun:
            # One that has not begun looks for itself when it does.
            self.task.cancel()


class Held:
    """The messages that are locked by this worker: taken and not settled. Shared with whoever renews the locks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: dict[int, Run] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, runs: Iterable[Run]) -> None:
        """These were taken."""
        with self._lock:
            self._runs.update((run.message.sequence, run) for run in runs)

    def discard(self, messages: Iterable[Received]) -> None:
        """These are settled, or lost."""
        with self._lock:
            for message in messages:
                found = self._runs.get(message.sequence)
                if found is not None and found.message.delivery_count == message.delivery_count:
                    del self._runs[message.sequence]

    def find(self, message: Received) -> Run | None:
        """The run of a message, if it is still held."""
        found = self._runs.get(message.sequence)
        return found if found is not None and found.message.delivery_count == message.delivery_count else None

    def to_renew(self, now: float) -> list[Received]:
        """Whose locks are to be kept; `now` by the event loop's time."""
        with self._lock:
            return [run.message for run in self._runs.values() if now < run.deadline + LOCKED_PAST_DEADLINE]
