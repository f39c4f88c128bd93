"""The parts as threads: what they do when they have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.bus import EmbeddedBus, Names
from matoolkit.clock import SystemClock
from matoolkit.hosts.parts import SchedulerPart
from matoolkit.store.errors import DatabaseFull

if TYPE_CHECKING:
    import pytest

    from matoolkit.store.database import Database


def test_a_lead_that_cannot_be_given_back_keeps_nobody_from_ending(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    part = SchedulerPart(
        sqlite_database,
        EmbeddedBus(sqlite_database),
        SystemClock(),
        topic=Names().events,
        environment={},
        beat_seconds=1,
    )

    def fail() -> None:
        raise DatabaseFull("the disk is full")

    monkeypatch.setattr(part.scheduler, "step_down", fail)
    part.stopped()
    assert "the disk is full" in caplog.text
