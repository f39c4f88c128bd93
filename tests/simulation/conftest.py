"""One simulator for all tests of a process: what it keeps from history to history belongs to none of them."""

from __future__ import annotations

import pytest

from matoolkit.simulation.history import Simulator


@pytest.fixture(scope="session")
def simulator() -> Simulator:
    """Lives histories."""
    return Simulator()
