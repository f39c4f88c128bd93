"""Members: who is found, locked and moved, and who is left alone."""

from __future__ import annotations

import pytest

from matoolkit.store import members as store
from matoolkit.store.database import GuardFailed
from matoolkit.store.schema import batch_members
from matoolkit.store.states import MemberStatus
from tests.store.world import LATER, World


@pytest.mark.parametrize("status", MemberStatus)
@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (store.fail, {"status": "failed", "failed_at": LATER}),
        (store.complete, {"status": "completed", "completed_at": LATER}),
    ],
)
def test_only_active_members_are_moved(world: World, move: object, expected: object, status: MemberStatus) -> None:
    member, other = world.members(world.batch(), 2)
    world.set(batch_members, member, status=status)
    before = world.row(batch_members, member), world.row(batch_members, other)
    with world.database.transaction() as tx:
        move(tx, [member, 4711], LATER)  # type: ignore[operator]
        move(tx, [], LATER)  # type: ignore[operator]
    changes = expected if status == MemberStatus.ACTIVE else {}
    assert world.row(batch_members, member) == before[0] | changes  # type: ignore[operator]
    assert world.row(batch_members, other) == before[1]


def test_members_are_read_by_id(world: World) -> None:
    batch = world.batch()
    first, second = world.members(batch, 2)
    world.set(batch_members, second, status="removed", worker_data_json='{"a": 1}', removal_due=True)
    with world.database.reading() as tx:
        found = store.read(tx, [second, first, second, 4711])
        assert store.read(tx, []) == {}
    assert set(found) == {first, second}
    assert found[first].is_active
    assert (found[first].generation, found[first].catch_up_due, found[first].batch_id) == (1, False, batch)
    assert not found[second].is_active
    assert (found[second].worker_data_json, found[second].removal_due) == ('{"a": 1}', True)


def test_a_chunk_is_the_next_active_members_of_a_batch(world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 6)
    world.members(world.batch(), 2)
    world.set(batch_members, members[1], status="removed")
    world.set(batch_members, members[2], catch_up_due=True)
    with world.database.transaction() as tx:
        assert list(store.lock_chunk(tx, batch, 0, 3)) == [members[0], members[2], members[3]]
        assert list(store.lock_chunk(tx, batch, members[3], 3)) == [members[4], members[5]]
        assert store.lock_chunk(tx, batch, members[5], 3) == {}


def test_outputs_are_remembered_and_a_member_that_is_not_there_is_noticed(world: World) -> None:
    first, second, third = world.members(world.batch())
    with world.database.transaction() as tx:
        store.remember(tx, {first: '{"MailboxId": "ü"}', second: "{}"})
        store.remember(tx, {})
    assert world.column(batch_members, "worker_data_json") == {first: '{"MailboxId": "ü"}', second: "{}", third: None}
    with pytest.raises(GuardFailed), world.database.transaction() as tx:
        store.remember(tx, {first: "gone", 4711: "{}"})
    assert world.row(batch_members, first)["worker_data_json"] == '{"MailboxId": "ü"}'


@pytest.mark.parametrize(
    ("column", "owed", "settle"),
    [
        ("catch_up_due", store.owed_catch_up, store.caught_up),
        ("removal_due", store.owed_removal, store.removal_started),
    ],
)
def test_what_is_owed_is_found_and_settled_for_one_stay(
    world: World, column: str, owed: object, settle: object
) -> None:
    first, second, third, fourth = world.members(world.batch(), 4)
    world.set(batch_members, first, second, third, **{column: True})
    with world.database.reading() as tx:
        found = owed(tx, 10)  # type: ignore[operator]
        assert [each.id for each in found] == [first, second, third]
        assert [each.id for each in owed(tx, 2)] == [first, second]  # type: ignore[operator]
    world.set(batch_members, second, generation=2)  # came back meanwhile: another stay
    with world.database.transaction() as tx:
        settle(tx, found[:2])  # type: ignore[operator]
        settle(tx, [])  # type: ignore[operator]
    assert world.column(batch_members, column) == {first: False, second: True, third: True, fourth: False}


def test_a_batch_s_members_complete_and_come_back_together(world: World) -> None:
    batch, other = world.batch(), world.batch()
    members = world.members(batch)
    elsewhere = world.members(other, 1)
    world.set(batch_members, members[1], status="failed")
    with world.database.transaction() as tx:
        tx.execute(store.COMPLETE_BATCH, batch=batch, now=LATER)
    expected = {members[0]: "completed", members[1]: "failed", members[2]: "completed", elsewhere[0]: "active"}
    assert world.column(batch_members, "status") == expected
    with world.database.transaction() as tx:
        assert sorted(store.completed(tx, batch).values()) == [members[0], members[2]]
        store.reactivate_completed(tx, members)
    assert world.column(batch_members, "status") == expected | {members[0]: "active", members[2]: "active"}
    assert world.row(batch_members, members[0])["completed_at"] is None


def test_members_are_counted_by_status(world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 4)
    world.members(world.batch(), 2)
    world.set(batch_members, members[0], status="removed")
    with world.database.reading() as tx:
        found = [tuple(row) for row in tx.execute(store.COUNT_BY_STATUS, batch=batch)]
    assert found == [("active", 3), ("removed", 1)]
