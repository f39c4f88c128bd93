"""Dying at every commit of a scenario, before it and after it, loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.simulation.crash_points import every_crash

if TYPE_CHECKING:
    from matoolkit.simulation.history import Simulator

_SCENARIOS = (3, 7, 11)
_FEWEST = 40
"""Deaths that a scenario must offer, or it is not worth its name."""


@pytest.mark.parametrize("seed", _SCENARIOS)
def test_every_crash_point_of_a_scenario_loses_nothing(simulator: Simulator, seed: int) -> None:
    crashes = list(every_crash(simulator, seed))
    assert len(crashes) >= _FEWEST
    assert [crash for crash in crashes if crash.violations] == []
