"""How things stand, in numbers: each counts exactly whom it is to count."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from matoolkit.store import leases, levels
from matoolkit.store import runbooks as runbook_store
from matoolkit.store.schema import batch_members, dead_messages
from tests.orchestrator.driver import Wave
from tests.orchestrator.runbooks import POLL, RETRY, runbook, step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database
    from matoolkit.store.levels import Levels


@pytest.fixture
def wave(kept_database: Database) -> Iterator[Wave]:
    wave = Wave(kept_database)
    yield wave
    wave.bus.close()


def now(wave: Wave, **later: float) -> Levels:
    with wave.database.reading() as tx:
        return levels.read(tx, wave.now + timedelta(**later))


def test_an_empty_database_has_nothing(wave: Wave) -> None:
    assert now(wave) == levels.Levels(0, 0, 0, 0, 0, 0, 0, None)


def test_who_is_under_way_and_whose_job_is_out_for_long(wave: Wave) -> None:
    wave.publish(runbook({"go T-0": ["one"], "late T-0": ["two"]}))
    wave.batch("anna", "bert", minutes=1)
    assert (now(wave).active, now(wave).silent) == (2, 0)
    wave.tick(minutes=1)
    assert now(wave, minutes=59).silent == 0
    assert now(wave, minutes=61).silent == 2
    assert now(wave, days=1).idle == 0
    assert wave.finish() == "completed"
    assert (now(wave).active, now(wave, days=1).silent) == (0, 0)


def test_a_phase_that_does_not_start_is_overdue(wave: Wave) -> None:
    wave.publish(runbook({"go T-0": ["one"]}, init=["open"]))
    wave.batch("anna", minutes=1)
    assert now(wave, minutes=5).overdue == 0
    # Init has not even begun, so nothing may start.
    assert now(wave, minutes=7).overdue == 1
    wave.cancel()
    assert now(wave, days=1).overdue == 0


def test_who_has_a_step_to_do_and_nothing_under_way_is_idle(wave: Wave) -> None:
    wave.publish(runbook({"go T-0": [step("one", worker_id="nobody"), "two"]}))
    wave.batch("anna", minutes=1)
    wave.tick(minutes=1)
    assert now(wave, minutes=9).idle == 0
    assert now(wave, minutes=11).idle == 1


@pytest.mark.parametrize("waits", ["retry", "poll"])
def test_who_waits_for_a_time_is_not_idle_until_it_has_long_passed(wave: Wave, waits: str) -> None:
    first = step("one", retry=RETRY | {"interval": "30m"}) if waits == "retry" else step("one", poll=POLL)
    wave.publish(runbook({"go T-0": [first]}))
    wave.batch("anna", minutes=1)
    wave.tick(minutes=1)
    wave.fail("one anna") if waits == "retry" else wave.poll("one anna")
    assert now(wave, minutes=39).idle == 0
    assert now(wave, minutes=41).idle == (1 if waits == "retry" else 0)


def test_held_faulty_and_dead_are_counted_until_somebody_saw_to_them(wave: Wave) -> None:
    version = wave.publish(runbook({"go T-0": ["one"]}))
    wave.batch("anna", "bert", minutes=1)
    with wave.database.transaction() as tx:
        tx.connection.execute(batch_members.update().values(removal_held_at=wave.now))
        runbook_store.report_error(tx, "wave", version, "no such table", wave.now)
    wave.send_event("{", "phase-due")
    wave.pump()
    found = now(wave)
    assert (found.held, found.faulty, found.dead) == (2, 1, 1)
    with wave.database.transaction() as tx:
        tx.connection.execute(batch_members.update().values(removal_held_at=None))
        tx.connection.execute(dead_messages.update().values(resubmitted_at=wave.now, resubmitted_by="anna"))
    wave.publish(runbook({"go T-0": ["one"]}))
    found = now(wave)
    assert (found.held, found.faulty, found.dead) == (0, 0, 0)


def test_a_lease_says_until_when_somebody_leads(wave: Wave) -> None:
    with wave.database.transaction() as tx:
        leases.take(tx, leases.SCHEDULER, "house", wave.now, timedelta(seconds=15))
    assert now(wave).led_until == wave.now + timedelta(seconds=15)
