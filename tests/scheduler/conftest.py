"""A town on each kind of database: a scheduler, its source, and everybody who acts on what they find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.orchestrator.conftest import database, kept_postgres, kept_sqlite
from tests.scheduler.town import Town

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database

__all__ = ["database", "kept_postgres", "kept_sqlite"]


@pytest.fixture
def town(database: Database) -> Iterator[Town]:
    town = Town(database)
    yield town
    town.check()
    town.bus.close()


@pytest.fixture
def small_town(kept_sqlite: Database) -> Iterator[Town]:
    """On SQLite only: for rules in which no database plays a part."""
    from tests.orchestrator.conftest import empty

    town = Town(kept_sqlite)
    yield town
    town.check()
    town.bus.close()
    empty(kept_sqlite)
