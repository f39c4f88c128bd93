"""Executions of all four kinds: each change finds the rows that are in the state it expects, and insists on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.messages import Kind
from matoolkit.store.database import GuardFailed
from matoolkit.store.errors import TransactionConflict
from matoolkit.store.executions import EXECUTIONS, rollbacks, steps
from matoolkit.store.schema import step_executions
from matoolkit.store.states import ExecutionStatus
from tests.store.world import LATER, NOW, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.store.database import Transaction
    from matoolkit.store.executions import Executions

AT = LATER
every_kind = pytest.mark.parametrize("kind", list(Kind))


@pytest.fixture
def place(world: World) -> dict[str, Any]:
    """A batch, its members, a phase and a step to belong to."""
    batch = world.batch()
    members = world.members(batch, 3)
    phase = world.phase(batch, "move")
    step = world.steps(phase, members[2:], 1)[members[2]][0]
    return {"batch": batch, "members": members, "phase": phase, "step": step}


def one(world: World, kind: Kind, place: dict[str, Any], number: int = 0, **values: Any) -> int:
    """An execution of a kind where such a one belongs; `number` tells several apart."""
    own: dict[Kind, dict[str, Any]] = {
        Kind.STEP: {
            "phase_execution_id": place["phase"],
            "batch_member_id": place["members"][number],
            "generation": 1,
        },
        Kind.INIT: {},
        Kind.ROLLBACK: {"rollback_name": "undo", "step_execution_id": place["step"]},
        Kind.REMOVAL: {"batch_member_id": place["members"][0], "generation": 1},
    }
    return world.execution(kind, place["batch"], **{"step_index": number, **own[kind], **values})


UNTOUCHED: dict[str, Any] = {
    "job_id": "job",
    "function_name": "Do-It",
    "poll_count": 0,
    "retry_count": 0,
    **dict.fromkeys(("params_json", "result_json", "error_message", "retry_after", "completed_at", "dispatched_at")),
    **dict.fromkeys(("first_dispatched_at", "job_not_after", "poll_started_at", "last_polled_at", "poll_check_at")),
}
Act = tuple["Callable[[Transaction, Executions, int], None]", dict[str, Any], set[tuple[str, bool]], dict[str, Any]]
OUT = {("dispatched", True), ("polling", True)}
EVERY_STATE = {(str(status), out) for status in ExecutionStatus for out in (True, False)}
ACTS: dict[str, Act] = {
    "end": (
        lambda tx, of, row: of.end(tx, [(row, "job", "succeeded", '{"a": 1}', None)], NOW),
        {},
        OUT,
        {"status": "succeeded", "result_json": '{"a": 1}', "error_message": None, "completed_at": NOW, "job_out": False}
        | {"poll_check_at": None},
    ),
    "wait_for_poll": (
        lambda tx, of, row: of.wait_for_poll(tx, [(row, "job", AT, "{}", None)], NOW),
        {},
        OUT,
        {"status": "polling", "poll_check_at": AT, "poll_started_at": NOW, "last_polled_at": NOW, "job_out": False}
        | {"result_json": "{}"},
    ),
    "wait_for_retry": (
        lambda tx, of, row: of.wait_for_retry(tx, [(row, "job", AT, None, "why")]),
        {"poll_count": 3, "poll_started_at": NOW, "last_polled_at": NOW, "retry_count": 1},
        OUT,
        {"status": "pending", "error_message": "why", "retry_after": AT, "retry_count": 2, "job_id": None}
        | {"job_out": False, "poll_count": 0, "poll_started_at": None, "last_polled_at": None, "poll_check_at": None},
    ),
    "record_late": (
        lambda tx, of, row: of.record_late(tx, [(row, "job", "failed", "{}", "late")], NOW),
        {},
        {state for state in EVERY_STATE if state[1]},
        {"status": "cancelled", "result_json": "{}", "error_message": "late", "completed_at": NOW, "job_out": False}
        | {"poll_check_at": None},
    ),
    "send": (
        lambda tx, of, row: of.send(tx, [(row, "pending", "dispatched", "next", "Do-That", "{}", 2)], NOW, LATER),
        {"retry_after": NOW, "poll_check_at": NOW},
        {("pending", False)},
        {"status": "dispatched", "job_id": "next", "job_out": True, "function_name": "Do-That", "params_json": "{}"}
        | {"poll_count": 2, "poll_check_at": None, "retry_after": None, "dispatched_at": NOW, "job_not_after": LATER}
        | {"first_dispatched_at": NOW},
    ),
    "ask again": (
        lambda tx, of, row: of.send(tx, [(row, "polling", "polling", "next", "Do-It", "{}", 2)], NOW, LATER),
        {"first_dispatched_at": LATER},
        {("polling", False)},
        {"status": "polling", "job_id": "next", "job_out": True, "params_json": "{}", "poll_count": 2}
        | {"dispatched_at": NOW, "job_not_after": LATER},
    ),
    "refuse": (
        lambda tx, of, row: of.refuse(tx, [(row, "poll_timeout", "too long")], NOW),
        {"poll_check_at": NOW, "retry_after": NOW},
        {("pending", False), ("polling", False)},
        {"status": "poll_timeout", "error_message": "too long", "completed_at": NOW, "poll_check_at": None}
        | {"retry_after": None},
    ),
}


@pytest.mark.parametrize("name", ACTS)
@every_kind
def test_a_change_finds_only_what_is_in_the_state_it_expects(
    world: World, place: dict[str, Any], kind: Kind, name: str
) -> None:
    act, before, allowed, expected = ACTS[name]
    of = EXECUTIONS[kind]
    row, neighbour = one(world, kind, place), one(world, kind, place, 1, status="dispatched")
    for status, out in sorted(EVERY_STATE):
        world.set(of.table, row, **{**UNTOUCHED, **before, "status": status, "job_out": out})
        was = world.row(of.table, row)
        if (status, out) in allowed:
            with world.database.transaction() as tx:
                act(tx, of, row)
            assert world.row(of.table, row) == was | expected, (status, out)
        else:
            with pytest.raises(GuardFailed), world.database.transaction() as tx:
                act(tx, of, row)
            assert world.row(of.table, row) == was, (status, out)
    assert world.row(of.table, neighbour)["status"] == "dispatched"


@pytest.mark.parametrize("name", ["end", "wait_for_poll", "wait_for_retry", "record_late"])
@every_kind
def test_a_stale_job_id_changes_nothing(world: World, place: dict[str, Any], kind: Kind, name: str) -> None:
    act, *_ = ACTS[name]
    row = one(world, kind, place, status="dispatched", job_out=True, job_id="job-retry-1")
    before = world.row(EXECUTIONS[kind].table, row)
    with pytest.raises(GuardFailed), world.database.transaction() as tx:
        act(tx, EXECUTIONS[kind], row)
    assert world.row(EXECUTIONS[kind].table, row) == before


def test_one_of_a_set_that_is_elsewhere_undoes_the_set(world: World, place: dict[str, Any]) -> None:
    good, stale = (one(world, Kind.STEP, place, n, status="dispatched", job_out=True, job_id="job") for n in (0, 1))
    results = [(good, "job", "succeeded", None, None), (stale, "other", "succeeded", None, None)]
    with pytest.raises(GuardFailed, match="1 of 2"), world.database.transaction() as tx:
        steps.end(tx, results, NOW)
    assert {world.row(step_executions, each)["status"] for each in (good, stale)} == {"dispatched"}


def test_polling_counts_from_its_first_poll_and_sending_from_the_first_job(world: World, place: dict[str, Any]) -> None:
    row = one(world, Kind.STEP, place)
    with world.database.transaction() as tx:
        steps.send(tx, [(row, "pending", "dispatched", "a", "Do-It", "{}", 0)], NOW, LATER)
        steps.wait_for_poll(tx, [(row, "a", LATER, None, None)], NOW)
        steps.send(tx, [(row, "polling", "polling", "b", "Do-It", "{}", 1)], LATER, LATER)
        steps.wait_for_poll(tx, [(row, "b", LATER, None, None)], LATER)
    found = world.row(step_executions, row)
    assert (found["poll_started_at"], found["last_polled_at"], found["poll_count"]) == (NOW, LATER, 1)
    assert (found["first_dispatched_at"], found["dispatched_at"]) == (NOW, LATER)


def test_a_late_result_keeps_the_time_of_the_cancelling(world: World, place: dict[str, Any]) -> None:
    row = one(world, Kind.STEP, place, status="cancelled", job_out=True, job_id="job", completed_at=NOW)
    with world.database.transaction() as tx:
        steps.record_late(tx, [(row, "job", "succeeded", "{}", None)], LATER)
    assert world.row(step_executions, row)["completed_at"] == NOW


def test_a_member_s_second_job_is_refused(world: World, place: dict[str, Any]) -> None:
    first = one(world, Kind.STEP, place)
    second = one(world, Kind.STEP, place, step_index=1)
    out = [(each, "pending", "dispatched", f"job {each}", "Do-It", "{}", 0) for each in (first, second)]
    with pytest.raises(TransactionConflict), world.database.transaction() as tx:
        steps.send(tx, out, NOW, LATER)
    assert world.column(step_executions, "job_out")[first] is False


@every_kind
def test_what_is_read_is_what_was_written(world: World, place: dict[str, Any], kind: Kind) -> None:
    row = one(world, kind, place, params_json='{"a": 1}', retry_after=NOW, job_id="job", is_poll_step=True)
    with world.database.reading() as tx:
        found = EXECUTIONS[kind].read(tx, [row, 4711])
        assert EXECUTIONS[kind].read(tx, []) == {}
    assert set(found) == {row}
    read = found[row]
    assert (read.kind, read.id, read.batch_id, read.status, read.job_id) == (
        kind,
        row,
        place["batch"],
        "pending",
        "job",
    )
    assert (read.params_json, read.retry_after, read.is_poll_step, read.job_out) == ('{"a": 1}', NOW, True, False)
    group = {Kind.STEP: "move", Kind.ROLLBACK: "undo"}.get(kind)
    member = place["members"][0] if kind in (Kind.STEP, Kind.REMOVAL) else None
    assert (read.group, read.member_id) == (group, member)
    assert read.phase_id == (place["phase"] if kind is Kind.STEP else None)
    assert read.generation == (1 if kind in (Kind.STEP, Kind.REMOVAL) else None)
    assert read.failed_step_id == (place["step"] if kind is Kind.ROLLBACK else None)
    assert read.failed_init_id is None


def test_a_member_s_next_step_is_of_the_earliest_phase_and_place(world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 3)
    early, late = world.phase(batch, "early"), world.phase(batch, "late")
    later_steps = world.steps(late, members, 2)  # written first, as catching up may do
    first_steps = world.steps(early, members, 2)
    expected = [
        (first_steps[members[0]][0], "pending"),
        (first_steps[members[0]][1], "polling"),
        (later_steps[members[0]][0], "dispatched"),
        (later_steps[members[0]][1], "pending"),
    ]
    for step, status in expected:
        world.set(step_executions, step, status=status)
        with world.database.reading() as tx:
            found = steps.next_open(tx, members[:2], "member")
            assert steps.next_open(tx, [], "member") == {}
        assert {member: each.id for member, each in found.items()} == {
            members[0]: step,
            members[1]: first_steps[members[1]][0],
        }
        world.set(step_executions, step, status="succeeded")
    with world.database.reading() as tx:
        assert steps.next_open(tx, members[:1], "member") == {}


@pytest.mark.parametrize(
    ("kind", "owner", "own"),
    [
        (Kind.INIT, "batch", lambda place: {}),
        (Kind.REMOVAL, "member", lambda place: {}),
        (Kind.ROLLBACK, "failed_step", lambda place: {}),
    ],
)
def test_the_next_of_another_kind_is_the_first_that_has_not_ended(
    world: World, place: dict[str, Any], kind: Kind, owner: str, own: Any
) -> None:
    of = EXECUTIONS[kind]
    of_owner = {"batch": place["batch"], "member": place["members"][0], "failed_step": place["step"]}[owner]
    rows = [one(world, kind, place, number) for number in (2, 0, 1)]  # not in the order of their ids
    for expected in (rows[1], rows[2], rows[0]):
        with world.database.reading() as tx:
            assert {key: each.id for key, each in of.next_open(tx, [of_owner], owner).items()} == {of_owner: expected}
        world.set(of.table, expected, status="failed")
    with world.database.reading() as tx:
        assert of.next_open(tx, [of_owner], owner) == {}


def test_the_next_rollback_of_a_failed_init(world: World, place: dict[str, Any]) -> None:
    init = one(world, Kind.INIT, place)
    row = one(world, Kind.ROLLBACK, place, step_execution_id=None, init_execution_id=init)
    with world.database.reading() as tx:
        found = rollbacks.next_open(tx, [init], "failed_init")
        assert rollbacks.next_open(tx, [init], "failed_step") == {}
    assert {key: each.id for key, each in found.items()} == {init: row}
    assert (found[init].failed_init_id, found[init].failed_step_id) == (init, None)
