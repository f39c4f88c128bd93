"""How often functions were begun, and whether a kill excuses each time after the first."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WRITING_SECONDS = 2.0
"""Within which the result of a function that has ended is written at the latest, on a machine that is busy."""


@dataclass(slots=True)
class Run:
    """One run of a function."""

    process: int
    ended_at: float | None = None


@dataclass(slots=True)
class Counted:
    """What the functions' file says."""

    by_job: dict[str, list[Run]] = field(default_factory=lambda: defaultdict(list))
    by_step: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The jobs of each step."""

    @property
    def runs(self) -> int:
        """All of them."""
        return sum(len(each) for each in self.by_job.values())

    @property
    def repeated(self) -> int:
        """Those that were run again because of a kill."""
        return sum(len(each) - 1 for each in self.by_job.values())

    def unexcused(self, kills: Mapping[int, float]) -> list[str]:
        """Jobs that were run again though no kill hit them while they ran, or their result was being written."""
        found = []
        for job, runs in self.by_job.items():
            if len({each.process for each in runs}) != len(runs):
                found.append(f"{job} was run twice by one process")
            for run in runs[:-1]:
                killed_at = kills.get(run.process)
                if killed_at is None:
                    found.append(f"{job} was run again, and {run.process} was not killed")
                elif run.ended_at is not None and killed_at - run.ended_at > WRITING_SECONDS:
                    found.append(f"{job} had ended {killed_at - run.ended_at:.1f} s before the kill")
        return found


def counted(file: Path) -> Counted:
    """Read it."""
    found = Counted()
    for line in file.read_text().splitlines() if file.exists() else ():
        what, step, job, process, moment = line.split()
        if what == "begun":
            found.by_job[job].append(Run(int(process)))
            found.by_step[step].add(job)
        else:
            run = found.by_job[job][-1]
            assert run.process == int(process), f"{job} was run by two processes at once"
            run.ended_at = float(moment)
    return found


def lines(file: Path) -> int:
    """How much there is."""
    return file.read_bytes().count(b"\n") if file.exists() else 0
