"""The same seed gives the same history, byte for byte: in the same process and in another."""

from __future__ import annotations

import subprocess
import sys

from matoolkit.simulation.history import Mode, Plan, Simulator
from matoolkit.simulation.soak import plan_for


def test_the_same_seed_gives_the_same_trace(simulator: Simulator) -> None:
    first, between, again = (simulator.live(seed) for seed in (42, 43, 42))
    assert first.trace == again.trace
    assert first.digest == again.digest != between.digest


def test_another_process_gives_the_same_trace(simulator: Simulator) -> None:
    digest = simulator.live(5, plan_for(5)).digest
    command = [sys.executable, "-m", "matoolkit", "simulate", "--seed", "5"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert digest[:16] in told.stdout


def test_a_history_of_the_safety_kind_ends_while_faults_strike(simulator: Simulator) -> None:
    outcome = simulator.live(9, Plan(mode=Mode.SAFETY))
    assert outcome.violations == ()
    assert outcome.faults
