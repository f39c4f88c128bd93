"""One measurement of the engine in a process of its own: `python -m benchmarks.wave '<assignment>'`.

A process of its own has its own memory, and takes its threads with it when it ends. What it found is printed as JSON.
"""

from __future__ import annotations

import os
import sys
import time
from enum import StrEnum
from typing import assert_never

import msgspec
import psutil

from benchmarks import machine
from benchmarks.product import ALONE, CROWD, Engine

LONE_MEMBERS, LONE_WARM_UP = 30, 5
_LOOK_EVERY = 0.002


class Task(StrEnum):
    """What is measured."""

    WAVE = "wave"
    """All members from the start of their phase to the end of their batch."""
    LONE = "lone"
    """Members who come one after another, and have the engine to themselves."""
    START = "start"
    """The start of a phase of many members, while others, who come one after another, go their way."""


class Assignment(msgspec.Struct, frozen=True):
    """What a process measures, in an empty migrated database."""

    task: Task
    url: str
    members: int
    steps: int


class Findings(msgspec.Struct):
    """What it found."""

    base_mb: float
    """Resident once everything was imported."""
    seconds: list[float] = []
    """Of the wave, or of each lone member."""
    peak_mb: float = 0
    """The most that was resident after that, the making of the batch included."""
    quarter_mb: float = 0
    """Resident when a quarter of the results was in."""
    end_mb: float = 0
    """Resident when all were."""
    longest: float = 0
    """Seconds of the orchestrator's longest transaction, once it had begun."""
    cpu: float = 0
    """Seconds of processor time this process took, for all its threads, from start to end."""
    start: float = 0
    """Seconds it took to write and send all of a phase."""


def main(assignment: Assignment) -> Findings:
    """Does what is to be measured."""
    findings = Findings(base_mb=_resident_mb())
    machine.reset_peak_memory()
    engine = Engine(assignment.url, assignment.steps)
    match assignment.task:
        case Task.WAVE:
            _wave(engine, assignment, findings)
        case Task.LONE:
            _lone(engine, findings)
        case Task.START:
            _start(engine, assignment, findings)
        case _:
            assert_never(assignment.task)
    findings.peak_mb = machine.peak_memory_mb() or 0
    longest = engine.watched.longest
    findings.longest = max(longest["events"], longest["results"])
    return findings


def _wave(engine: Engine, assignment: Assignment, findings: Findings) -> None:
    batch, results = engine.load(CROWD, assignment.members), assignment.members * assignment.steps
    engine.milestones[results // 4] = lambda: setattr(findings, "quarter_mb", _resident_mb())
    begin, spent = time.perf_counter(), time.process_time()
    engine.start_phases()
    engine.run()
    findings.seconds = [engine.finish(batch, results) - begin]
    findings.cpu = time.process_time() - spent
    findings.end_mb = _resident_mb()


def _lone(engine: Engine, findings: Findings) -> None:
    engine.run()
    for _ in range(LONE_WARM_UP + LONE_MEMBERS):
        batch = engine.load(ALONE, 1)
        begin = time.perf_counter()
        engine.start_phases()
        findings.seconds.append(engine.finish(batch, engine.steps) - begin)
    del findings.seconds[:LONE_WARM_UP]


def _start(engine: Engine, assignment: Assignment, findings: Findings) -> None:
    crowd = engine.load(CROWD, assignment.members)
    engine.run()
    begin = time.perf_counter()
    engine.start_phases()
    while not engine.is_expanded(crowd):
        came = time.perf_counter()
        alone = engine.load(ALONE, 1)
        engine.start_phases()
        while not engine.is_over(alone):
            time.sleep(_LOOK_EVERY)
        findings.seconds.append(time.perf_counter() - came)
    findings.start = time.perf_counter() - begin


def _resident_mb() -> float:
    return psutil.Process().memory_info().rss / 2**20


if __name__ == "__main__":
    found = main(msgspec.json.decode(sys.argv[1], type=Assignment))
    print(msgspec.json.encode(found).decode(), flush=True)
    # What still runs has nothing to lose that anybody would miss.
    os._exit(0)
