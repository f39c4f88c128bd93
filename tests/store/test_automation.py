"""The switch for new batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.store import automation
from matoolkit.store.automation import Automation
from tests.store.world import LATER, NOW

if TYPE_CHECKING:
    from matoolkit.store.database import Database


def test_where_nobody_ever_said_batches_are_made(database: Database) -> None:
    with database.reading() as tx:
        assert automation.read(tx, "Wave") == Automation(automation_enabled=True)
        assert automation.switched_off(tx) == frozenset()


def test_both_directions_remember_who_was_last(database: Database) -> None:
    with database.transaction() as tx:
        automation.switch(tx, "Wave", enabled=False, now=NOW, by="anna")
        assert automation.switched_off(tx) == frozenset({"wave"})
        automation.switch(tx, "WAVE", enabled=True, now=LATER, by="bob")
        found = automation.read(tx, "wave")
        assert automation.switched_off(tx) == frozenset()
    assert found == Automation(
        automation_enabled=True, enabled_at=LATER, enabled_by="bob", disabled_at=NOW, disabled_by="anna"
    )
