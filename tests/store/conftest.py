"""What tests of the store stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.world import World

if TYPE_CHECKING:
    from matoolkit.store.database import Database


@pytest.fixture
def world(database: Database) -> World:
    """A small world on each kind of database."""
    return World(database)
