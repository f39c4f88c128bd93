"""What only the order of events can show: read from the trace of a history, once it is over."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.simulation.trace import Line

_FINAL = {
    "batch": {"completed", "failed", "cancelled"},
    "member": {"failed"},
    "phase": {"completed", "failed", "skipped", "superseded", "cancelled"},
    **{
        execution: {"succeeded", "failed", "poll_timeout", "cancelled"}
        for execution in ("step", "init", "rollback", "removal")
    },
}
_OF_MEMBERS = ("step", "rollback", "removal")
_NOBODY = 0
"""Whose the rollback of an init step is."""


def misdeeds(history: Sequence[Line], runs: Sequence[str]) -> list[str]:
    """Everything that happened and must not have."""
    reader = _Reader()
    for line in history:
        reader.read(line)
    found = reader.found
    found += [f"the job {job} was sent {times} times" for job, times in reader.sent.items() if times > 1]
    found += [f"the job {job} was run and never sent" for job in sorted(set(runs) - set(reader.sent))]
    return found


@dataclass(slots=True)
class _Reader:
    """Goes through a history line by line, remembering how things stand."""

    found: list[str] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    status: dict[tuple[str, int], str] = field(default_factory=dict)
    batch_of: dict[int, int] = field(default_factory=dict)
    waited_for: dict[tuple[str, int], str] = field(default_factory=dict)
    out: dict[int, set[str]] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)

    def read(self, line: Line) -> None:
        """Take in what happened next."""
        if line.what == "ran":
            self.ran.add(line.new)
        elif line.what == "job":
            self._job_sent(line)
        elif line.what == "back":
            self.out.get(_member(line), set()).discard(line.new)
        elif line.what in _FINAL:
            self._changed(line)

    def _changed(self, line: Line) -> None:
        if line.old in _FINAL[line.what]:
            self.found.append(f"what had ended went on: {line}")
        if line.what == "member" and line.old == "completed" and line.new != "active":
            self.found.append(f"who was through is not any more: {line}")
        self.status[line.what, line.subject] = line.new
        if line.what == "member":
            self.batch_of[line.subject] = int(line.place.split("/")[0])
        if line.new == "succeeded" and self.waited_for.get((line.what, line.subject)) not in self.ran:
            self.found.append(f"an execution succeeded before the job it waited for was run: {line}")

    def _job_sent(self, line: Line) -> None:
        self.sent[line.new] += 1
        self.waited_for[line.old, line.subject] = line.new
        member = _member(line)
        if line.old not in _OF_MEMBERS or member == _NOBODY:
            return
        others = self.out.setdefault(member, set())
        if others:
            self.found.append(f"a job was sent while {', '.join(sorted(others))} was out for the same member: {line}")
        others.add(line.new)
        if line.old == "step":
            if self.status.get(("member", member)) != "active":
                self.found.append(f"a step was sent for a member who is not active: {line}")
            if self.status.get(("batch", self.batch_of.get(member, 0))) != "active":
                self.found.append(f"a step was sent in a batch that is not active: {line}")


def _member(line: Line) -> int:
    return int(line.place.split("/")[0])
