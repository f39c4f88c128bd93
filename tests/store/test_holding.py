"""Removals that are held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.store import creation, holding
from matoolkit.store.schema import batch_members
from matoolkit.store.states import MemberStatus
from tests.store.world import LATER, NOW, World

if TYPE_CHECKING:
    from matoolkit.store.database import Database


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def test_only_active_members_are_held_and_the_first_time_counts(world: World) -> None:
    batch = world.batch()
    first, second, third = world.members(batch)
    world.set(batch_members, second, status=MemberStatus.FAILED)
    with world.database.transaction() as tx:
        holding.hold(tx, [first, second], NOW)
        holding.hold(tx, [first, third], LATER)
        found = [(each.id, each.removal_held_at) for each in holding.held(tx, batch, after=0, size=10)]
        assert found == [(first, NOW), (third, LATER)]
        assert holding.counts(tx, [batch, batch + 1]) == {batch: 2}
        assert [each.id for each in holding.held(tx, batch, after=first, size=1)] == [third]


def test_who_ended_is_not_held_any_more(world: World) -> None:
    batch = world.batch()
    first, second, _third = world.members(batch)
    with world.database.transaction() as tx:
        holding.hold(tx, [first, second], NOW)
    world.set(batch_members, first, status=MemberStatus.COMPLETED)
    with world.database.transaction() as tx:
        assert holding.counts(tx, [batch]) == {batch: 1}
        holding.unhold(tx, [second])
        assert holding.counts(tx, [batch]) == {}


def test_a_release_removes_only_who_is_held(world: World) -> None:
    batch = world.batch()
    first, second, third = world.members(batch)
    with world.database.transaction() as tx:
        holding.hold(tx, [first, second], NOW)
        holding.unhold(tx, [second])
        gone = creation.remove_members(tx, [first, second, third], LATER, by="anna", released=True)
    assert [member for member, *_rest in gone] == [first]
    assert world.row(batch_members, first)["removal_held_at"] is None


def test_what_was_seen_is_not_taken_back(world: World) -> None:
    seen, hidden = world.batch(), world.batch(loaded=False)
    kept, taken = world.members(seen), world.members(hidden)
    with world.database.transaction() as tx:
        creation.take_back(tx, seen, kept)
        creation.take_back(tx, hidden, taken)
    assert sorted(world.column(batch_members, "status")) == kept
