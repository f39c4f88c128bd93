"""Every crash point of a scenario: it is lived once, then again for each of its commits, dying before and after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from matoolkit.simulation.database import CrashPoint
from matoolkit.simulation.faults import CALM, Likelihoods
from matoolkit.simulation.history import Plan
from matoolkit.simulation.scenario import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.simulation.history import Simulator

EVENTFUL = replace(CALM, join=0.3, leave=0.3, come_back=0.5, change_data=0.2, publish=0.1, worker_error=0.1)
"""People come and go and steps fail, but nothing dies except where it is told to."""


@dataclass(frozen=True, slots=True)
class Crash:
    """What came of one death."""

    point: CrashPoint
    violations: tuple[str, ...]


def every_crash(simulator: Simulator, seed: int, likelihoods: Likelihoods = EVENTFUL) -> Iterator[Crash]:
    """Die once at each commit of a scenario."""
    plan = Plan(likelihoods=likelihoods, shape=Shape(members=(3, 4), batches=1, phases=(1, 2), steps=(1, 2)))
    undisturbed = simulator.live(seed, plan)
    if undisturbed.violations:
        yield Crash(CrashPoint(0, before=True), undisturbed.violations)
        return
    for commit in range(1, undisturbed.commits + 1):
        for before in (True, False):
            point = CrashPoint(commit, before)
            yield Crash(point, simulator.live(seed, replace(plan, crash_point=point)).violations)
