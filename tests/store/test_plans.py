"""The hot paths find their rows by an index, on 50,000 steps: nothing there grows with the size of a wave."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from sqlalchemy import event, func, select, text

from matoolkit.store import (
    batch_lists,
    batches,
    due,
    executions,
    levels,
    locking,
    member_lists,
    members,
    overview,
    phases,
    places,
    roster,
    sequences,
    stuck,
    whereabouts,
)
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from matoolkit.store.executions import ENDED, PLANNED, SENT, WAITING
from matoolkit.store.locking import IDS
from matoolkit.store.members import GENERATIONS
from matoolkit.store.migrate import migrate
from matoolkit.store.schema import batch_members, step_executions
from matoolkit.store.states import ExecutionStatus, MemberStatus
from tests.store.crowd import MEMBERS, Crowd, gather
from tests.store.world import LATER, NOW, planned_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from devtools.postgres import PostgresServer
    from matoolkit.store.rows import Rows

# Each takes milliseconds; this is for machines that are busy with other tests.
SECONDS = 2.0
KINDS = ["sqlite", "sqlite without statistics", "postgresql", "postgresql without statistics"]
LARGE = ("step_executions", "batch_members", "rollback_executions", "removal_executions", "other")


class Hot(NamedTuple):
    """A statement of the hot path, and what it is given."""

    statement: Any
    rows: Rows | None = None
    values: Sequence[Sequence[Any]] = ()
    parameters: dict[str, Any] = {}  # noqa: RUF012 - not changed


@pytest.fixture(scope="module", params=KINDS)
def crowd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    kind, _, without = request.param.partition(" ")
    if kind == "sqlite":
        database = open_database(in_file(tmp_path_factory.mktemp("crowd") / "matoolkit.db"), durable=False)
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        database = open_database(server.create_database("crowd"))
    migrate(database)
    yield gather(database, statistics=not without)
    database.close()
    if kind == "postgresql":
        server.drop_database("crowd")


def hot_paths(crowd: Crowd) -> dict[str, Hot]:
    # One step of each member, and that number of members.
    some = [(number,) for number in range(3001, 3601, 3)]
    stays = [(number, 1) for number in range(101, 301)]
    ended = [(number, "job", "succeeded", "{}", None) for (number,) in some]
    waiting = [(number, "job", NOW, "{}", "why") for (number,) in some]
    sent = [(number, "pending", "dispatched", "job", "Do-It", "{}", 0) for (number,) in some]
    few = some[:50]
    planned = [planned_row(step_index=index, batch_id=crowd.batch, parent_id=crowd.phases[2]) for index in range(5)]
    window = {"after": 4000, "size": 500}
    steps, rollbacks, removals = executions.steps, executions.rollbacks, executions.removals
    return {
        "steps by id": Hot(steps.reading, IDS, some),
        "a member's next step": Hot(steps.first_open["member"], IDS, some),
        "a step ends": Hot(steps.ending, ENDED, ended, {"now": NOW}),
        "a step is sent": Hot(steps.sending, SENT, sent, {"now": NOW, "not_after": LATER}),
        "a step polls": Hot(steps.polling, WAITING, waiting, {"now": NOW}),
        "a step is retried": Hot(steps.retrying, WAITING, waiting),
        "a cancelled step's result": Hot(steps.recording, ENDED, ended, {"now": NOW}),
        "the next rollback of a step": Hot(rollbacks.first_open["failed_step"], IDS, few),
        "the next removal of a member": Hot(removals.first_open["member"], IDS, few),
        "members are locked": Hot(locking.LOCK_MEMBERS, IDS, some),
        "members by id": Hot(members.READ, IDS, some),
        "the next members of a batch": Hot(members.READ_CHUNK, parameters={"batch": crowd.batch, **window}),
        "members owed catch-up": Hot(members.OWED_CATCH_UP, parameters={"size": 500}),
        "members owed removal": Hot(members.OWED_REMOVAL, parameters={"size": 500}),
        "members caught up": Hot(members.CAUGHT_UP, GENERATIONS, stays),
        "a member's outputs": Hot(members.REMEMBER_OUTPUTS, members.OUTPUTS, [(each, "{}") for (each,) in some]),
        "phases that may close": Hot(phases.CLOSABLE_AMONG, IDS, [(each,) for each in crowd.phases]),
        "phases nobody closed": Hot(phases.CLOSABLE, parameters={"size": 100}),
        "a chunk of steps": Hot(
            phases.WRITE_CHUNK, PLANNED, planned, {"batch": crowd.batch, "after": 4000, "through": 4500}
        ),
        "a member catches up": Hot(phases.WRITE_CATCH_UP, PLANNED, planned, {"member": 17}),
        "members' steps are cancelled": Hot(phases.CANCEL_STEPS, IDS, some, {"now": NOW}),
        "phases that are due": Hot(due.PHASES_DUE, parameters={"now": LATER}),
        "polls that are due": Hot(due.POLLS_DUE, parameters={"now": LATER, "size": 500}),
        "members with work and nothing under way": Hot(stuck.IDLE, parameters={"before": NOW, **window}),
        "how far that look got": Hot(stuck.LAST_LOOKED_AT, parameters=window),
        **{
            f"{kind} jobs that are lost": Hot(statement, parameters={"before": NOW, "size": 500})
            for kind, statement in stuck.LOST_JOBS.items()
        },
        "batches with nothing left": Hot(batches.DONE_AMONG, IDS, [(crowd.batch,)]),
        "batches nobody closed": Hot(batches.DONE, parameters={"size": 100}),
        "batches with phases to come": Hot(batches.WITH_PHASES_TO_COME, IDS, [(crowd.batch,)]),
        "members with a job out": Hot(sequences.BUSY_OR_LEAVING, IDS, some),
        **looked_at(crowd),
    }


def looked_at(crowd: Crowd) -> dict[str, Hot]:
    """What people look at while a wave runs."""
    page = {"batch": crowd.batch, "after": 4000, "skip": 0, "size": 100}
    everywhere, running = {**page, "phases_given": 0}, [(crowd.phases[1],)]
    one_member = {"after": 0, "skip": 0, "size": 100, "phases_given": 0, "member": 17, "state": None}
    levelled = {"before": NOW}
    keys = [(f"user{number}@example.test",) for number in range(200)]
    lists, states = member_lists, ExecutionStatus
    return {
        "members with nothing under way, counted": Hot(levels.IDLE, parameters={"batch": crowd.batch, **levelled}),
        "members under way, counted": Hot(levels.ACTIVE, parameters={"batch": crowd.batch}),
        "jobs that are out for long, counted": Hot(levels.SILENT, parameters=levelled),
        "removals held, counted": Hot(levels.HELD),
        "phases past their time, counted": Hot(levels.OVERDUE, parameters=levelled),
        "a page of members": Hot(lists.MEMBERS, parameters=page),
        "a page of failed members": Hot(lists.MEMBERS_IN[MemberStatus.FAILED], parameters=page),
        "a member by key": Hot(lists.MEMBER_BY_KEY, parameters={"batch": crowd.batch, "key": "user7@example.test"}),
        "a page of steps": Hot(lists.STEPS, IDS, [], everywhere),
        "a page of failed steps": Hot(lists.STEPS_IN[states.FAILED], IDS, [], everywhere),
        "a page of polling steps": Hot(lists.STEPS_IN[states.POLLING], IDS, running, everywhere),
        "a page of steps that went well": Hot(lists.STEPS_IN[states.SUCCEEDED], IDS, [], everywhere),
        "the number of steps": Hot(lists.COUNT_STEPS, IDS, [], everywhere),
        "the number of failed steps": Hot(lists.COUNT_STEPS_IN[states.FAILED], IDS, [], everywhere),
        "the number of pending steps": Hot(lists.COUNT_STEPS_IN[states.PENDING], IDS, running, everywhere),
        "a member's steps": Hot(lists.STEPS_OF_MEMBER, IDS, [], one_member),
        "where members are": Hot(lists.FIRST_OPEN, IDS, [(number,) for number in range(1, 200)]),
        "members' rollbacks": Hot(lists.OPEN_ROLLBACKS, IDS, [(number,) for number in range(1, 200)]),
        "members' removals": Hot(lists.OPEN_REMOVALS, IDS, [(number,) for number in range(1, 200)]),
        "members by state": Hot(batch_lists.MEMBERS_BY_STATUS, IDS, [(crowd.batch,)]),
        "removals that are held": Hot(batch_lists.HELD, parameters={"batch": crowd.batch}),
        **{
            f"failures alike, of a {kind}": Hot(each, parameters={"batch": crowd.batch, "size": 100})
            for kind, each in overview.FAILURES.items()
        },
        "where a person is": Hot(
            whereabouts.PLACES, parameters={"key": "user7@example.test", "before": 2**62, "skip": 0, "size": 20}
        ),
        "a member closely": Hot(whereabouts.MEMBER, parameters={"batch": crowd.batch, "member": 17}),
        "a member's history": Hot(whereabouts.STEPS, parameters={"member": 17}),
        "what was undone of a member's": Hot(whereabouts.ROLLBACKS, parameters={"member": 17}),
        "what was done as a member left": Hot(whereabouts.REMOVALS, parameters={"member": 17}),
        "held removals everywhere": Hot(overview.HELD, parameters={"size": 50}),
        "phases to come": Hot(overview.NEXT_PHASES, parameters={"size": 50}),
        "workers that are named by open steps": Hot(overview.WAITED_FOR),
        "keys that a batch has": Hot(places.OF_KEYS, roster.KEYS, keys, {"batch": crowd.batch}),
    }


HOT_PATHS = sorted(hot_paths(Crowd(None, 1, [1, 2, 3])))  # type: ignore[arg-type]  # only for the names


def run(crowd: Crowd, hot: Hot) -> tuple[float, list[str]]:
    """How long the statement takes, and the lines of its plan; whatever it changes is undone."""
    caught: list[tuple[str, Any]] = []

    def catch(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        caught.append((statement, parameters))

    given = {} if hot.rows is None else hot.rows.bind(crowd.database.dialect, hot.values)
    with crowd.database.engine.connect() as connection:
        event.listen(connection, "before_cursor_execute", catch)
        started = time.perf_counter()
        result = connection.execute(hot.statement, {**given, **hot.parameters})
        if result.returns_rows:
            result.all()
        seconds = time.perf_counter() - started
        connection.rollback()
        explain = "EXPLAIN QUERY PLAN " if crowd.database.dialect == "sqlite" else "EXPLAIN (GENERIC_PLAN) "
        statement, parameters = caught[0]
        lines = [str(row[-1]) for row in connection.exec_driver_sql(explain + statement, parameters)]
    return seconds, lines


FILTERED = r"[iu]x_\w+_(owed|leaving|poll|open|out|in_flight|failed|held)\b"


def full_scans(plan: list[str]) -> list[str]:
    """Where a plan goes through all rows of a large table; going through a filtered index is not that."""
    tables = "|".join(LARGE)
    found: list[str] = []
    for line, below in zip(plan, [*plan[1:], ""], strict=True):
        by_index = re.search(rf"Index (?:Only )?Scan .*using (\w+) on .*\b(?:{tables})\b", line)
        sqlite = re.match(rf"SCAN (?:{tables})\b(.*)", line)
        if (
            re.search(rf"Seq Scan on (?:{tables})\b", line)
            # In the order of an index, but from one end to the other.
            or (by_index and "Index Cond" not in below and not re.match(FILTERED, by_index[1]))
            or (sqlite and not re.search(rf"USING (?:COVERING )?INDEX {FILTERED}", sqlite[1]))
        ):
            found.append(line)
    return found


def test_the_crowd_is_as_large_as_it_should_be(crowd: Crowd) -> None:
    with crowd.database.reading() as tx:
        assert tx.execute(select(func.count()).select_from(batch_members)).scalar() == MEMBERS
        by_status = tx.execute(select(step_executions.c.status, func.count()).group_by(step_executions.c.status)).all()
    assert sum(row[1] for row in by_status) == 5 * MEMBERS
    assert {row[0] for row in by_status} == {"pending", "dispatched", "polling", "succeeded", "cancelled"}


@pytest.mark.parametrize("name", HOT_PATHS)
def test_it_finds_its_rows_by_an_index(crowd: Crowd, name: str) -> None:
    seconds, plan = run(crowd, hot_paths(crowd)[name])
    assert full_scans(plan) == [], "\n".join(plan)
    assert seconds < SECONDS


def test_a_full_scan_would_be_seen(crowd: Crowd) -> None:
    for statement in (
        select(step_executions.c.id).where(step_executions.c.error_message == "x"),
        select(func.count(batch_members.c.data_json)),
        text("SELECT other.id FROM step_executions AS other WHERE other.error_message = 'x'"),
        select(step_executions.c.id).where(step_executions.c.error_message == "x").order_by(step_executions.c.id),
    ):
        assert full_scans(run(crowd, Hot(statement))[1])


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("phases that may close", "ix_step_executions_open"),
        ("members owed removal", "ix_batch_members_leaving"),
        ("polls that are due", "ix_step_executions_poll"),
        ("a page of failed steps", "ix_step_executions_failed"),
        ("the number of pending steps", "ix_step_executions_open"),
        ("a page of failed members", "ix_batch_members_status"),
        ("a page of steps", "ix_step_executions_batch"),
        ("a member's steps", "ux_step_executions_place"),
    ],
)
def test_filtered_indexes_are_really_used(crowd: Crowd, name: str, index: str) -> None:
    _, plan = run(crowd, hot_paths(crowd)[name])
    assert any(index in line for line in plan), "\n".join(plan)
