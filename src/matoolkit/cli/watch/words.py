"""What is told of a batch that is followed: a line for each change, and what happens next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matoolkit.cli.showing.safe import safe
from matoolkit.cli.showing.times import moment, until
from matoolkit.cli.watch.pace import done, left

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from matoolkit.cli.watch.changes import Change
    from matoolkit.cli.watch.looking import Look


def line_of(change: Change, now: datetime) -> str:
    """A change as a line for people."""
    match change["event"]:
        case "batch":
            batch = change["batch"]
            name = f"'{batch['runbookName']}' version {batch['runbookVersion']}"
            text = f"batch {batch['id']} of {name} is {batch['status']}"
        case "phase":
            phase = change["phase"]
            due = f", due {moment(phase['dueAt'])} ({until(phase['dueAt'], now)})" if _is_ahead(phase) else ""
            why = f" ({phase['skipReason']})" if phase["skipReason"] else ""
            text = f"phase '{phase['phaseName']}' is {phase['status']}{why}{due}"
        case "members":
            text = f"members: {counted(change['membersByStatus']) or 'none'}"
        case "steps":
            text = f"steps: {steps_told(change['stepsByStatus'], change.get('perMinute'))}"
        case "failure":
            return failure_told(change["step"])
        case "held-removals":
            text = f"removals held: {change['heldRemovals']}"
        case "waiting":
            text = f"waits for {change['waitingFor']}"
        case "advanced":
            text = f"advanced: {advance_told(change['answer'])}"
        case "server-away":
            text = f"trying again: {change['error']}"
        case "server-back":
            text = "the server is back"
        case other:
            text = str(other)
    return safe(text)


def failure_told(step: Mapping[str, Any]) -> str:
    """Who, at which step, why, and what becomes of it."""
    where = f"{step['phaseName']}/{step['stepName']}" if step["phaseName"] else f"init/{step['stepName']}"
    who = f"{step['memberKey']}: " if step["memberKey"] else ""
    why = step["errorMessage"] or ("it did not end in time" if step["status"] == "poll_timeout" else "no reason given")
    rollback = f"; rollback {step['rollbackStatus']}" if step["rollbackStatus"] else ""
    return safe(f"failed: {who}{where}: {why}{rollback}")


def advance_told(answer: Mapping[str, Any]) -> str:
    """What an advance began."""
    if answer["action"] == "init_dispatched":
        return "init begins"
    if answer["action"] == "phase_dispatched":
        return f"phase '{answer['phaseName']}' begins for {answer['memberCount']:,} members"
    return "every phase has ended"


def counted(by_status: Mapping[str, int]) -> str:
    """`3 succeeded, 1 failed`."""
    return ", ".join(f"{number:,} {status.replace('_', ' ')}" for status, number in by_status.items() if number)


def steps_told(steps: dict[str, int], per_minute: float | None) -> str:
    """How far the steps are, and how fast."""
    if not steps:
        return "none yet"
    ended, remaining = done(steps), left(steps)
    text = f"{ended:,} of {ended + remaining:,} done"
    if per_minute:
        text += f", {per_minute:,.0f} a minute"
    return text


def next_up(look: Look, now: datetime, *, advancing: bool = False) -> str:
    """What happens next, and what it waits for; whether somebody takes it on as soon as it can be."""
    batch = look.batch
    if look.is_over:
        return "nothing: the batch has ended"
    running = [each["phaseName"] for each in look.phases if each["status"] == "dispatched"]
    ahead = next((each for each in look.phases if each["status"] == "pending"), None)
    if running:
        names = ", ".join(f"'{each}'" for each in running)
        text = f"{names} {'goes' if len(running) == 1 else 'go'} on until every member is through"
        if ahead is None:
            return f"{text}; then the batch ends"
        then = f"phase '{ahead['phaseName']}'"
        if ahead["dueAt"]:
            return f"{text}; then {then}, due {moment(ahead['dueAt'])} ({until(ahead['dueAt'], now)})"
        return f"{text}; then {then}" + ("" if advancing else ", once the batch is advanced")
    if ahead is not None and ahead["dueAt"] and batch["status"] == "active":
        return f"phase '{ahead['phaseName']}', due {moment(ahead['dueAt'])} ({until(ahead['dueAt'], now)})"
    if advancing and look.is_waiting_for_an_advance:
        return "it is being advanced"
    if batch["waitingFor"]:
        return f"it waits for {batch['waitingFor']}"
    return "the last members end their steps; then the batch ends"


def _is_ahead(phase: Mapping[str, Any]) -> bool:
    return phase["status"] == "pending" and bool(phase["dueAt"])
