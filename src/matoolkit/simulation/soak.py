"""Many histories, on all cores, with what they saw and what went wrong."""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matoolkit.simulation.coverage import Coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matoolkit.simulation.history import Plan

_CHUNK = 25
_SAFETY_EVERY, _TWICE_EVERY = 4, 50


@dataclass(slots=True)
class Report:
    """What came of some histories."""

    histories: int = 0
    cpu_seconds: float = 0.0
    failures: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    lived_twice: int = 0
    """Histories that were lived a second time to see that they are the same, byte for byte."""
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def per_second(self) -> float:
        """Histories a second of one core."""
        return self.histories / self.cpu_seconds if self.cpu_seconds else 0.0

    def merge(self, other: Report) -> None:
        """Add what others saw."""
        self.histories += other.histories
        self.cpu_seconds += other.cpu_seconds
        self.failures += other.failures
        self.lived_twice += other.lived_twice
        self.coverage.merge(other.coverage)


def be_quiet() -> None:
    """Faults are made on purpose here, and each would be logged."""
    logging.getLogger("matoolkit").setLevel(logging.CRITICAL)


def plan_for(seed: int) -> Plan:
    """Most histories run to their end; every fourth has faults throughout."""
    from matoolkit.simulation.history import Mode, Plan

    return Plan(mode=Mode.SAFETY if seed % _SAFETY_EVERY == _SAFETY_EVERY - 1 else Mode.LIVENESS)


def live_all(seeds: Sequence[int]) -> Report:
    """Live some histories, one after another."""
    from matoolkit.simulation.history import Simulator

    began, report, simulator = time.process_time(), Report(), Simulator()
    for seed in seeds:
        plan = plan_for(seed)
        outcome = simulator.live(seed, plan)
        report.histories += 1
        report.coverage.add(outcome)
        violations = list(outcome.violations)
        if seed % _TWICE_EVERY == 0:
            report.lived_twice += 1
            if simulator.live(seed, plan).digest != outcome.digest:
                violations.append("the same seed gave another history")
        if violations:
            report.failures.append((seed, tuple(violations)))
    report.cpu_seconds = time.process_time() - began
    return report


def soak(first: int, count: int, progress: Callable[[Report], None], processes: int | None = None) -> Report:
    """Live many histories on all cores; `progress` is told from time to time how far it has got."""
    total = Report()
    wanted = processes or os.cpu_count() or 1
    chunks = [range(start, min(start + _CHUNK, first + count)) for start in range(first, first + count, _CHUNK)]
    for report in _lived(chunks, min(wanted, len(chunks))):
        total.merge(report)
        progress(total)
    total.failures.sort()
    return total


def _lived(chunks: Sequence[Sequence[int]], processes: int) -> Iterator[Report]:
    if processes <= 1:
        yield from map(live_all, chunks)
        return
    with multiprocessing.get_context("spawn").Pool(processes, initializer=be_quiet) as pool:
        yield from pool.imap_unordered(live_all, chunks)
