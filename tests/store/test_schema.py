"""The schema refuses what must never be, whoever writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import CheckConstraint, Table, insert

from matoolkit.messages import Kind
from matoolkit.store.errors import RuleBroken, TransactionConflict
from matoolkit.store.executions import EXECUTIONS
from matoolkit.store.schema import (
    batch_members,
    batches,
    init_executions,
    metadata,
    phase_executions,
    rollback_executions,
    runbooks,
    step_executions,
)
from matoolkit.store.states import (
    BatchStatus,
    ExecutionStatus,
    MemberStatus,
    PhaseStatus,
    SequenceStatus,
    SkipReason,
)
from tests.store.world import NOW, World, publish

if TYPE_CHECKING:
    from enum import StrEnum

STATES: list[tuple[Table, str, type[StrEnum]]] = [
    (batches, "status", BatchStatus),
    (batch_members, "status", MemberStatus),
    (phase_executions, "status", PhaseStatus),
    (phase_executions, "skip_reason", SkipReason),
    (step_executions, "status", ExecutionStatus),
    (step_executions, "rollback_status", SequenceStatus),
    (init_executions, "rollback_status", SequenceStatus),
]


@pytest.fixture
def one_of_each(world: World) -> dict[str, int]:
    batch = world.batch()
    members = world.members(batch, 2)
    phase = world.phase(batch)
    steps = world.steps(phase, members)
    return {
        "batches": batch,
        "batch_members": members[0],
        "phase_executions": phase,
        "step_executions": steps[members[0]][0],
        "second_step": steps[members[0]][1],
        "other_step": steps[members[1]][0],
        "init_executions": world.execution(Kind.INIT, batch),
    }


@pytest.mark.parametrize(("table", "column", "states"), STATES, ids=lambda value: getattr(value, "name", None))
def test_a_state_is_one_of_the_known_ones(
    world: World, one_of_each: dict[str, int], table: Table, column: str, states: type[StrEnum]
) -> None:
    row = one_of_each[table.name]
    for state in states:
        world.set(table, row, **{column: state})
    for unknown in ("bored", "", f"{next(iter(states))} "):
        with pytest.raises(RuleBroken, match=rf"ck_{table.name}_{column}"):
            world.set(table, row, **{column: unknown})


def test_every_column_of_states_has_its_check() -> None:
    checked = {f"{each.table.name}.{str(each.sqltext).split()[0]}" for each in checks()}
    assert {f"{table.name}.{column}" for table, column, _ in STATES} <= checked
    for executions in EXECUTIONS.values():
        assert f"{executions.table.name}.status" in checked


def checks() -> list[CheckConstraint]:
    found: list[CheckConstraint] = []
    for table in metadata.tables.values():
        found += [each for each in table.constraints if isinstance(each, CheckConstraint)]
    return found


def test_a_member_has_one_job_out_at_most(world: World, one_of_each: dict[str, int]) -> None:
    world.set(step_executions, one_of_each["step_executions"], job_out=True)
    with pytest.raises(TransactionConflict):
        world.set(step_executions, one_of_each["second_step"], job_out=True)
    world.set(step_executions, one_of_each["other_step"], job_out=True)
    world.set(step_executions, one_of_each["step_executions"], job_out=False)
    world.set(step_executions, one_of_each["second_step"], job_out=True)


def test_a_batch_is_one_by_runbook_name_and_start_but_manual_ones_are_many(world: World) -> None:
    row = {"runbook_id": world.runbook.id, "runbook_name_folded": "wave", "detected_at": NOW}

    def write(**values: Any) -> None:
        with world.database.transaction() as tx:
            tx.connection.execute(insert(batches), {**row, **values})

    write(batch_start_time=NOW, is_manual=False)
    with pytest.raises(TransactionConflict):
        write(batch_start_time=NOW, is_manual=False)
    write(batch_start_time=NOW, is_manual=False, runbook_name_folded="another")
    write(batch_start_time=NOW, is_manual=True)
    write(batch_start_time=NOW, is_manual=True)


def test_a_member_s_key_is_there_once_in_a_batch(world: World) -> None:
    first, second = world.batch(), world.batch()
    row = {"member_key": "A", "member_key_folded": "a", "data_json": "{}", "added_at": NOW}

    def write(batch: int, **values: Any) -> None:
        with world.database.transaction() as tx:
            tx.connection.execute(insert(batch_members), {**row, "batch_id": batch, **values})

    write(first)
    write(second)
    with pytest.raises(TransactionConflict):
        write(first, member_key="a")


def test_one_version_of_a_runbook_is_active(world: World) -> None:
    with world.database.transaction() as tx:
        publish(tx)
    with pytest.raises(TransactionConflict):
        world.set(runbooks, world.runbook.id, is_active=True)


def test_a_step_has_its_place_once(world: World, one_of_each: dict[str, int]) -> None:
    with pytest.raises(TransactionConflict):
        world.set(step_executions, one_of_each["second_step"], step_index=0)
    world.set(step_executions, one_of_each["second_step"], step_index=0, generation=2)


def test_a_rollback_undoes_one_thing(world: World, one_of_each: dict[str, int]) -> None:
    step, init = one_of_each["step_executions"], one_of_each["init_executions"]
    given: dict[str, Any] = {"rollback_name": "undo", "batch": one_of_each["batches"]}
    for both in ({}, {"step_execution_id": step, "init_execution_id": init}):
        with pytest.raises(RuleBroken, match="one_parent"):
            world.execution(Kind.ROLLBACK, **given, **both)
    world.execution(Kind.ROLLBACK, **given, step_execution_id=step)
    world.execution(Kind.ROLLBACK, **given, init_execution_id=init)
    with pytest.raises(TransactionConflict):
        world.execution(Kind.ROLLBACK, **given, step_execution_id=step)
    with pytest.raises(TransactionConflict):
        world.execution(Kind.ROLLBACK, **given, init_execution_id=init)
    assert len(world.rows(rollback_executions)) == 2


def test_a_step_of_init_or_of_a_removal_has_its_place_once(world: World, one_of_each: dict[str, int]) -> None:
    batch, member = one_of_each["batches"], one_of_each["batch_members"]
    with pytest.raises(TransactionConflict):
        world.execution(Kind.INIT, batch)
    world.execution(Kind.INIT, batch, runbook_version=2)
    world.execution(Kind.REMOVAL, batch, batch_member_id=member, generation=1)
    with pytest.raises(TransactionConflict):
        world.execution(Kind.REMOVAL, batch, batch_member_id=member, generation=1)
    world.execution(Kind.REMOVAL, batch, batch_member_id=member, generation=2)


def test_the_text_of_people_s_names_and_data_is_unicode_on_azure_sql() -> None:
    from devtools.golden_statements import FOLDER

    schema = (FOLDER / "schema.sql").read_text()
    for column in ("member_key", "member_key_folded", "phase_name", "body", "data_json", "actor", "target"):
        assert f" {column} NVARCHAR" in schema
        assert f" {column} VARCHAR" not in schema
