"""Runs one engine's file in a process of its own, watches its memory, kills it half-way, and reads what it did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.peers.engines.contest import WIDTH, Assignment, Task, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ROOT = Path(__file__).parent.parent.parent
_LOOK_EVERY = 0.002
_WEIGH_EVERY = 0.2
_LAST_LINES = 15


class EngineFailed(Exception):
    """An engine's process ended badly, or did not do what was asked; the sentence says how."""


@dataclass(frozen=True)
class Outcome:
    """What a process printed, beside what was seen of it from outside."""

    found: dict[str, Any]
    peak_mb: float | None
    """Of the process and all that it started."""


@dataclass(frozen=True)
class Runs:
    """What the journal says: how often each step of each member ran."""

    times: Counter[tuple[int, int]]
    in_order: bool
    """Whether no member's step ran for the first time before the one before it did."""

    def lost(self, members: Iterable[int], steps: int) -> int:
        """How many of these never came to their last step."""
        return sum((member, steps - 1) not in self.times for member in members)

    @property
    def repeated(self) -> int:
        """How many runs there were of steps that had run already."""
        return sum(times - 1 for times in self.times.values())


def runs(journal: Path) -> Runs:
    """Reads a journal."""
    times: Counter[tuple[int, int]] = Counter()
    in_order = True
    for line in journal.read_text().splitlines():
        member, step = (int(part) for part in line.split())
        in_order = in_order and (step == 0 or (member, step - 1) in times)
        times[member, step] += 1
    return Runs(times, in_order)


def run(python: Path, module: str, assignment: Assignment, *, limit: float) -> Outcome:
    """Has it done, within `limit` seconds; whatever the process started is ended with it."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = _start(python, module, assignment, output, errors)
        try:
            peak = _weigh(process, time.monotonic() + limit)
        finally:
            _end(process)
        output.seek(0)
        errors.seek(0)
        lines = output.read().splitlines()
        if process.returncode != 0 or not lines:
            last = "\n".join((errors.read().splitlines() or lines)[-_LAST_LINES:])
            how = "took too long" if process.returncode in (None, -signal.SIGKILL) else f"ended {process.returncode}"
            raise EngineFailed(f"{module} {how}: {last}")
    found = json.loads(lines[-1])
    own = found["peak_mb"]
    return Outcome(found, max(peak, own) if own else peak or None)


def run_until_half(python: Path, module: str, assignment: Assignment, *, limit: float) -> int:
    """Kills the process, and all that it started, as soon as half of the steps have run; how many had by then."""
    half, journal = assignment.expected // 2 * WIDTH, Path(assignment.journal)
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = _start(python, module, assignment, output, errors)
        deadline = time.monotonic() + limit
        try:
            while not (assignment.handed_in.exists() and journal.stat().st_size >= half):
                if process.poll() is not None or time.monotonic() > deadline:
                    errors.seek(0)
                    last = "\n".join(errors.read().splitlines()[-_LAST_LINES:])
                    raise EngineFailed(f"{module} did not get half-way: {last}")
                time.sleep(_LOOK_EVERY)
        finally:
            _end(process)
    return journal.stat().st_size // WIDTH


def _start(python: Path, module: str, assignment: Assignment, output: Any, errors: Any) -> subprocess.Popen[bytes]:
    Path(assignment.journal).touch()
    folder = Path(assignment.folder)
    return subprocess.Popen(
        [python, "-m", module, written(assignment)],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
        env=_environment(python, folder),
    )


def _environment(python: Path, folder: Path) -> dict[str, str]:
    """Without what another environment, or a setting of this user, would change; a home folder of its own."""
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LC_ALL", "TMPDIR", "TZ")}
    return {
        **kept,
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONUNBUFFERED": "1",
        "DO_NOT_TRACK": "1",
    }


def _weigh(process: subprocess.Popen[bytes], deadline: float) -> float:
    """The most memory the process and its children held together, each shared page counted once (Linux), in MB."""
    peak = 0.0
    while process.poll() is None and time.monotonic() < deadline:
        peak = max(peak, _held_mb(process.pid))
        with suppress(subprocess.TimeoutExpired):
            process.wait(_WEIGH_EVERY)
    return peak


def _held_mb(pid: int) -> float:
    held = 0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for each in [root, *root.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                memory = each.memory_full_info()
                held += getattr(memory, "pss", memory.rss)
    return held / 2**20


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills the process and its session's group; a child that made a group of its own is found beforehand."""
    children: Sequence[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children(recursive=True)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    process.wait()


def task_name(task: Task) -> str:
    """For progress lines."""
    return task.value
