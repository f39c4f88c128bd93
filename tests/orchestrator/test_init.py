"""Init: in sequence, before any phase; with retries, polls and rollbacks of its own; and what its failure means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.store import schema
from tests.orchestrator.runbooks import POLL, RETRY, init_step, runbook

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave

TWO = runbook({"move T-0": ["move"]}, init=["open", "fill"])


def test_init_steps_run_one_after_another(wave: Wave) -> None:
    wave.publish(TWO)
    wave.batch("anna")
    assert wave.jobs() == ["open"]
    wave.succeed("open")
    assert wave.jobs() == ["fill"]
    assert wave.batch_status == "init_dispatched"
    wave.succeed("fill")
    assert wave.batch_status == "active"
    assert wave.finish() == "completed"


def test_init_gates_phases(wave: Wave) -> None:
    wave.publish(TWO)
    wave.batch("anna", minutes=10)
    wave.tick(minutes=20)
    wave.reconcile(minutes=20)
    assert wave.phases() == {"move": "pending"}
    wave.succeed("open")
    wave.succeed("fill")
    wave.tick()
    assert wave.jobs() == ["move anna"]
    assert wave.finish() == "completed"


def test_a_runbook_without_init_is_active_at_once(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}))
    wave.batch("anna")
    assert wave.batch_status == "active"
    assert wave.events() == []
    assert wave.finish() == "completed"


def test_init_that_comes_twice_runs_once(wave: Wave) -> None:
    wave.publish(TWO)
    wave.batch("anna")
    wave.pump()
    begun = wave.events("batch-init")
    wave.redeliver(begun * 2)
    assert wave.jobs() == ["open"]
    wave.succeed("open")
    wave.redeliver(begun)
    assert wave.jobs() == ["fill"]
    assert len(wave.rows(schema.init_executions)) == 2
    wave.succeed("fill")
    wave.redeliver(begun)
    assert wave.finish() == "completed"
    wave.redeliver(begun)
    assert wave.ended() == "completed"


def test_init_knows_the_batch_and_its_start(wave: Wave) -> None:
    parameters = {"Batch": "{{_batch_id}}", "Start": "at {{_batch_start_time}}"}
    wave.publish(runbook({"move T-0": ["move"]}, init=[init_step("open", params=parameters)]))
    batch = wave.batch("anna")
    assert wave.job("open").parameters == {"Batch": batch, "Start": "at 2026-03-01T09:00:00Z"}
    assert wave.finish() == "completed"


def test_a_manual_batch_starts_at_its_first_advance(wave: Wave) -> None:
    parameters = {"Start": "{{_batch_start_time}}"}
    wave.publish(runbook({"move T-0": ["move"]}, init=[init_step("open", params=parameters)]))
    batch = wave.batch("anna")
    wave.forge(schema.batches, batch, is_manual=True, started_at=wave.now, batch_start_time=None)
    assert wave.job("open").parameters == {"Start": "2026-03-01T08:00:00Z"}


def test_a_failed_init_is_tried_again(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}, init=[init_step("open", retry=RETRY)]))
    wave.batch("anna")
    first = wave.job("open")
    wave.fail("open")
    assert wave.jobs() == []
    wave.tick(minutes=1)
    again = wave.job("open")
    assert again.job_id == f"{first.job_id}-retry-1"
    assert again.idempotency_key == first.idempotency_key
    assert again.correlation_data.is_init_step
    assert again.correlation_data.init_execution_id == wave.step("open")["id"]
    assert wave.finish() == "completed"


def test_init_polls(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}, init=[init_step("open", poll=POLL), "fill"]))
    wave.batch("anna")
    wave.poll("open")
    assert (wave.jobs(), wave.step("open")["status"]) == ([], "polling")
    wave.tick(minutes=2)
    assert wave.job("open").job_id.endswith("-poll-1")
    wave.succeed("open", result={"complete": True})
    assert wave.jobs() == ["fill"]
    assert wave.finish() == "completed"


def test_init_that_polls_too_long_fails_the_batch(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": ["move"]}, init=[init_step("open", poll=POLL, retry=RETRY)]))
    wave.batch("anna")
    wave.poll("open")
    wave.tick(minutes=7)
    assert wave.step("open")["status"] == "poll_timeout"
    wave.reconcile()
    assert wave.ended() == "failed"


def test_a_failed_init_fails_batch_phases_and_members(wave: Wave) -> None:
    wave.publish(runbook({"prepare T-1h": ["prepare"], "move T-0": ["move"]}, init=["open", "fill"]))
    wave.batch("anna", "bert")
    wave.fail("open")
    assert wave.batch_status == "failed"
    assert wave.phases() == {"prepare": "skipped: init_failed", "move": "skipped: init_failed"}
    wave.reconcile()
    assert wave.members() == {"anna": "failed", "bert": "failed"}
    assert wave.step("fill")["status"] == "cancelled"
    wave.tick(minutes=90)
    assert wave.jobs() == []
    assert wave.ended() == "failed"


def test_a_failed_init_is_rolled_back(wave: Wave) -> None:
    first = init_step("open", on_failure="close")
    rollbacks = {"close": [init_step("shut"), init_step("tell")]}
    wave.publish(runbook({"move T-0": ["move"]}, init=[first], rollbacks=rollbacks))
    wave.batch("anna")
    wave.fail("open")
    assert wave.batch_status == "failed"
    assert wave.jobs() == ["shut"]
    assert wave.step("open")["rollback_status"] == "running"
    wave.succeed("shut")
    wave.succeed("tell")
    assert wave.step("open")["rollback_status"] == "succeeded"
    wave.reconcile()
    assert wave.ended() == "failed"


def test_who_joins_during_init_runs_with_the_others(wave: Wave) -> None:
    wave.publish(TWO)
    wave.batch("anna", minutes=5)
    wave.jobs()
    wave.join("late")
    wave.succeed("open")
    wave.succeed("fill")
    wave.tick(minutes=5)
    wave.reconcile(minutes=3)
    assert wave.jobs() == ["move anna", "move late"]
    assert wave.finish() == "completed"
    assert wave.members() == {"anna": "completed", "late": "completed"}
