"""A tenant that throttles, and a worker that asks it, in virtual time: half a minute takes a blink."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from matoolkit.worker.tenant.pace import UNLIMITED, Pace

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

PARALLELISM = 32


class Outcome(NamedTuple):
    """How a run went."""

    seconds: float
    refused: float
    most_refusals: int
    """Of one job."""


def run(passes: Callable[[float], bool], jobs: int, latency: float, chance: Random, *, wait: float = 1.0) -> Outcome:
    """Have so many jobs done; `passes` says of a moment whether the tenant lets a request through."""
    pace, now, numbers = Pace(), 0.0, count()
    events: list[tuple[float, int, str, float, int]] = []
    at_gate, left = [0] * min(PARALLELISM, jobs), jobs - min(PARALLELISM, jobs)
    done = sent = refused = most = 0
    wakes_at = UNLIMITED

    def later(seconds: float, what: str, sent_at: float = 0.0, refusals: int = 0) -> None:
        heapq.heappush(events, (now + seconds, next(numbers), what, sent_at, refusals))

    def half_way() -> float:
        return latency / 2 * (1 + 0.4 * chance.random())

    while done < jobs:
        while at_gate and (delay := pace.delay(now)) == 0:
            pace.sent(now)
            sent += 1
            later(half_way(), "arrives", now, at_gate.pop(0))
        if at_gate and delay < UNLIMITED and not now < wakes_at <= now + delay + 1e-6:
            wakes_at = now + delay
            # Timers are late.
            later(delay + 0.001 * chance.random(), "wakes")
        now, _, what, sent_at, refusals = heapq.heappop(events)
        match what:
            case "arrives":
                later(half_way(), "passed" if passes(now) else "refused", sent_at, refusals)
            case "passed":
                pace.passed(now)
                done += 1
                if left:
                    left -= 1
                    at_gate.append(0)
            case "refused":
                refused += 1
                most = max(most, refusals + 1)
                pace.complained(now, sent_at, wait)
                later(wait, "back", 0.0, refusals + 1)
            case "back":
                at_gate.append(refusals)
            case _:
                wakes_at = UNLIMITED
    return Outcome(now, refused / sent, most)


def fixed_window(limit: int, phase: float) -> Callable[[float], bool]:
    """So many in each second; the seconds began some time ago."""
    counts: dict[int, int] = {}

    def passes(now: float) -> bool:
        second = int(now + phase)
        counts[second] = counts.get(second, 0) + 1
        return counts[second] <= limit

    return passes


def sliding_window(limit: int) -> Callable[[float], bool]:
    """So many in any second."""
    from collections import deque

    passed: deque[float] = deque()

    def passes(now: float) -> bool:
        while passed and passed[0] <= now - 1:
            passed.popleft()
        if len(passed) < limit:
            passed.append(now)
            return True
        return False

    return passes


def bucket(limit: int, burst: float) -> Callable[[float], bool]:
    """A reserve that fills at the limit."""
    reserve, at = burst, 0.0

    def passes(now: float) -> bool:
        nonlocal reserve, at
        reserve, at = min(burst, reserve + (now - at) * limit), now
        if reserve < 1:
            return False
        reserve -= 1
        return True

    return passes
