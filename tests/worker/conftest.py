"""A workplace on each kind of database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.worker.workplace import Gate, Workplace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database


@pytest.fixture
def workplace(database: Database) -> Iterator[Workplace]:
    made = Workplace(database)
    yield made
    made.bus.close()


@pytest.fixture
def gate() -> Gate:
    return Gate()
