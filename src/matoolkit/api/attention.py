"""What a person should look at, in words: each line names the thing and what helps."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.api.waiting import at
from matoolkit.store.states import BatchStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from matoolkit.api.queues import Queue
    from matoolkit.store.overview import Held, NextPhase, RunbookTrouble

_LATE_AFTER = timedelta(minutes=2)
_SHOWN = 300


def scheduler_line(lease: tuple[str, datetime] | None, now: datetime, *, is_needed: bool) -> Iterator[str]:
    """When nothing that is due would start."""
    if not is_needed:
        return
    if lease is None:
        yield "no scheduler is running: nothing that is due starts, and no data source is read. Start one"
    elif lease[1] <= now:
        yield f"no scheduler is running since {at(lease[1])}: the last one was {lease[0]}. Start one"


def late_phases(phases: Sequence[NextPhase], now: datetime) -> Iterator[str]:
    """Phases that should have begun."""
    for each in phases:
        if now - each.due_at > _LATE_AFTER:
            why = "the scheduler does not start it" if each.batch_status == BatchStatus.ACTIVE else "init has not ended"
            named = f"phase '{each.phase_name}' of batch {each.batch_id} ({each.runbook_name})"
            yield f"{named} was due at {at(each.due_at)} and has not begun: {why}"


def worker_lines(
    queues: Mapping[str | None, Queue] | None, waited_for: Mapping[str, int], now: datetime
) -> Iterator[str]:
    """Workers that do nothing although jobs wait, and those that were never started."""
    if queues is None:
        return
    for worker_id, queue in queues.items():
        if queue.is_silent(now):
            named = "the worker of every id" if worker_id is None else f"worker '{worker_id}'"
            jobs = "one job waits" if queue.waiting == 1 else f"{queue.waiting} jobs wait, the first"
            yield f"{named} is silent: {jobs} since {at(queue.oldest)}. Is it running?"
    for worker_id, number in waited_for.items():
        if None not in queues and worker_id not in queues:
            steps = "one step waits" if number == 1 else f"{number} steps wait"
            yield f"worker '{worker_id}' was never started here, and {steps} for it. Start it"


def held_lines(held: Sequence[Held]) -> Iterator[str]:
    """Removals that wait for an operator."""
    for each in held:
        people, are = ("one member", "is") if each.count == 1 else (f"{each.count} members", "are")
        yield (
            f"batch {each.batch_id} ({each.runbook_name}): {people} missing from the data source since"
            f" {at(each.since)} {are} kept. Mend the source, or release the removal"
        )


def trouble_lines(troubles: Sequence[RunbookTrouble]) -> Iterator[str]:
    """What is wrong with runbooks, one line for each, cut short."""
    for each in troubles:
        text = " ".join(each.last_error.split())
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        yield f"runbook '{each.name}' v{each.version}: {shown}"


def dead_line(number: int) -> Iterator[str]:
    """Messages that were put aside."""
    if number:
        yield f"messages that could not be handled: {number}. Look at the dead letters"


def failed_lines(failed: Mapping[int, int], names: Mapping[int, str]) -> Iterator[str]:
    """Members who failed in batches that are open."""
    for batch, number in failed.items():
        if number:
            people = "one member" if number == 1 else f"{number} members"
            yield f"batch {batch} ({names[batch]}): {people} failed. Look at its failures"
