"""Retries: when, how often, under which job ids, and what is not tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.store import schema
from tests.orchestrator.runbooks import POLL, RETRY, runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave

FLAKY = runbook({"move T-0": [step("move", retry=RETRY)]})
"""Tried again twice, a minute apart."""


def started(wave: Wave, text: str = FLAKY, *keys: str) -> None:
    wave.publish(text)
    wave.batch(*(keys or ("anna",)), minutes=0)
    wave.tick()


def test_a_failed_step_is_tried_again_after_its_interval(wave: Wave) -> None:
    started(wave)
    wave.fail("move anna")
    assert wave.step("move anna")["status"] == "pending"
    assert wave.step("move anna")["retry_count"] == 1
    wave.tick(seconds=59)
    assert wave.jobs() == []
    wave.tick(seconds=1)
    assert wave.jobs() == ["move anna"]
    assert wave.finish() == "completed"


def test_retries_are_spent_and_the_member_fails(wave: Wave) -> None:
    started(wave)
    ids = []
    for _ in range(3):
        ids.append(wave.job("move anna").job_id)
        wave.fail("move anna")
        wave.tick(minutes=1)
    assert ids == [ids[0], f"{ids[0]}-retry-1", f"{ids[0]}-retry-2"]
    assert wave.members() == {"anna": "failed"}
    assert wave.ended() == "failed"


def test_every_attempt_has_the_same_idempotency_key_and_first_dispatch(wave: Wave) -> None:
    started(wave)
    first = wave.job("move anna")
    wave.fail("move anna")
    wave.tick(minutes=1)
    again = wave.job("move anna")
    assert first.idempotency_key == again.idempotency_key == first.job_id
    assert first.first_dispatched_at == again.first_dispatched_at == wave.step("move anna")["first_dispatched_at"]
    assert again.not_after is not None
    assert first.not_after is not None
    assert again.not_after > first.not_after
    assert wave.finish() == "completed"


def test_a_retry_starts_polling_afresh_and_its_polls_carry_both_counters(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [step("move", retry=RETRY, poll=POLL)]}))
    first = wave.job("move anna").job_id
    wave.poll("move anna")
    wave.tick(minutes=2)
    wave.fail("move anna")
    wave.tick(minutes=1)
    assert wave.job("move anna").job_id == f"{first}-retry-1"
    wave.poll("move anna")
    wave.tick(minutes=2)
    assert wave.job("move anna").job_id == f"{first}-retry-1-poll-1"
    wave.tick(minutes=4)
    assert wave.step("move anna")["status"] == "polling", "the timeout counts from the first answer of this attempt"
    assert wave.finish() == "completed"


def test_an_expired_job_is_a_failure_and_is_tried_again(wave: Wave) -> None:
    started(wave)
    wave.fail("move anna", kind="Expired", message="the job came too late to be run")
    wave.tick(minutes=1)
    assert wave.jobs() == ["move anna"]
    assert wave.step("move anna")["error_message"] == "Expired: the job came too late to be run"
    assert wave.finish() == "completed"


def test_no_retry_config_means_failure_at_once(wave: Wave) -> None:
    started(wave, runbook({"move T-0": ["move"]}))
    wave.fail("move anna")
    assert wave.members() == {"anna": "failed"}
    assert wave.ended() == "failed"


def test_a_step_opts_out_of_the_retry_of_its_runbook(wave: Wave) -> None:
    never = step("move", retry={"max_retries": 0})
    started(wave, runbook({"move T-0": [never]}, retry=RETRY))
    wave.fail("move anna")
    assert wave.members() == {"anna": "failed"}
    assert wave.ended() == "failed"


def test_the_retry_of_the_runbook_holds_for_steps_without_their_own(wave: Wave) -> None:
    started(wave, runbook({"move T-0": ["move"]}, retry=RETRY))
    wave.fail("move anna")
    assert wave.step("move anna")["max_retries"] == 2
    assert wave.finish() == "completed"


def test_duplicate_failed_results_schedule_one_retry(wave: Wave) -> None:
    """The reference's race on SetRetryPending: of two that handle the same failure only one moves the step."""
    started(wave)
    wave.jobs()
    failure = wave.held["move anna"].body.job_id
    wave.fail("move anna")
    wave.answer_again(wave.results[-1])
    wave.answer_again(wave.results[-1])
    assert wave.step("move anna")["retry_count"] == 1
    wave.tick(minutes=1)
    assert len(wave.events("retry-check")) == 1
    assert wave.job("move anna").job_id == f"{failure}-retry-1"
    assert wave.finish() == "completed"


def test_duplicate_failed_results_in_one_set_schedule_one_retry(wave: Wave) -> None:
    started(wave)
    wave.jobs()
    failed = wave.failure("move anna")
    wave.send_again(failed)
    wave.send_again(failed)
    wave.pump()
    assert wave.step("move anna")["retry_count"] == 1
    assert wave.finish() == "completed"


def test_a_result_of_an_earlier_attempt_is_stale(wave: Wave) -> None:
    started(wave)
    wave.fail("move anna")
    failed = wave.results[-1]
    wave.tick(minutes=1)
    wave.answer_again(failed)
    wave.answer_again(failed, status="success", error=None)
    assert wave.step("move anna")["status"] == "dispatched"
    assert wave.step("move anna")["retry_count"] == 1
    assert wave.finish() == "completed"


def test_a_retry_check_that_comes_again_sends_nothing(wave: Wave) -> None:
    started(wave)
    wave.fail("move anna")
    wave.tick(minutes=1)
    checks = wave.events("retry-check")
    wave.redeliver(checks)
    assert wave.jobs() == ["move anna"]
    wave.fail("move anna")
    wave.redeliver(checks)
    assert wave.jobs() == [], "it is the second retry's turn, and not its time"
    wave.tick(minutes=1)
    assert wave.jobs() == ["move anna"]
    assert wave.finish() == "completed"


def test_a_retry_check_after_the_step_was_cancelled_sends_nothing(wave: Wave) -> None:
    started(wave)
    wave.fail("move anna")
    wave.leave("anna")
    wave.pump()
    assert wave.steps("anna") == {"move": "cancelled"}
    wave.tick(minutes=1)
    assert len(wave.events("retry-check")) == 1
    assert wave.jobs() == []
    assert wave.ended() == "completed"


def test_a_retry_resolves_its_parameters_afresh(wave: Wave) -> None:
    started(wave, runbook({"move T-0": [step("move", retry=RETRY, params={"Key": "{{Key}}", "Mail": "{{Mail}}"})]}))
    assert wave.members() == {"anna": "failed"}, "there is no Mail, and that is not tried again"
    wave.batch("bert", minutes=1, data={"bert": {"Mail": "old@x"}})
    wave.tick(minutes=1)
    wave.fail("move bert")
    wave.forge(schema.batch_members, wave.member("bert")["id"], data_json='{"Key":"bert","Mail":"new@x"}')
    wave.tick(minutes=1)
    assert wave.job("move bert").parameters == {"Key": "bert", "Mail": "new@x"}
    assert wave.finish() == "completed"
