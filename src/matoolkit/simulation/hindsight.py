"""What only the order of events can show: read from the trace of a history, once it is over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.simulation.trace import Line

_FINAL_BATCH = {"completed", "failed", "cancelled"}
_FINAL_EXECUTION = {"succeeded", "failed", "poll_timeout", "cancelled"}
_FINAL_PHASE = {"completed", "failed", "skipped", "superseded", "cancelled"}


def misdeeds(history: Sequence[Line], runs: Sequence[str]) -> list[str]:
    """Everything that happened and must not have."""
    found: list[str] = []
    batch: dict[int, str] = {}
    member: dict[int, str] = {}
    member_batch: dict[int, int] = {}
    sent: Counter[str] = Counter()
    for line in history:
        match line.what:
            case "batch":
                if line.old in _FINAL_BATCH:
                    found.append(f"a batch that ended went on: {line}")
                batch[line.subject] = line.new
            case "member":
                if line.old == "failed":
                    found.append(f"a member who failed went on: {line}")
                member[line.subject] = line.new
                member_batch[line.subject] = int(line.place.split("/")[0])
            case "phase":
                if line.old in _FINAL_PHASE:
                    found.append(f"a phase that ended went on: {line}")
            case "step" | "init" | "rollback" | "removal":
                if line.old in _FINAL_EXECUTION:
                    found.append(f"an execution that ended went on: {line}")
            case "job":
                sent[line.new] += 1
                if line.old == "step":
                    whose = int(line.place.split("/")[0])
                    if member.get(whose) != "active":
                        found.append(f"a step was sent for a member who is {member.get(whose)}: {line}")
                    if batch.get(member_batch.get(whose, 0)) != "active":
                        found.append(f"a step was sent in a batch that is not active: {line}")
            case _:
                pass
    found += [f"the job {job} was sent {times} times" for job, times in sent.items() if times > 1]
    found += [f"the job {job} was run and never sent" for job in sorted(set(runs) - set(sent))]
    return found
