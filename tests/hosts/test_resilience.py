"""PostgreSQL crashes, or ends everybody's sessions, under load: nothing is lost, and all are soon back at work."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest
from sqlalchemy import text

from devtools.postgres import PostgresServer
from matoolkit.simulation.invariants import ALWAYS, AT_REST, check
from matoolkit.store.database import open_database
from matoolkit.store.errors import DatabaseUnavailable
from tests.hosts.crews import MEMBERS, STEPS, Crew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE = 60.0
"""Seconds without any progress, after which nothing will come any more; locks of messages end long before."""

_ASK = text("SELECT 1")
NOTHING_TWICE = """
    SELECT batch_member_id, step_index FROM step_executions
    GROUP BY batch_member_id, step_index HAVING count(*) <> 1
"""
EVERYTHING = """
    SELECT (SELECT count(*) FROM batch_members WHERE status = 'completed'),
        (SELECT count(*) FROM step_executions WHERE status = 'succeeded'), (SELECT count(*) FROM step_executions),
        (SELECT count(*) FROM bus_messages)
"""


class Bounds(NamedTuple):
    """How fast everybody has to be back at work."""

    part: float
    seconds: float
    before: float
    """How long the rate that counts as normal is taken."""
    window: float = 1.0
    """The shortest time that says anything about a rate."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer(fsync=True) as started:
        yield started


@pytest.fixture
def crew(server: PostgresServer) -> Iterator[Crew]:
    made = Crew(server.create_database("resilience"))
    yield made
    assert made.stop(), "a thread did not end"


def crash(server: PostgresServer) -> None:
    server.restart("immediate")


def end_sessions(server: PostgresServer) -> None:
    assert server.terminate_backends("resilience")


def test_comes_back_from_a_crash_and_from_ended_sessions(server: PostgresServer, crew: Crew) -> None:
    go_through(server, crew, [crash, end_sessions], Bounds(0.2, 30.0, before=1.5))


@pytest.mark.soak
def test_comes_back_from_five_crashes_and_five_ended_sessions_at_full_speed(server: PostgresServer, crew: Crew) -> None:
    go_through(server, crew, [crash, end_sessions] * 5, Bounds(0.9, 5.0, before=4.0))


def go_through(
    server: PostgresServer, crew: Crew, disturbances: list[Callable[[PostgresServer], None]], bounds: Bounds
) -> None:
    crew.start()
    assert crew.gauge.moves(PATIENCE)
    crew.gauge.watch(bounds.window)
    too_slow = []
    for disturb in disturbances:
        before = crew.gauge.watch(bounds.before)
        disturb(server)
        returned = time.monotonic()
        back = crew.gauge.is_back(before * bounds.part, bounds.window, returned, bounds.seconds)
        after = crew.gauge.rate(returned, time.monotonic())
        took = "not back" if back is None else f"back after {back:.1f} s"
        told = f"{disturb.__name__}: {before:,.0f} steps/s before, {took}, {after:,.0f} on the way there"
        print(told)
        if back is None:
            too_slow.append(told)
    assert crew.finish(PATIENCE), crew.ask("SELECT status, count(*) FROM step_executions GROUP BY status")
    assert_all_done(crew)
    assert not too_slow


def test_one_failure_tells_of_all_connections_that_a_restart_ended(server: PostgresServer) -> None:
    database = open_database(server.url())
    with ExitStack() as at_once:
        for _ in range(6):
            at_once.enter_context(database.reading()).execute(_ASK)
    server.restart("immediate")
    with pytest.raises(DatabaseUnavailable), database.transaction() as tx:
        tx.execute(_ASK)
    with ExitStack() as at_once:
        for _ in range(6):
            assert at_once.enter_context(database.reading()).execute(_ASK).scalar() == 1
    database.close()


def assert_all_done(crew: Crew) -> None:
    with crew.home.reading() as tx:
        assert check(tx, ALWAYS) == []
        assert check(tx, AT_REST) == []
    ((members, succeeded, steps, messages),) = crew.ask(EVERYTHING)
    batches = crew.ask("SELECT 1 FROM batches")
    assert members == len(batches) * MEMBERS
    assert succeeded == steps == members * STEPS
    assert crew.ask(NOTHING_TWICE) == []
    assert messages == 0
    print(f"{members:,} members, {steps:,} steps, each done once")
