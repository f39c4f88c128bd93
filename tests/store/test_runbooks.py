"""Published runbooks: versions only grow, one is active, and case does not count in names."""

from __future__ import annotations

import pytest

from matoolkit.store import runbooks as store
from matoolkit.store.schema import runbooks
from tests.store.world import LATER, NOW, World, publish


def test_versions_grow_and_the_newest_is_active(world: World) -> None:
    with world.database.transaction() as tx:
        second = publish(tx, "WAVE", overdue_behavior="ignore", rerun_init=True)
        another = publish(tx, "Another")
        assert [(each.name, each.version) for each in store.active(tx)] == [("Another", 1), ("WAVE", 2)]
    assert (second.version, second.is_active, second.overdue_behavior, second.rerun_init) == (2, True, "ignore", True)
    assert (another.version, another.overdue_behavior, another.rerun_init) == (1, "rerun", False)
    with world.database.reading() as tx:
        first = store.read_version(tx, "wAvE", 1)
        assert store.read_version(tx, "wave", 3) is None
        assert store.read_version(tx, "unknown", 1) is None
    assert first is not None
    assert (first.id, first.name, first.is_active) == (world.runbook.id, "Wave", False)


def test_a_version_that_was_unpublished_does_not_come_again(world: World) -> None:
    world.set(runbooks, world.runbook.id, is_active=False)
    with world.database.transaction() as tx:
        assert store.active(tx) == []
        assert publish(tx).version == 2


@pytest.mark.parametrize(
    ("one", "other"), [("WAVE", "wave"), ("STRASSE", "straße"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("Žluťoučký", "žLUŤOUČKÝ")]
)
def test_names_are_the_same_whatever_their_case(one: str, other: str) -> None:
    assert store.folded(one) == store.folded(other)


def test_who_published_and_where_data_would_be_is_kept(world: World) -> None:
    with world.database.transaction() as tx:
        publish(tx, "Größe 2: " + "x" * 245)
    row = world.rows(runbooks)[-1]
    assert (row["published_by"], row["created_at"]) == ("anna", NOW)
    assert row["data_table_name"].startswith("runbook_grösse_2__xx")
    assert row["data_table_name"].endswith("x_v1")


def test_an_error_is_reported_on_one_version(world: World) -> None:
    with world.database.transaction() as tx:
        publish(tx)
        store.report_error(tx, "WAVE", 1, "the query failed", LATER)
    first, second = world.rows(runbooks)
    assert (first["last_error"], first["last_error_at"]) == ("the query failed", LATER)
    assert (second["last_error"], second["last_error_at"]) == (None, None)
