"""What every entry goes through: waves that are timed, a crash half-way, and a story with failures in it."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers import running
from benchmarks.peers.engines.contest import Assignment, Task
from benchmarks.peers.entries import DEAD_AFTER, STEPS
from benchmarks.peers.environments import NotInstallable
from benchmarks.peers.running import EngineFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.peers.entries import Entry
    from benchmarks.peers.environments import Environments
    from benchmarks.peers.stores import Stores

STORY_MEMBERS = 20
_LONGEST_WAVE, _LONGEST_STORY = 120.0, 120.0
_PATIENCE = 20.0
_PATIENCE_AFTER_CRASH = DEAD_AFTER * 2 + 5.0
"""Twice the time after which a worker counts as dead, and some more for whoever looks at an interval."""


@dataclass(frozen=True)
class Crash:
    """What a kill half-way cost."""

    members: int
    """How many had been handed in."""
    runs_before: int
    """Steps that had run by then."""
    lost: int
    """Members whose last step never ran."""
    repeated: int
    """Runs of steps that had run before."""
    seconds: float
    """From the restart until the last step had run and the engine knew that all was done, or would never know."""
    remark: str = ""


@dataclass(frozen=True)
class Trials:
    """Runs entries."""

    environments: Environments
    stores: Stores
    folder: Path
    """Where each run has a folder of its own."""

    def wave(self, entry: Entry) -> dict[str, Any]:
        """All members, timed."""
        return _reported(lambda: self._wave(entry))

    def story(self, entry: Entry) -> dict[str, Any]:
        """A few members, some of whom fail."""
        return _reported(lambda: self._story(entry))

    def crash(self, entry: Entry) -> dict[str, Any]:
        """All members; the engine is killed half-way and started again, the store goes on."""
        return _reported(lambda: self._crash(entry))

    def _wave(self, entry: Entry) -> dict[str, Any]:
        python = self.environments.python(entry.lock)
        with self._assignment(entry, Task.WAVE, entry.members, _PATIENCE) as assignment:
            outcome = running.run(python, entry.module, assignment, limit=_LONGEST_WAVE)
            runs = running.runs(Path(assignment.journal))
            found = outcome.found
            if found["remark"] or runs.lost(range(entry.members), STEPS) or not runs.in_order:
                raise EngineFailed(f"{entry.key} did not do the work: {found['remark'] or 'steps are missing'}")
            repeated = {"repeated": runs.repeated} if runs.repeated else {}
            return {
                "version": found["version"],
                "seconds": found["seconds"],
                "steps": entry.members * STEPS,
                "peak_mb": outcome.peak_mb,
                **repeated,
            }

    def _story(self, entry: Entry) -> dict[str, Any]:
        python = self.environments.python(entry.lock)
        with self._assignment(entry, Task.STORY, STORY_MEMBERS, _PATIENCE) as assignment:
            found = running.run(python, entry.module, assignment, limit=_LONGEST_STORY).found
            if found["remark"]:
                raise EngineFailed(f"{entry.key} did not end: {found['remark']}")
            told: dict[str, Any] = found["told"]
            return told

    def _crash(self, entry: Entry) -> dict[str, Any]:
        python = self.environments.python(entry.lock)
        with self._assignment(entry, Task.WAVE, entry.members, _PATIENCE) as assignment:
            before = running.run_until_half(python, entry.module, assignment, limit=_LONGEST_WAVE)
            fields = {**asdict(assignment), "task": Task.RESUME, "patience": _PATIENCE_AFTER_CRASH}
            outcome = running.run(python, entry.module, Assignment(**fields), limit=_LONGEST_WAVE)
            runs = running.runs(Path(assignment.journal))
            members = [int(member) for member in assignment.handed_in.read_text().split()]
            return asdict(
                Crash(
                    len(members),
                    before,
                    runs.lost(members, STEPS),
                    runs.repeated,
                    outcome.found["seconds"],
                    outcome.found["remark"],
                )
            )

    @contextmanager
    def _assignment(self, entry: Entry, task: Task, members: int, patience: float) -> Iterator[Assignment]:
        with tempfile.TemporaryDirectory(prefix="run-", dir=self.folder) as name:
            folder = Path(name)
            with self.stores.new(entry.store, folder, entry.durability) as address:
                journal = str(folder / "journal")
                yield Assignment(task, address, name, journal, members, STEPS, patience, dict(entry.options))


def _reported(trial: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What came of it, be it that nothing did."""
    try:
        return trial()
    except NotInstallable as error:
        return {"not_installable": str(error)}
    except EngineFailed as error:
        return {"failed": str(error)}
