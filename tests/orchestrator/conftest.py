"""A wave on each kind of database, held to the invariants when its test has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.orchestrator.driver import Wave
from tests.orchestrator.rivals import Duel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database


@pytest.fixture
def database(kept_database: Database) -> Database:
    return kept_database


@pytest.fixture
def wave(database: Database) -> Iterator[Wave]:
    wave = Wave(database)
    yield wave
    wave.check()
    wave.bus.close()


@pytest.fixture
def duel(wave: Wave) -> Iterator[Duel]:
    duel = Duel(wave)
    yield duel
    duel.close()
