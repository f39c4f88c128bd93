"""Two orchestrators at the very same time: the rows of "Race Condition Safety" in the reference, and more like them.

Each story is told with the first of the two standing still at different points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.orchestrator.work import Closing
from matoolkit.store import batches as batch_store
from matoolkit.store import phases as phase_store
from matoolkit.store import schema
from tests.orchestrator.rivals import Moment, events, results
from tests.orchestrator.runbooks import POLL, RETRY, runbook, step

if TYPE_CHECKING:
    from typing import Any

    from tests.orchestrator.driver import Wave
    from tests.orchestrator.rivals import Duel

COMMITTING, COMMITTED = Moment.BEFORE_COMMIT, Moment.AFTER_COMMIT
ONE_PHASE = runbook({"move T-0": ["move"]})
TWO_PHASES = runbook({"prepare T-30m": ["check"], "move T-0": ["move"]})


def started(duel: Duel, text: str = ONE_PHASE, *keys: str, minutes: int = 0) -> Wave:
    wave = duel.wave
    wave.publish(text)
    wave.batch(*(keys or ("anna",)), minutes=minutes)
    wave.tick()
    wave.jobs()
    duel.begin()
    return wave


def close(wave: Wave) -> None:
    """Close what is over of the batch, as whoever ended something in it does."""
    phases = frozenset(row["id"] for row in wave.rows(schema.phase_executions, status="dispatched"))
    wave.orchestrators[0].close(Closing(phases, frozenset([wave.batch_id])))


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_simultaneous_results_for_the_last_two_members_of_a_phase(duel: Duel, at: Any) -> None:
    """Neither sees what the other has not committed, and still the phase and the batch are closed, once."""
    wave = started(duel, ONE_PHASE, "anna", "bert")
    wave.answer("move anna")
    wave.answer("move bert")
    assert duel.fight(results, at, results) or wave.database.dialect == "sqlite"
    assert wave.phases() == {"move": "completed"}
    assert wave.batch_status == "completed"
    assert wave.members() == {"anna": "completed", "bert": "completed"}
    assert wave.ended() == "completed"


@pytest.mark.parametrize("at", [phase_store.CLOSABLE_AMONG, phase_store.CLOSE, batch_store.END, COMMITTING])
def test_two_who_close_a_phase_and_its_batch_close_them_once(duel: Duel, at: Any) -> None:
    wave = started(duel)
    wave.answer("move anna")
    with wave.database.transaction():
        pass
    # The second commit of who handles the result is that of the closing.
    duel.fight(results, at, close, passing=1 if at is COMMITTING else 0)
    assert wave.phases() == {"move": "completed"}
    assert wave.ended() == "completed"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_two_failures_that_leave_nobody_fail_phase_and_batch(duel: Duel, at: Any) -> None:
    wave = started(duel, TWO_PHASES, "anna", "bert", minutes=30)
    wave.failure("check anna")
    wave.failure("check bert")
    duel.fight(results, at, results)
    assert wave.phases() == {"prepare": "failed", "move": "pending"}
    wave.tick(minutes=30)
    assert wave.ended() == "failed"


@pytest.mark.parametrize("at", [COMMITTING, COMMITTED])
def test_a_failure_and_a_success_of_different_members_complete_the_phase(duel: Duel, at: Any) -> None:
    wave = started(duel, ONE_PHASE, "anna", "bert")
    wave.failure("move anna")
    wave.answer("move bert")
    duel.fight(results, at, results)
    assert wave.phases() == {"move": "completed"}
    assert wave.members() == {"anna": "failed", "bert": "completed"}
    assert wave.ended() == "completed"


@pytest.mark.parametrize("order", ["failure first", "success first"])
def test_member_failure_and_step_success_for_the_same_member(duel: Duel, order: str) -> None:
    """Both speak of the same job; whoever has the member first decides, and the other one is stale."""
    wave = started(duel, runbook({"move T-0": ["move", "tell"]}))
    answer = wave.failure("move anna") if order == "failure first" else wave.answer("move anna")
    other = "success" if order == "failure first" else "failure"
    wave.send_again(answer, status=other, error=None)
    assert not duel.fight(results, COMMITTING, results)
    if order == "failure first":
        assert wave.steps("anna") == {"move": "failed", "tell": "cancelled"}
        assert wave.jobs() == []
        assert wave.ended() == "failed"
    else:
        assert wave.steps("anna") == {"move": "succeeded", "tell": "dispatched"}
        assert wave.finish() == "completed"


def test_duplicate_failures_at_once_are_one_retry(duel: Duel) -> None:
    """The reference's race on SetRetryPending."""
    wave = started(duel, runbook({"move T-0": [step("move", retry=RETRY)]}))
    wave.send_again(wave.failure("move anna"))
    assert not duel.fight(results, COMMITTING, results)
    assert wave.step("move anna")["retry_count"] == 1
    wave.tick(minutes=1)
    assert len(wave.events("retry-check")) == 1
    assert wave.jobs() == ["move anna"]
    assert wave.finish() == "completed"


def test_duplicate_results_at_once_are_one(duel: Duel) -> None:
    wave = started(duel, runbook({"move T-0": [step("move", output_params={"Id": "Id"}), "tell"]}))
    wave.send_again(wave.answer("move anna", result={"Id": 7}))
    assert not duel.fight(results, COMMITTING, results)
    assert wave.jobs() == ["tell anna"]
    assert wave.finish() == "completed"


def test_duplicate_failures_at_once_are_one_rollback(duel: Duel) -> None:
    undo = step("move", on_failure="undo")
    wave = started(duel, runbook({"move T-0": [undo]}, rollbacks={"undo": ["unmove", "tell"]}))
    wave.send_again(wave.failure("move anna"))
    duel.fight(results, COMMITTING, results)
    assert wave.jobs() == ["unmove anna"]
    assert len(wave.rows(schema.rollback_executions)) == 2
    assert wave.finish() == "failed"


@pytest.mark.parametrize("kind", ["retry-check", "poll-check"])
def test_duplicate_checks_at_once_are_one_job(duel: Duel, kind: str) -> None:
    wave = duel.wave
    wave.publish(runbook({"move T-0": [step("move", retry=RETRY, poll=POLL)]}))
    wave.batch("anna", minutes=0)
    wave.tick()
    if kind == "retry-check":
        wave.fail("move anna")
    else:
        wave.poll("move anna")
    duel.begin()
    wave.announce(minutes=2)
    for each in wave.events(kind):
        wave.send_event(each.body, kind)
    assert not duel.fight(events, COMMITTING, events)
    assert wave.jobs() == ["move anna"]
    assert len(wave.every_job) == 2
    assert wave.finish() == "completed"


def test_duplicate_batch_inits_at_once_are_one(duel: Duel) -> None:
    wave = duel.wave
    wave.publish(runbook({"move T-0": ["move"]}, init=["open", "fill"]))
    duel.begin()
    wave.batch("anna")
    for each in wave.events("batch-init"):
        wave.send_event(each.body, "batch-init")
    assert not duel.fight(events, COMMITTING, events)
    assert wave.jobs() == ["open"]
    assert len(wave.rows(schema.init_executions)) == 2
    assert wave.finish() == "completed"


def test_two_who_reconcile_send_one_job(duel: Duel) -> None:
    wave = started(duel, runbook({"move T-0": ["move", "tell"]}))
    wave.held.clear()
    done = {"status": "succeeded", "job_out": False, "completed_at": wave.now}
    wave.forge(schema.step_executions, wave.step("move anna")["id"], **done)
    reconciles = lambda each: each.orchestrators[0].reconcile()  # noqa: E731 - a word of this story
    duel.fight(reconciles, phase_store_idle(), reconciles)
    assert wave.jobs() == ["tell anna"]
    assert wave.finish() == "completed"


def phase_store_idle() -> Any:
    from matoolkit.store import stuck

    return stuck.IDLE
