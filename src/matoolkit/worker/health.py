"""Whether a worker is well, and why not: what its health address answers."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matoolkit.worker.gauge import Gauge

_LOOP_LATE, _LOOP_DEAD = 10.0, 60.0
_BUS_DEAD = 60.0


class Status(StrEnum):
    """How a worker is."""

    HEALTHY = "healthy"
    """It does what it is there for."""
    DEGRADED = "degraded"
    """It works, and something needs looking at or is about to pass."""
    UNHEALTHY = "unhealthy"
    """It does not work, and a new one may."""


class Health(NamedTuple):
    """How a worker is, and why."""

    status: Status
    reasons: tuple[str, ...]

    @property
    def http_status(self) -> int:
        """503 tells who started the worker to start another one."""
        return 503 if self.status is Status.UNHEALTHY else 200


def judged(gauge: Gauge | None, now: float, *, complaints: tuple[str, ...] = ()) -> Health:
    """What the gauge says, by the event loop's time; without one, the worker is starting."""
    if gauge is None or gauge.beat_at is None:
        return Health(Status.DEGRADED, ("the worker is starting",))
    dead, poor = _findings(gauge, now)
    poor += complaints
    status = Status.UNHEALTHY if dead else Status.DEGRADED if poor else Status.HEALTHY
    return Health(status, (*dead, *poor))


def _findings(gauge: Gauge, now: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    dead: list[str] = []
    poor: list[str] = []
    late = now - (gauge.beat_at or now)
    if late >= _LOOP_LATE:
        words = f"a function has held up all others for {late:.0f} seconds: one that blocks is to be a plain def"
        (dead if late >= _LOOP_DEAD else poor).append(words)
    if gauge.bus_failing_since is not None:
        away = now - gauge.bus_failing_since
        words = f"the bus has been away for {away:.0f} seconds: {gauge.bus_error}"
        (dead if away >= _BUS_DEAD else poor).append(words)
    if gauge.overdue:
        words = f"{gauge.overdue} of {gauge.parallelism} places are held by functions that go on past their time"
        (dead if gauge.overdue >= gauge.parallelism else poor).append(words)
    if gauge.stopping:
        poor.append("the worker is stopping")
    return tuple(dead), tuple(poor)


def report(health: Health, gauge: Gauge | None, worker_id: str) -> dict[str, Any]:
    """What the address answers."""
    body: dict[str, Any] = {"status": health.status, "reasons": list(health.reasons), "workerId": worker_id}
    if gauge is not None:
        body |= {
            "activeJobs": gauge.running,
            "maxParallelism": gauge.parallelism,
            "jobsSucceeded": gauge.succeeded,
            "jobsFailed": gauge.failed,
        }
    return body
