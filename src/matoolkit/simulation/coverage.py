"""What a soak must have seen: every change of state and every fault, each often enough to mean something."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matoolkit.simulation.faults import Fault

if TYPE_CHECKING:
    from matoolkit.simulation.history import Outcome

OFTEN_ENOUGH = 100

_EXECUTION = (
    "- -> pending",
    "pending -> dispatched",
    "pending -> failed",
    "pending -> cancelled",
    "dispatched -> succeeded",
    "dispatched -> failed",
    "dispatched -> pending",
    "dispatched -> polling",
    "dispatched -> cancelled",
    "polling -> succeeded",
    "polling -> failed",
    "polling -> pending",
    "polling -> poll_timeout",
    "polling -> cancelled",
)
_NEVER = {
    # Nothing cancels a rollback or a removal whose job is out, or that is being polled: what has begun is finished.
    *(
        f"{kind} {change}"
        for kind in ("rollback", "removal")
        for change in _EXECUTION
        if change.endswith("-> cancelled")
    ),
    # The variables of init are always there.
    "init pending -> failed",
} - {"rollback pending -> cancelled", "removal pending -> cancelled"}
TRANSITIONS: tuple[str, ...] = (
    "batch - -> detected",
    "batch detected -> init_dispatched",
    "batch detected -> active",
    "batch init_dispatched -> active",
    "batch init_dispatched -> failed",
    "batch init_dispatched -> cancelled",
    "batch active -> completed",
    "batch active -> failed",
    "batch active -> cancelled",
    "member - -> active",
    "member active -> completed",
    "member active -> failed",
    "member active -> removed",
    "member removed -> active",
    "member completed -> active",
    "phase - -> pending",
    "phase - -> skipped",
    "phase pending -> dispatched",
    "phase pending -> skipped",
    "phase pending -> superseded",
    "phase pending -> cancelled",
    "phase dispatched -> completed",
    "phase dispatched -> failed",
    "phase dispatched -> skipped",
    "phase dispatched -> cancelled",
    *(
        transition
        for kind in ("step", "init", "rollback", "removal")
        for change in _EXECUTION
        if (transition := f"{kind} {change}") not in _NEVER
    ),
)


@dataclass(slots=True)
class Coverage:
    """How often each happened."""

    transitions: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count what a history saw."""
        self.transitions += outcome.transitions
        self.faults += outcome.faults

    def merge(self, other: Coverage) -> None:
        """Count what others saw."""
        self.transitions += other.transitions
        self.faults += other.faults

    def rows(self) -> list[tuple[str, int]]:
        """Everything that must be seen, and whatever else was, with how often."""
        wanted = {name: self.transitions[name] for name in (*TRANSITIONS, *sorted(self.transitions))}
        return [*wanted.items(), *((f"fault: {fault}", self.faults[fault]) for fault in Fault)]

    def holes(self) -> list[tuple[str, int]]:
        """What was seen too seldom: a hole in the generator of histories."""
        wanted = {*TRANSITIONS, *(f"fault: {fault}" for fault in Fault)}
        return [(name, times) for name, times in self.rows() if name in wanted and times < OFTEN_ENOUGH]

    def unknown(self) -> list[str]:
        """Changes of state that nobody said there are."""
        return sorted(set(self.transitions) - set(TRANSITIONS))
