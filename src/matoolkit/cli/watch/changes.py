"""What is different between two looks, one change after another, as programs read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.cli.watch.looking import Look

Change = dict[str, Any]

_OF_A_PHASE = ("status", "dueAt", "skipReason")


def changes(before: Look | None, after: Look) -> Iterator[Change]:
    """Each with `event` and the API's own fields; the first look as a whole is a change as well."""
    if before is None:
        yield {"event": "batch", "batch": after.batch}
        for phase in after.phases:
            yield {"event": "phase", "phase": phase}
        yield _members(after)
        yield _steps(after)
    else:
        if before.batch["status"] != after.batch["status"]:
            yield {"event": "batch", "batch": after.batch}
        earlier = {each["id"]: each for each in before.phases}
        for phase in after.phases:
            was = earlier.get(phase["id"])
            if was is None or any(was[key] != phase[key] for key in _OF_A_PHASE):
                yield {"event": "phase", "phase": phase}
        if before.members != after.members:
            yield _members(after)
        if before.steps != after.steps:
            yield _steps(after)
    for step in after.failures:
        yield {"event": "failure", "step": step}
    if before is not None and before.batch["heldRemovals"] != after.batch["heldRemovals"]:
        yield {"event": "held-removals", "heldRemovals": after.batch["heldRemovals"]}
    if (before is None or before.batch["waitingFor"] != after.batch["waitingFor"]) and after.batch["waitingFor"]:
        yield {"event": "waiting", "waitingFor": after.batch["waitingFor"]}


def _members(look: Look) -> Change:
    return {"event": "members", "membersByStatus": look.members}


def _steps(look: Look) -> Change:
    return {"event": "steps", "stepsByStatus": look.steps}
