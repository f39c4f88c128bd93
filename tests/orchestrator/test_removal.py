"""Removal: what is open is cancelled, and the steps of leaving run once the member's hands are still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.store import schema
from tests.orchestrator.runbooks import POLL, RETRY, runbook, step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.orchestrator.driver import Wave


def leaving_by(*steps: str | dict[str, object]) -> str:
    return runbook({"move T-0": ["move", "check"]}, on_member_removed=list(steps))


LEAVE = leaving_by("unroute", "tell")


def started(wave: Wave, text: str = LEAVE, keys: Sequence[str] = ("anna",)) -> None:
    wave.publish(text)
    wave.batch(*keys, minutes=0)
    wave.tick()
    wave.jobs()


def left(wave: Wave) -> None:
    wave.leave("anna")
    wave.pump()


def test_a_member_without_a_running_job_leaves_at_once(wave: Wave) -> None:
    wave.publish(LEAVE)
    wave.batch("anna", minutes=5)
    left(wave)
    assert wave.jobs() == ["unroute anna"]
    wave.succeed("unroute anna")
    wave.succeed("tell anna")
    wave.tick(minutes=5)
    assert wave.ended() == "completed"


def test_removal_waits_for_the_running_job(wave: Wave) -> None:
    started(wave)
    left(wave)
    assert wave.steps("anna") == {"move": "cancelled", "check": "cancelled"}
    assert wave.jobs() == ["move anna"]
    wave.succeed("move anna", result={"moved": True})
    assert wave.steps("anna")["move"] == "cancelled", "a late result is recorded and changes nothing"
    assert wave.step("move anna")["result_json"] == '{"moved":true}'
    assert wave.jobs() == ["unroute anna"]
    assert wave.finish() == "completed"


def test_removal_waits_for_a_running_job_that_is_lost(wave: Wave) -> None:
    wave.publish(LEAVE)
    wave.batch("anna", minutes=0)
    wave.tick()
    wave.give_up("move anna")
    left(wave)
    assert wave.jobs() == []
    wave.reconcile()
    assert wave.steps("anna")["move"] == "cancelled"
    assert "given up by the message bus" in wave.step("move anna")["error_message"]
    assert wave.jobs() == ["unroute anna"]
    assert wave.finish() == "completed"


def test_removal_does_not_wait_for_polls_nobody_asks_any_more(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [step("move", poll=POLL)]}, on_member_removed=["unroute"]))
    wave.poll("move anna")
    left(wave)
    assert wave.jobs() == ["unroute anna"]
    wave.tick(minutes=2)
    assert wave.jobs() == ["unroute anna"]
    assert wave.finish() == "completed"


def test_removal_steps_run_one_after_another_and_are_tracked(wave: Wave) -> None:
    wave.publish(LEAVE)
    wave.batch("anna")
    left(wave)
    job, row = wave.job("unroute anna"), wave.step("unroute anna")
    assert job.job_id == f"removal-{row['id']}"
    assert job.correlation_data.removal_execution_id == row["id"]
    wave.succeed("unroute anna")
    assert wave.jobs() == ["tell anna"]
    assert [each["status"] for each in wave.rows(schema.removal_executions)] == ["succeeded", "dispatched"]
    assert wave.finish() == "completed"


def test_a_failed_removal_step_cancels_the_rest(wave: Wave) -> None:
    wave.publish(LEAVE)
    wave.batch("anna")
    left(wave)
    wave.fail("unroute anna")
    assert wave.jobs() == []
    assert wave.step("tell anna")["status"] == "cancelled"
    assert wave.members() == {"anna": "removed"}
    assert wave.finish() == "completed"


def test_removal_steps_are_tried_again_and_polled_though_the_member_is_gone(wave: Wave) -> None:
    wave.publish(leaving_by(step("unroute", retry=RETRY, poll=POLL)))
    wave.batch("anna")
    left(wave)
    wave.fail("unroute anna")
    wave.tick(minutes=1)
    wave.poll("unroute anna")
    wave.tick(minutes=2)
    assert wave.job("unroute anna").job_id.endswith("-retry-1-poll-1")
    wave.succeed("unroute anna", result={"complete": True})
    assert wave.step("unroute anna")["status"] == "succeeded"
    assert wave.finish() == "completed"


def test_a_removal_that_comes_twice_is_handled_once(wave: Wave) -> None:
    wave.publish(LEAVE)
    wave.batch("anna")
    left(wave)
    wave.redeliver(wave.events("member-removed") * 2)
    assert wave.jobs() == ["unroute anna"]
    assert len(wave.rows(schema.removal_executions)) == 2
    assert wave.finish() == "completed"


def test_the_last_member_who_leaves_lets_phase_and_batch_close(wave: Wave) -> None:
    started(wave, runbook({"move T-0": ["move"]}), ("anna", "bert"))
    wave.succeed("move bert")
    assert wave.phases() == {"move": "dispatched"}
    left(wave)
    assert wave.phases() == {"move": "completed"}
    wave.succeed("move anna")
    assert wave.ended() == "completed"
    assert wave.members() == {"anna": "removed", "bert": "completed"}


def test_removal_steps_outlive_their_batch(wave: Wave) -> None:
    started(wave)
    left(wave)
    assert wave.batch_status == "completed"
    wave.succeed("move anna")
    wave.succeed("unroute anna")
    wave.succeed("tell anna")
    assert wave.ended() == "completed"


def test_a_begun_removal_goes_on_after_a_cancel(wave: Wave) -> None:
    started(wave, keys=("anna", "bert"))
    left(wave)
    wave.succeed("move anna")
    wave.cancel()
    wave.succeed("unroute anna")
    assert wave.jobs() == ["move bert", "tell anna"]
    wave.succeed("tell anna", "move bert")
    assert wave.ended() == "cancelled"


def test_who_is_through_is_not_removed(wave: Wave) -> None:
    """Success is not leaving."""
    started(wave, keys=("anna", "bert"))
    wave.succeed("move anna")
    wave.succeed("check anna")
    wave.leave("anna")
    assert wave.events("member-removed") == []
    assert wave.members() == {"anna": "completed", "bert": "active"}
    assert wave.finish() == "completed"


def test_who_failed_stays_failed_when_gone_from_the_source(wave: Wave) -> None:
    started(wave, keys=("anna", "bert"))
    wave.fail("move anna")
    wave.leave("anna")
    assert wave.members() == {"anna": "failed", "bert": "active"}
    assert wave.finish() == "completed"
