"""How fast a tenant lets itself be asked: learnt from what it answers.

Nobody says beforehand how many requests a second a tenant takes, and every answer "too many" costs: the request, and
the wait that all jobs share. So the pace is found with as few of them as can be.

1. *Opening.* Few requests at a time, and one more after every few answers, or where answers are long in coming. A
   tenant that never complains is soon asked by all jobs at once, and this is never heard of again.
2. *Sounding.* The first complaint says how much went through until then; but not whether that was a second's allowance
   or only what had been saved up. So the next round goes out several times as fast: if it ends as soon as the first
   did, the allowance is known.
3. *Cruising.* Evenly spaced requests, a little below what is known to go through. After a complaint the pace drops to
   what went through, comes back quickly to just below where the complaint was, stays there, and only then creeps
   beyond: ever more seldom where the tenant keeps complaining at the same place, ever faster where it does not.

A plain value machine: times are seconds on any clock that only goes forwards, and are handed in.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum

BEGIN_TOGETHER = 4
"""Requests at a time in the beginning."""
ANSWERS_FOR_ONE_MORE = 16
"""After so many answers one more request goes out at the same time."""
SILENCE = 1.0
"""Seconds without any answer after which one more goes out all the same: some answers take long."""
FURTHER_SILENCE = 0.25
"""Seconds after which the next one does, if there still is none."""
SOUNDING = 4.0
"""How much faster than the first complaint suggests the second round goes."""
MARGIN = 0.96
"""How far below the pace that drew a complaint the requests go from then on."""
LATENESS = 0.03
"""Seconds by which a request that went late may let the next go early."""
HASTE = 0.9
"""The same, where the complaint before was only moments ago."""
BURST = 0.99
"""The same, where it was not the pace but a burst that a busy machine made of it."""
UNEVEN = 1.05
"""So many times more than the pace within a second are a burst."""
MOMENTS = 4.0
"""Seconds that are moments."""
LAG = 0.25
"""Seconds by which a request goes late only because the machine is busy; beyond them there was nothing to send."""
MOST_OWED = 1.0
"""Seconds of lateness that are made up for at most."""
MAKING_UP = 0.015
"""How much faster the requests go while they make up for it."""
COMING_BACK = 1.0
"""Seconds in which the pace comes back to just below where the complaint was."""
LOWEST_START = 0.7
"""With what part of it the pace starts at least."""
FIRST_STAY = 15.0
"""Seconds it stays there for the first time."""
LONGEST_STAY = 240.0
"""Seconds it stays there at most."""
CREEPING = 1e-4
"""How steeply it rises then: after t seconds by this times t cubed."""
WINDOW = 1.0
"""Seconds over which answers are counted: no tenant counts over less."""
UNLIMITED = float("inf")


class Phase(StrEnum):
    """What is known about the tenant."""

    OPENING = "opening"
    """It has not complained yet."""
    SOUNDING = "sounding"
    """It has complained once."""
    CRUISING = "cruising"
    """Its limit is about known."""


class Pace:
    """When the next request may go out."""

    def __init__(self) -> None:
        self.phase = Phase.OPENING
        self.together = BEGIN_TOGETHER
        self.in_flight = 0
        self.held_until = -UNLIMITED
        self._answers = 0
        self._silent_until = -UNLIMITED
        self._next = -UNLIMITED
        # The cycle: from the end of a wait to the next complaint.
        self._began: float | None = None
        self._passed = 0
        self._recent: deque[float] = deque()
        self._peak = 0
        # Sounding and cruising.
        self._rate = UNLIMITED
        self._allowance = 0.0
        self._level = UNLIMITED
        self._floor = 0.0
        self._stay = FIRST_STAY
        self._limited = 0.0
        self._owed = 0.0

    @property
    def rate(self) -> float:
        """Requests a second, at most."""
        return self._rate

    @property
    def is_full(self) -> bool:
        """Whether as many are under way as may be: an answer makes room sooner than time does."""
        return self.in_flight >= self.together

    def delay(self, now: float) -> float:
        """Seconds until the next request may go, if nothing is answered until then; 0 when it may go now."""
        until = max(self._next, self.held_until)
        if self.is_full:
            until = max(until, self._silent_until)
        return max(0.0, until - now)

    def sent(self, now: float) -> None:
        """A request goes out now."""
        if self._began is None:
            self._began = now
        if self.is_full:
            self.together = self.in_flight + 1
            self._silent_until = now + FURTHER_SILENCE
        elif self.in_flight == 0:
            self._silent_until = now + SILENCE
        self.in_flight += 1
        if self._rate == UNLIMITED:
            return
        step = 1 / self._rate
        late = now - self._next
        waited = late < max(step, LAG)
        if LATENESS < late < LAG:
            self._owed = min(self._owed + late - LATENESS, MOST_OWED)
        made_up = min(self._owed, step * MAKING_UP)
        self._owed -= made_up
        self._next = max(self._next, now - LATENESS) + step - made_up
        if self.phase is Phase.CRUISING:
            # Time counts only while the pace is what limits: an idle worker learns nothing.
            if waited:
                self._limited += step
            self._rate = self._cruising_rate()
        elif self._passed > 2 * self._allowance:
            # More went through than was ever saved up: there is no need to be shy.
            self._allowance, self._rate = 2 * self._allowance, 2 * self._rate

    def passed(self, now: float) -> None:
        """A request was answered with anything but a complaint."""
        self._answered(now)
        self._passed += 1
        self._answers += 1
        recent = self._recent
        recent.append(now)
        while recent and recent[0] <= now - WINDOW:
            recent.popleft()
        self._peak = max(self._peak, len(recent))
        if self._answers >= ANSWERS_FOR_ONE_MORE:
            self._answers, self.together = 0, self.together + 1

    def lost(self, now: float) -> None:
        """A request ended without an answer."""
        self._answered(now)

    def complained(self, now: float, sent_at: float, wait: float) -> None:
        """A request that went out at `sent_at` was answered "too many", and to wait so many seconds."""
        self._answered(now)
        until = max(self.held_until, now + wait)
        if self._began is not None and sent_at >= self.held_until:
            self._learn(now - self._began, wait)
            self._began = None
        self.held_until = until
        self._next = until
        self._owed = 0.0

    def _answered(self, now: float) -> None:
        self.in_flight -= 1
        self._silent_until = now + SILENCE

    def _learn(self, lasted: float, wait: float) -> None:
        through = self._passed / max(lasted + wait, WINDOW)
        peak = float(self._peak)
        if self.phase is Phase.OPENING:
            self._allowance = max(peak, 1.0)
            # What went out in one go says little about a second; what took its time says it all.
            if lasted < wait:
                self.phase = Phase.SOUNDING
                self._rate = SOUNDING * self._allowance
            else:
                self._cruise(peak, through)
        elif self.phase is Phase.SOUNDING:
            self._cruise(max(min(self._allowance, peak), through), through)
        else:
            if self._rate < self._level / MARGIN * 1.1 and self._limited >= self._stay:
                self._stay = min(2 * self._stay, LONGEST_STAY)
            elif self._rate > self._level / MARGIN * 1.1:
                self._stay = FIRST_STAY
            margin = HASTE if lasted < MOMENTS else BURST if peak > UNEVEN * self._rate else MARGIN
            self._cruise(min(self._rate, max(peak, through)), through, margin)
        self._passed, self._peak = 0, 0
        self._recent.clear()

    def _cruise(self, ceiling: float, through: float, margin: float = MARGIN) -> None:
        self.phase = Phase.CRUISING
        self._level = max(margin * ceiling, 0.1)
        self._floor = min(max(through, self._level * LOWEST_START), self._level)
        self._limited = 0.0
        self._rate = self._cruising_rate()

    def _cruising_rate(self) -> float:
        gone = self._limited
        if gone < COMING_BACK:
            return self._level - (self._level - self._floor) * (1 - gone / COMING_BACK) ** 3
        beyond = max(0.0, gone - COMING_BACK - self._stay)
        return self._level * (1 + CREEPING * beyond**3)
