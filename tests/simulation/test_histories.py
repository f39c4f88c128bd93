"""Whole histories with every kind of fault: nothing forbidden ever happens, and everything comes to its end."""

from __future__ import annotations

import pytest

from matoolkit.simulation.soak import live_all

_HISTORIES, _AT_ONCE = 520, 20


@pytest.mark.parametrize("first", range(0, _HISTORIES, _AT_ONCE))
def test_histories_break_no_invariant(first: int) -> None:
    report = live_all(range(first, first + _AT_ONCE))
    assert report.histories == _AT_ONCE
    assert report.failures == []
    assert report.coverage.unknown() == []
