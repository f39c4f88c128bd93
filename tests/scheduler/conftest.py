"""A town on each kind of database: a scheduler, its source, and everybody who acts on what they find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scheduler.town import Town

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database


@pytest.fixture
def database(kept_database: Database) -> Database:
    return kept_database


@pytest.fixture
def town(database: Database) -> Iterator[Town]:
    town = Town(database)
    yield town
    town.check()
    town.bus.close()


@pytest.fixture
def small_town(emptied_sqlite: Database) -> Iterator[Town]:
    """On SQLite only: for rules in which no database plays a part."""
    town = Town(emptied_sqlite)
    yield town
    town.check()
    town.bus.close()
