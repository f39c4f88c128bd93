"""Rollbacks: steps one after another, each tracked; how they end, and what they may outlive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.store import schema
from tests.orchestrator.runbooks import POLL, RETRY, runbook, step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.orchestrator.driver import Wave


def undone_by(*undo: str | dict[str, object]) -> str:
    return runbook({"move T-0": [step("move", on_failure="undo"), "check"]}, rollbacks={"undo": list(undo)})


UNDO = undone_by("unmove", "tell")


def failed(wave: Wave, text: str = UNDO, keys: Sequence[str] = ("anna",)) -> None:
    wave.publish(text)
    wave.batch(*keys, minutes=0)
    wave.tick()
    wave.fail("move anna")


def test_rollback_steps_run_one_after_another(wave: Wave) -> None:
    failed(wave)
    assert wave.jobs() == ["unmove anna"]
    assert wave.step("move anna")["rollback_status"] == "running"
    wave.succeed("unmove anna")
    assert wave.jobs() == ["tell anna"]
    wave.succeed("tell anna")
    assert wave.step("move anna")["rollback_status"] == "succeeded"
    assert wave.step("move anna")["status"] == "failed"
    assert wave.ended() == "failed"


def test_rollback_steps_are_tracked(wave: Wave) -> None:
    failed(wave)
    job = wave.job("unmove anna")
    row = wave.step("unmove anna")
    assert job.job_id == row["job_id"] == f"rollback-{row['id']}"
    assert job.correlation_data.rollback_execution_id == row["id"]
    assert (row["rollback_name"], row["status"]) == ("undo", "dispatched")
    assert row["step_execution_id"] == wave.step("move anna")["id"]
    wave.succeed("unmove anna")
    wave.succeed("tell anna")
    assert [each["status"] for each in wave.rows(schema.rollback_executions)] == ["succeeded", "succeeded"]
    assert wave.ended() == "failed"


def test_a_failed_rollback_step_cancels_the_rest(wave: Wave) -> None:
    failed(wave)
    wave.fail("unmove anna")
    assert wave.jobs() == []
    assert wave.step("tell anna")["status"] == "cancelled"
    assert wave.step("move anna")["rollback_status"] == "failed"
    assert wave.ended() == "failed"


def test_rollback_steps_are_tried_again_though_the_member_is_not_active(wave: Wave) -> None:
    failed(wave, undone_by(step("unmove", retry=RETRY)))
    wave.fail("unmove anna")
    assert wave.members() == {"anna": "failed"}
    wave.tick(minutes=1)
    assert wave.job("unmove anna").job_id.endswith("-retry-1")
    wave.succeed("unmove anna")
    assert wave.step("move anna")["rollback_status"] == "succeeded"
    assert wave.ended() == "failed"


def test_rollback_steps_poll_though_the_member_is_not_active(wave: Wave) -> None:
    failed(wave, undone_by(step("unmove", poll=POLL), "tell"))
    wave.poll("unmove anna")
    wave.tick(minutes=2)
    wave.succeed("unmove anna", result={"complete": True})
    assert wave.jobs() == ["tell anna"]
    wave.succeed("tell anna")
    assert wave.ended() == "failed"


def test_a_rollback_step_that_polls_too_long_fails_the_rollback(wave: Wave) -> None:
    failed(wave, undone_by(step("unmove", poll=POLL), "tell"))
    wave.poll("unmove anna")
    wave.tick(minutes=7)
    assert wave.step("unmove anna")["status"] == "poll_timeout"
    assert wave.step("move anna")["rollback_status"] == "failed"
    assert wave.step("tell anna")["status"] == "cancelled"
    assert wave.ended() == "failed"


def test_a_rollback_starts_only_when_retries_are_spent(wave: Wave) -> None:
    move = step("move", on_failure="undo", retry={"max_retries": 1, "interval": "1m"})
    failed(wave, runbook({"move T-0": [move]}, rollbacks={"undo": ["unmove"]}))
    assert wave.jobs() == []
    wave.tick(minutes=1)
    wave.fail("move anna")
    assert wave.jobs() == ["unmove anna"]
    wave.succeed("unmove anna")
    assert wave.ended() == "failed"


def test_a_rollback_outlives_its_batch(wave: Wave) -> None:
    failed(wave, keys=("anna", "bert"))
    wave.succeed("move bert")
    wave.succeed("check bert")
    assert wave.batch_status == "completed"
    assert wave.jobs() == ["unmove anna"]
    wave.succeed("unmove anna")
    wave.succeed("tell anna")
    assert wave.ended() == "completed"


def test_a_begun_rollback_goes_on_after_a_cancel(wave: Wave) -> None:
    failed(wave, keys=("anna", "bert"))
    wave.cancel()
    wave.succeed("unmove anna")
    assert wave.jobs() == ["move bert", "tell anna"]
    wave.succeed("tell anna", "move bert")
    assert wave.step("move anna")["rollback_status"] == "succeeded"
    assert wave.ended() == "cancelled"


def test_a_rollback_step_without_its_variables_fails_the_rollback(wave: Wave) -> None:
    failed(wave, undone_by(step("unmove", params={"Mail": "{{Mail}}"}), "tell"))
    assert wave.jobs() == []
    assert "Mail" in wave.step("unmove anna")["error_message"]
    assert wave.step("move anna")["rollback_status"] == "failed"
    assert wave.ended() == "failed"


def test_a_failure_that_comes_twice_is_rolled_back_once(wave: Wave) -> None:
    failed(wave)
    wave.answer_again(wave.results[-1])
    assert wave.jobs() == ["unmove anna"]
    wave.succeed("unmove anna")
    wave.answer_again(wave.results[-1])
    wave.succeed("tell anna")
    assert len(wave.rows(schema.rollback_executions)) == 2
    assert wave.ended() == "failed"
