"""Limits of requests a second, as the services have them: past the limit it is 429 and a time to wait."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class ThrottleMode(StrEnum):
    """How requests are counted."""

    FIXED_WINDOW = "fixed-window"
    """So many in each window; the count starts again with the next."""
    TOKEN_BUCKET = "token-bucket"  # noqa: S105 - the name of a way to count
    """A reserve that fills at the rate, up to the burst."""


class Throttle(Protocol):
    """Lets requests through, or says how long to wait."""

    def wait_seconds(self) -> float:
        """0 when the request may pass, which is then counted; else the seconds after which one may."""


class FixedWindow:
    """So many requests in each window."""

    def __init__(self, rate: float, monotonic: Callable[[], float], *, window_seconds: float = 1.0) -> None:
        self._limit = max(1, math.floor(rate * window_seconds))
        self._window = window_seconds
        self._monotonic = monotonic
        self._current = -1
        self._count = 0

    def wait_seconds(self) -> float:
        """0 when the request may pass, which is then counted; else the seconds until the window ends."""
        now = self._monotonic()
        window = math.floor(now / self._window)
        if window != self._current:
            self._current, self._count = window, 0
        if self._count < self._limit:
            self._count += 1
            return 0.0
        return (window + 1) * self._window - now


class TokenBucket:
    """A reserve of requests that fills at the rate."""

    def __init__(self, rate: float, monotonic: Callable[[], float], *, burst: float | None = None) -> None:
        self._rate = rate
        self._burst = max(1.0, rate if burst is None else burst)
        self._monotonic = monotonic
        self._reserve = self._burst
        self._at = monotonic()

    def wait_seconds(self) -> float:
        """0 when the request may pass, which is then counted; else the seconds until the reserve has one again."""
        now = self._monotonic()
        self._reserve = min(self._burst, self._reserve + (now - self._at) * self._rate)
        self._at = now
        if self._reserve >= 1:
            self._reserve -= 1
            return 0.0
        return (1 - self._reserve) / self._rate


def make_throttle(
    mode: ThrottleMode,
    rate: float,
    monotonic: Callable[[], float],
    *,
    window_seconds: float = 1.0,
    burst: float | None = None,
) -> Throttle:
    """A limit of `rate` requests a second."""
    if rate <= 0 or window_seconds <= 0:
        raise ValueError("a throttle needs a rate and a window above zero")
    match mode:
        case ThrottleMode.FIXED_WINDOW:
            return FixedWindow(rate, monotonic, window_seconds=window_seconds)
        case ThrottleMode.TOKEN_BUCKET:
            return TokenBucket(rate, monotonic, burst=burst)
