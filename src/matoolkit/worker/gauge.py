"""What a worker is up to, for who asks from outside: counted by the job loop, judged by `health`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matoolkit.bus import Outgoing


class Gauge:
    """Counts and times, by the event loop's clock. Written by one thread; read by any."""

    def __init__(self, parallelism: int) -> None:
        self.parallelism = parallelism
        self.running = 0
        self.overdue = 0
        """Functions that go on past their time and hold their places."""
        self.succeeded = 0
        self.failed = 0
        self.beat_at: float | None = None
        """When the loop last turned."""
        self.bus_failures = 0
        self.bus_failing_since: float | None = None
        self.bus_error = ""
        self.stopping = False

    def beat(self, now: float, running: int, overdue: int) -> None:
        """The loop turns."""
        self.beat_at, self.running, self.overdue = now, running, overdue

    def reported(self, answer: Outgoing) -> None:
        """A job has ended."""
        if answer.properties["Status"] == "success":
            self.succeeded += 1
        else:
            self.failed += 1

    def bus_failed(self, error: str, now: float) -> int:
        """The bus could not be used; how often that was, in a row."""
        self.bus_failures += 1
        self.bus_error = error
        if self.bus_failing_since is None:
            self.bus_failing_since = now
        return self.bus_failures

    def bus_answered(self) -> None:
        """The bus could be used."""
        self.bus_failures, self.bus_failing_since, self.bus_error = 0, None, ""
