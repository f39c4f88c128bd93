"""What should have moved and has not is found, a bounded part at a time."""

from __future__ import annotations

import pytest

from matoolkit.messages import Kind
from matoolkit.store import stuck as store
from matoolkit.store.executions import EXECUTIONS
from matoolkit.store.schema import batch_members, step_executions
from matoolkit.store.states import BatchStatus
from tests.store.world import EARLIER, LATER, NOW, World


@pytest.fixture
def steps(world: World) -> dict[int, list[int]]:
    """Two steps of each of three members; by member."""
    batch = world.batch()
    return world.steps(world.phase(batch), world.members(batch), 2)


def idle(world: World, after: int = 0, size: int = 10) -> tuple[list[int], int]:
    with world.database.reading() as tx:
        found, last = store.idle_members(tx, after, NOW, size)
        batches = {each["id"]: each["batch_id"] for each in world.rows(batch_members)}
        assert all(batch == batches[member] for member, batch in found)
        return [member for member, _ in found], last


def test_members_with_work_and_nothing_under_way_are_idle(world: World, steps: dict[int, list[int]]) -> None:
    assert idle(world) == (list(steps), max(steps))


@pytest.mark.parametrize(
    "values",
    [
        {"status": "dispatched", "job_out": True},
        {"status": "polling"},
        {"status": "pending", "retry_after": LATER},
        {"status": "cancelled", "job_out": True},
    ],
)
def test_one_step_under_way_is_enough_not_to_be(
    world: World, steps: dict[int, list[int]], values: dict[str, object]
) -> None:
    first, second, third = steps
    world.set(step_executions, steps[first][0], **values)
    world.set(step_executions, steps[second][0], retry_after=EARLIER)  # and a retry that is overdue is not
    assert idle(world)[0] == [second, third]


def test_who_is_through_or_gone_is_not_idle(world: World, steps: dict[int, list[int]]) -> None:
    first, second, third = steps
    world.set(step_executions, *steps[first], status="succeeded")
    world.set(batch_members, second, status="removed")
    assert idle(world) == ([third], third)


def test_the_look_goes_on_from_where_it_got_to(world: World, steps: dict[int, list[int]]) -> None:
    first, second, third = steps
    world.set(step_executions, *steps[first], status="succeeded")
    assert idle(world, size=1) == ([], first)
    assert idle(world, after=first, size=1) == ([second], second)
    assert idle(world, after=second, size=1) == ([third], third)
    assert idle(world, after=third, size=1) == ([], 0)


@pytest.mark.parametrize("kind", list(Kind))
def test_jobs_that_should_long_be_back_are_lost(world: World, kind: Kind) -> None:
    batch = world.batch()
    members = world.members(batch, 5)
    step = world.steps(world.phase(batch, "other"), members[:1], 1)[members[0]][0]
    phase = world.phase(batch)

    def one(number: int, **values: object) -> int:
        own: dict[Kind, dict[str, object]] = {
            Kind.STEP: {"phase_execution_id": phase, "batch_member_id": members[number], "generation": 1},
            Kind.INIT: {},
            Kind.ROLLBACK: {"rollback_name": "undo", "step_execution_id": step},
            Kind.REMOVAL: {"batch_member_id": members[number], "generation": 1},
        }
        return world.execution(kind, batch, step_index=number, **{**own[kind], **values})

    out = {"status": "dispatched", "job_out": True, "job_id": "job"}
    second = one(0, **out, job_not_after=EARLIER)
    first = one(1, **out, job_not_after=EARLIER.replace(year=2025))
    one(2, **out, job_not_after=LATER)
    one(3, status="pending", job_not_after=EARLIER)
    cancelled = one(4, status="cancelled", job_out=True, job_not_after=EARLIER)
    with world.database.reading() as tx:
        found = store.lost_jobs(tx, kind, NOW, 10)
        assert [each.id for each in store.lost_jobs(tx, kind, NOW, 1)] == [first]
        assert store.lost_jobs(tx, next(each for each in Kind if each is not kind), NOW, 10) == []
    assert [each.id for each in found] == [first, second, cancelled]
    assert found[0] == read(world, kind, first)


def read(world: World, kind: Kind, row: int) -> object:
    with world.database.reading() as tx:
        return EXECUTIONS[kind].read(tx, [row])[row]


def test_batches_whose_init_is_under_way(world: World) -> None:
    waiting = world.batch(status=BatchStatus.INIT_DISPATCHED)
    again = world.batch(rerunning_init_version=2)
    world.batch()
    world.batch(status=BatchStatus.DETECTED)
    world.batch(status=BatchStatus.INIT_DISPATCHED, loaded=False)
    world.batch(status=BatchStatus.CANCELLED, rerunning_init_version=2)
    with world.database.reading() as tx:
        assert store.waiting_for_init(tx) == [waiting, again]
