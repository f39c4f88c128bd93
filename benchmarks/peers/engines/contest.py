"""What is asked of every engine alike, and how it is measured: members who each take some steps, one after another.

An engine's file has a `Contestant`; `compete` runs it, in the process that is measured, and prints what it found as
JSON. A step does nothing but note in a journal that it ran: one line of a fixed width, appended in one write, so that
lines of many threads and processes are counted by the size of the file. What is in the journal has happened, whatever
the engine thinks of it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import traceback
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

LINE = "{member:07d} {step:02d}\n"
WIDTH = len(LINE.format(member=0, step=0))
FAILING_EVERY, FAILS_AT = 10, 2
"""In the story, every tenth member's third step fails."""
_COMPLAINT = re.compile(r"the mailbox of member (\d+) is locked")
_LOOK_EVERY = 0.005
_STATUS = Path("/proc/self/status")


class Task(StrEnum):
    """What an engine does."""

    WAVE = "wave"
    """All members, from being handed in to the end."""
    RESUME = "resume"
    """What was left undone by a process that was killed: nothing is handed in again."""
    STORY = "story"
    """A few members, some of whom fail; then what the engine can tell of them."""


class StepFailed(Exception):
    """What a step of the story fails with."""


@dataclass(frozen=True)
class Assignment:
    """What a process measures."""

    task: Task
    address: str
    """A new SQLite file, or the URL of an empty database or Redis."""
    folder: str
    """An empty folder, for whatever else the engine keeps."""
    journal: str
    members: int
    steps: int
    patience: float
    """Seconds without any progress after which nothing more is expected."""
    options: dict[str, Any] = field(default_factory=dict)
    """The settings of the engine."""

    @property
    def handed_in(self) -> Path:
        """Names those who have been handed in, one a line; it is there as soon as there are any."""
        return Path(f"{self.journal}.handed-in")

    def hand_in(self, members: Iterable[int]) -> None:
        """Note that these have been handed in."""
        with self.handed_in.open("a") as file:
            file.write("".join(f"{member}\n" for member in members))

    def note(self, member: int, step: int) -> None:
        """What every step does: it notes that it ran, and fails when it is one of those that are to fail."""
        journal = os.open(self.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(journal, LINE.format(member=member, step=step).encode())
        finally:
            os.close(journal)
        if self.task is Task.STORY and step == FAILS_AT and is_failing(member):
            raise StepFailed(complaint(member))

    @property
    def expected(self) -> int:
        """How many steps run when each runs once."""
        if self.task is Task.RESUME:
            return len(self.handed_in.read_text().split()) * self.steps
        failing = len([member for member in range(self.members) if is_failing(member)])
        left_out = failing * (self.steps - FAILS_AT - 1) if self.task is Task.STORY else 0
        return self.members * self.steps - left_out


def is_failing(member: int) -> bool:
    """Whether this member of the story fails."""
    return member % FAILING_EVERY == FAILING_EVERY - 1


def complaint(member: int) -> str:
    """The sentence an operator would want to find again."""
    return f"the mailbox of member {member} is locked"


def named(texts: Iterable[object]) -> int:
    """How many failed members are named by what an engine kept of their errors."""
    return len({number for text in texts for number in _COMPLAINT.findall(str(text))})


@dataclass
class Told:
    """What the engine itself can tell afterwards, counted through its own tables or functions."""

    members: int = 0
    """Members whose state it tells."""
    steps: int = 0
    """Steps whose state it tells."""
    times: int = 0
    """Steps of which it tells when they ended."""
    errors: int = 0
    """Failed members for whom it has the error's sentence."""


@dataclass
class Found:
    """What a process found."""

    version: str
    seconds: float = 0.0
    peak_mb: float | None = None
    told: Told | None = None
    remark: str = ""


class Contestant(ABC):
    """An engine under test."""

    package = ""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.options = assignment.options

    def prepare(self) -> None:  # noqa: B027 - many engines need nothing
        """Make tables and the like; not timed, and not done again after a crash."""

    @abstractmethod
    def start(self) -> None:
        """Have workers ready; not timed."""

    @abstractmethod
    def submit(self, members: range) -> None:
        """Hand members in; timed. Who does so one by one, in the time of the work, notes each of them."""

    @abstractmethod
    def is_settled(self) -> bool:
        """Whether the engine itself has written down that nothing is left to do."""

    @abstractmethod
    def told(self) -> Told:
        """What it can tell of what happened."""

    def stop(self) -> None:  # noqa: B027 - the process ends anyway
        """End what would outlive the process."""


def compete(contestant: type[Contestant]) -> None:
    """Do what the command line asks for, and end the process."""
    assignment = read(sys.argv[1])
    peer = contestant(assignment)
    found = Found(version(contestant.package))
    status = 0
    try:
        _run(peer, assignment, found)
    except BaseException:  # noqa: BLE001 - the engine's threads are ended below in any case
        traceback.print_exc()
        status = 1
    finally:
        peer.stop()
    print(json.dumps(asdict(found)), flush=True)
    # What still runs has nothing to lose that anybody would miss.
    os._exit(status)


def read(text: str) -> Assignment:
    """An assignment as it stands on a command line or in the environment of an engine's workers."""
    fields = json.loads(text)
    return Assignment(**{**fields, "task": Task(fields["task"])})


def written(assignment: Assignment) -> str:
    """The reverse of `read`."""
    return json.dumps(asdict(assignment))


def _run(peer: Contestant, assignment: Assignment, found: Found) -> None:
    Path(assignment.journal).touch()
    if assignment.task is not Task.RESUME:
        peer.prepare()
    peer.start()
    begun = time.perf_counter()
    if assignment.task is not Task.RESUME:
        peer.submit(range(assignment.members))
        if not assignment.handed_in.exists():
            assignment.hand_in(range(assignment.members))
    end, found.remark = _wait(peer, assignment)
    found.seconds = end - begun
    found.peak_mb = _peak_mb()
    if assignment.task is Task.STORY:
        found.told = peer.told()


def _wait(peer: Contestant, assignment: Assignment) -> tuple[float, str]:
    """When everything had run and the engine knew it; or else when the last step ran, and what was still missing."""
    size, moved = 0, time.perf_counter()
    while True:
        now = Path(assignment.journal).stat().st_size
        if now != size:
            size, moved = now, time.perf_counter()
        if _has_all_run(assignment, size // WIDTH) and peer.is_settled():
            return time.perf_counter(), ""
        if time.perf_counter() - moved > assignment.patience:
            return moved, f"nothing moved for {assignment.patience:g} s after {size // WIDTH} runs of steps"
        time.sleep(_LOOK_EVERY)


def _has_all_run(assignment: Assignment, runs: int) -> bool:
    if runs < assignment.expected:
        return False
    # After a crash some have run twice, so that their number alone says nothing.
    return assignment.task is not Task.RESUME or len(set(Path(assignment.journal).read_text().splitlines())) >= (
        assignment.expected
    )


def _peak_mb() -> float | None:
    if not _STATUS.exists():
        return None
    lines = [line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) / 1024 if lines else None
