"""Patience with a tenant that says "too many requests": how long a job waits, and how fast all of them go on.

Each job waits as long as the tenant asks, or ever longer where it does not say. And whatever one job is told holds for
all: there is one `Throttle` for each API of a tenant, every request passes through it, and its `Pace` says when.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from matoolkit.telemetry import SILENT
from matoolkit.telemetry.metrics import THROTTLE_WAIT, THROTTLED
from matoolkit.worker.tenant.pace import UNLIMITED, Pace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from matoolkit.telemetry import Telemetry

_JITTER: Final = 0.3
_SHARED_WAIT: Final = 1.0
"""Seconds that all jobs wait at most when the tenant complains without saying how long to wait."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a throttled request is tried again, and how long is waited before."""

    retries: int = 5
    base_seconds: float = 2.0
    longest_seconds: float = 120.0

    def wait(self, attempt: int, retry_after: float | None, chance: float) -> float:
        """Seconds to wait after so many attempts; `chance` is between 0 and 1."""
        if retry_after is not None:
            return retry_after
        # Beyond some 60 doublings every wait is the longest, and numbers stay small.
        wait = min(self.base_seconds * 2.0 ** min(attempt - 1, 60), self.longest_seconds)
        return wait * (1 + _JITTER * chance)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` header asks for, be it a number or a date; None when it says nothing of use."""
    if value is None:
        return None
    text = value.strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - now).total_seconds()
    return max(0.0, seconds) if seconds < UNLIMITED else None


class Throttle:
    """Lets requests to one API through at the pace that the tenant bears."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        telemetry: Telemetry = SILENT,
        api: str = "",
    ) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._telemetry, self._name = telemetry, api
        self._pace = Pace()
        # Whoever holds it is next; those who wait for it come in the order in which they asked.
        self._turn = asyncio.Lock()
        self._answered = asyncio.Event()

    @property
    def rate(self) -> float:
        """Requests a second, at most; infinite as long as the tenant has not complained."""
        return self._pace.rate

    @property
    def held_seconds(self) -> float:
        """How long all of them still wait, because the tenant said so."""
        return max(0.0, self._pace.held_until - self._monotonic())

    async def enter(self) -> float:
        """Wait for one's turn; the moment at which the request goes out, for `complained`."""
        asked = self._monotonic() if self._telemetry.is_on else 0.0
        async with self._turn:
            while (delay := self._pace.delay(now := self._monotonic())) > 0:
                if self._pace.is_full:
                    await self._answer_or(delay)
                else:
                    await self._sleep(delay)
            self._pace.sent(now)
        if self._telemetry.is_on:
            self._telemetry.took(THROTTLE_WAIT, now - asked, api=self._name)
        return now

    async def _answer_or(self, seconds: float) -> None:
        """Wait until a request is answered, but no longer than this."""
        self._answered.clear()
        waiting = [asyncio.ensure_future(self._answered.wait()), asyncio.ensure_future(self._sleep(seconds))]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()

    def passed(self) -> None:
        """The request was answered, and not with a complaint."""
        self._pace.passed(self._monotonic())
        self._answered.set()

    def lost(self) -> None:
        """The request ended without an answer."""
        self._pace.lost(self._monotonic())
        self._answered.set()

    def complained(self, sent_at: float, wait: float, *, told: bool) -> None:
        """The tenant wants everybody to wait; `told` when it said for how long."""
        self._telemetry.count(THROTTLED, 1, api=self._name)
        self._pace.complained(self._monotonic(), sent_at, wait if told else min(wait, _SHARED_WAIT))
        self._answered.set()
