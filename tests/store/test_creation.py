"""Batches and members as they come and go."""

from __future__ import annotations

import pytest

from matoolkit.store import creation as store
from matoolkit.store.database import GuardFailed
from matoolkit.store.schema import batch_members, batches, phase_executions
from matoolkit.store.states import MemberStatus
from tests.store.world import LATER, NOW, World

ANNA = ("Anna@X", "anna@x", '{"n": 1}')
BERT = ("Bert@X", "bert@x", '{"n": 2}')


def test_a_batch_is_hidden_until_it_is_loaded(world: World) -> None:
    with world.database.transaction() as tx:
        batch = store.create_batch(
            tx, world.runbook, name_folded="wave", start_time=NOW, now=LATER, is_manual=True, created_by="anna"
        )
    row = world.row(batches, batch)
    assert (row["status"], row["loaded_at"], row["detected_at"], row["batch_start_time"]) == (
        "detected",
        None,
        LATER,
        NOW,
    )
    assert (row["is_manual"], row["created_by"], row["winding_up"]) == (True, "anna", False)
    with world.database.transaction() as tx:
        store.loaded(tx, batch, LATER)
    assert world.row(batches, batch)["loaded_at"] == LATER
    with pytest.raises(GuardFailed), world.database.transaction() as tx:
        store.loaded(tx, batch, NOW)


def test_members_are_added_where_they_are_not_there_yet(world: World) -> None:
    batch, other = world.batch(), world.batch()
    with world.database.transaction() as tx:
        store.add_members(tx, batch, [ANNA], NOW, late=False)
        store.add_members(tx, batch, [BERT, ("ANNA@x", "anna@x", "{}")], LATER, late=True)
        store.add_members(tx, other, [ANNA], NOW, late=False)
        store.add_members(tx, batch, [], NOW, late=False)
    found = [
        (row["batch_id"], row["member_key"], row["data_json"], row["catch_up_due"], row["add_dispatched_at"])
        for row in world.rows(batch_members)
    ]
    assert found == [
        (batch, "Anna@X", '{"n": 1}', False, None),
        (batch, "Bert@X", '{"n": 2}', True, LATER),
        (other, "Anna@X", '{"n": 1}', False, None),
    ]
    first = world.rows(batch_members)[0]
    assert (first["status"], first["generation"], first["added_at"], first["removal_due"]) == ("active", 1, NOW, False)


def test_those_who_came_late_are_known(world: World) -> None:
    batch = world.batch()
    with world.database.transaction() as tx:
        store.add_members(tx, batch, [ANNA], NOW, late=False)
        store.add_members(tx, batch, [BERT], NOW, late=True)
        bert = store.late_members(tx, batch, [ANNA, BERT])
        assert [(key, generation) for _, key, generation in bert] == [("Bert@X", 1)]
        assert store.late_members(tx, world.runbook.id + 4711, [BERT]) == []
        assert store.late_members(tx, batch, []) == []


def test_phases_are_added_pending(world: World) -> None:
    batch = world.batch()
    with world.database.transaction() as tx:
        store.add_phases(tx, batch, 3, [{"phase_name": name, "offset_minutes": 5, "due_at": NOW} for name in "ab"])
        store.add_phases(tx, batch, 3, [])
    found = [(row["phase_name"], row["runbook_version"], row["status"]) for row in world.rows(phase_executions)]
    assert found == [("a", 3, "pending"), ("b", 3, "pending")]


@pytest.mark.parametrize("status", MemberStatus)
def test_active_members_leave_and_nobody_else(world: World, status: MemberStatus) -> None:
    batch = world.batch()
    first, second, third = world.members(batch)
    world.set(batch_members, first, status=status, catch_up_due=True)
    before = world.row(batch_members, first), world.row(batch_members, third)
    with world.database.transaction() as tx:
        found = store.remove_members(tx, [second, first, first, 4711], LATER, by="anna")
        assert store.remove_members(tx, [], LATER, by="anna") == []
    keys = {row["id"]: row["member_key"] for row in world.rows(batch_members)}
    left = [first, second] if status == MemberStatus.ACTIVE else [second]
    assert found == [(each, batch, keys[each], 1) for each in left]
    change = {"status": "removed", "removed_at": LATER, "removed_by": "anna", "remove_dispatched_at": LATER}
    change |= {"removal_due": True, "catch_up_due": False}
    assert world.row(batch_members, first) == before[0] | (change if status == MemberStatus.ACTIVE else {})
    assert world.row(batch_members, third) == before[1]


@pytest.mark.parametrize("status", MemberStatus)
def test_removed_members_come_back_and_nobody_else(world: World, status: MemberStatus) -> None:
    batch = world.batch()
    (member,) = world.members(batch, 1)
    world.set(batch_members, member, status=status, removed_at=NOW, removed_by="anna", worker_data_json="{}")
    world.set(batch_members, member, generation=2)
    before = world.row(batch_members, member)
    with world.database.transaction() as tx:
        found = store.reactivate_members(tx, [(member, '{"n": 3}'), (4711, "{}")], LATER)
        assert store.reactivate_members(tx, [], LATER) == []
    back = status == MemberStatus.REMOVED
    assert found == ([(member, batch, before["member_key"], 3)] if back else [])
    change = {"status": "active", "generation": 3, "data_json": '{"n": 3}', "worker_data_json": None}
    change |= {"removed_at": None, "removed_by": None, "add_dispatched_at": LATER, "catch_up_due": True}
    assert world.row(batch_members, member) == before | (change if back else {})


def test_fresh_data_replaces_what_was_there(world: World) -> None:
    first, second, third = world.members(world.batch())
    with world.database.transaction() as tx:
        store.refresh_members(tx, [(first, '{"n": 1}'), (third, '{"n": 3}')])
        store.refresh_members(tx, [])
    assert world.column(batch_members, "data_json") == {first: '{"n": 1}', second: "{}", third: '{"n": 3}'}
