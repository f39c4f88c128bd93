"""Who did what, beside what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.store import audit
from matoolkit.store.schema import audit as table
from tests.store.world import NOW

if TYPE_CHECKING:
    from matoolkit.store.database import Database


def test_what_is_recorded_is_there_with_its_detail(database: Database) -> None:
    with database.transaction() as tx:
        audit.record(tx, NOW, "Ännä", "released", "wave", batch_id=7, detail={"members": [1, 2]})
        audit.record(tx, NOW, "bob", "published", "wave")
    with database.reading() as tx:
        rows = [tuple(row)[1:] for row in tx.connection.execute(table.select().order_by(table.c.id))]
    assert rows == [
        (NOW, "Ännä", "released", "wave", 7, '{"members":[1,2]}'),
        (NOW, "bob", "published", "wave", None, None),
    ]


def test_what_is_undone_was_not_done_by_anybody(database: Database) -> None:
    def fails() -> None:
        with database.transaction() as tx:
            audit.record(tx, NOW, "anna", "released", "wave")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    with database.reading() as tx:
        assert tx.connection.execute(table.select()).all() == []
