"""Leases, as rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from matoolkit.store import leases
from tests.store.world import LATER, NOW

if TYPE_CHECKING:
    from matoolkit.store.database import Database

_LONG = timedelta(minutes=5)


def test_a_lease_is_taken_kept_and_taken_over_when_its_time_is_over(database: Database) -> None:
    with database.transaction() as tx:
        assert leases.read(tx, "tick") is None
        assert leases.take(tx, "tick", "a", NOW, _LONG)
        assert not leases.take(tx, "tick", "b", NOW, _LONG)
        assert leases.keep(tx, "tick", "a", LATER)
        assert not leases.keep(tx, "tick", "b", LATER)
        assert leases.read(tx, "tick") == ("a", LATER)
        assert leases.take(tx, "tick", "b", LATER, _LONG)
        assert (leases.is_held(tx, "tick", "a"), leases.is_held(tx, "tick", "b")) == (False, True)


def test_only_its_holder_can_give_it_back(database: Database) -> None:
    with database.transaction() as tx:
        leases.take(tx, "tick", "a", NOW, _LONG)
        leases.give_back(tx, "tick", "b")
        assert leases.is_held(tx, "tick", "a")
        leases.give_back(tx, "tick", "a")
        assert leases.take(tx, "tick", "b", NOW, _LONG)


def test_leases_of_other_names_are_others(database: Database) -> None:
    with database.transaction() as tx:
        assert leases.take(tx, "tick", "a", NOW, _LONG)
        assert leases.take(tx, "tock", "b", NOW, _LONG)


def test_the_databases_time_is_about_now(postgres_database: Database) -> None:
    with postgres_database.reading() as tx:
        assert abs(leases.database_time(tx) - datetime.now(UTC)) < timedelta(minutes=1)
