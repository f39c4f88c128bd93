"""Which phases a batch gets, and what a new runbook version makes of them: decided without a database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from matoolkit.store.states import PhaseStatus, SkipReason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from matoolkit.runbooks import Runbook
    from matoolkit.store.phases import Phase

_NEVER_RUN = (PhaseStatus.PENDING, PhaseStatus.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Transition:
    """What becomes of a batch's phases when it goes over to a new version."""

    added: tuple[dict[str, Any], ...]
    any_to_run: bool


def planned_phases(runbook: Runbook, start_time: datetime | None) -> tuple[dict[str, Any], ...]:
    """A batch's phases in the order of time; a manual batch's have no time of their own."""
    return tuple(
        {
            "phase_name": phase.name,
            "offset_minutes": phase.offset_minutes,
            "due_at": None if start_time is None else start_time - timedelta(minutes=phase.offset_minutes),
            "status": PhaseStatus.PENDING,
            "skip_reason": None,
            "completed_at": None,
        }
        for phase in runbook.phases_by_time
    )


def transition(
    runbook: Runbook, existing: Sequence[Phase], start_time: datetime | None, now: datetime, *, ignore_overdue: bool
) -> Transition:
    """The new version's phases; under `ignore` not those that are past due, nor those that have been run before."""
    run_before = {each.phase_name.casefold() for each in existing if each.status not in _NEVER_RUN}
    added = []
    for phase in planned_phases(runbook, start_time):
        reason = None
        if ignore_overdue and phase["phase_name"].casefold() in run_before:
            reason = SkipReason.REPEATED
        elif ignore_overdue and phase["due_at"] is not None and phase["due_at"] <= now:
            reason = SkipReason.OVERDUE
        if reason is not None:
            phase |= {"status": PhaseStatus.SKIPPED, "skip_reason": reason, "completed_at": now}
        added.append(phase)
    return Transition(tuple(added), any(each["status"] == PhaseStatus.PENDING for each in added))
