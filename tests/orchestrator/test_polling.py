"""Polling: the worker says that the work goes on, and is asked again at intervals until it has ended or timed out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.orchestrator.runbooks import POLL, RETRY, runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave

COPY = runbook({"move T-0": [step("copy", poll=POLL, output_params={"JobId": "Id"}), "check"]})
"""Asked every two minutes, for seven at the most."""


def started(wave: Wave, text: str = COPY) -> None:
    wave.publish(text)
    wave.batch("anna", minutes=0)
    wave.tick()


def test_one_job_is_in_flight_for_each_row(wave: Wave) -> None:
    started(wave)
    wave.poll("copy anna")
    wave.tick(minutes=2)
    assert wave.jobs() == ["copy anna"]
    checks = wave.events("poll-check")
    wave.tick(minutes=2)
    wave.redeliver(checks * 3)
    assert len(wave.every_job) == 2
    assert wave.finish() == "completed"


def test_a_poll_check_acts_only_on_a_row_that_polls(wave: Wave) -> None:
    started(wave)
    wave.poll("copy anna")
    wave.tick(minutes=2)
    wave.succeed("copy anna", result={"complete": True})
    wave.redeliver(wave.events("poll-check"))
    assert wave.step("copy anna")["status"] == "succeeded"
    assert wave.jobs() == ["check anna"]
    assert wave.finish() == "completed"


def test_a_poll_check_of_an_earlier_poll_does_nothing(wave: Wave) -> None:
    started(wave)
    wave.poll("copy anna")
    wave.tick(minutes=2)
    earlier = wave.events("poll-check")
    wave.poll("copy anna")
    wave.redeliver(earlier)
    assert wave.jobs() == []
    assert wave.finish() == "completed"


def test_intervals_count_from_the_last_result(wave: Wave) -> None:
    started(wave)
    wave.tick(minutes=1)
    wave.poll("copy anna")
    wave.tick(seconds=119)
    assert wave.jobs() == []
    wave.tick(seconds=1)
    assert wave.jobs() == ["copy anna"]
    wave.tick(seconds=90)
    wave.poll("copy anna")
    wave.tick(seconds=119)
    assert wave.jobs() == []
    wave.tick(seconds=1)
    assert wave.jobs() == ["copy anna"]
    assert wave.finish() == "completed"


def test_polls_are_counted_and_have_job_ids_of_their_own(wave: Wave) -> None:
    started(wave)
    first = wave.job("copy anna").job_id
    wave.poll("copy anna")
    for number in (1, 2):
        wave.tick(minutes=2)
        assert wave.job("copy anna").job_id == f"{first}-poll-{number}"
        wave.poll("copy anna")
        assert wave.step("copy anna")["poll_count"] == number
    assert wave.finish() == "completed"


def test_a_poll_repeats_function_and_parameters(wave: Wave) -> None:
    started(wave)
    first = wave.job("copy anna")
    wave.poll("copy anna")
    wave.tick(minutes=2)
    again = wave.job("copy anna")
    assert (again.function_name, again.parameters) == (first.function_name, first.parameters)
    assert (again.idempotency_key, again.first_dispatched_at) == (first.idempotency_key, first.first_dispatched_at)
    assert wave.finish() == "completed"


def test_polling_times_out_without_retry_and_with_rollback(wave: Wave) -> None:
    copy = step("copy", poll=POLL, retry=RETRY, on_failure="undo")
    started(wave, runbook({"move T-0": [copy]}, rollbacks={"undo": ["uncopy"]}))
    wave.poll("copy anna")
    for _ in range(3):
        wave.tick(minutes=2)
        wave.poll("copy anna")
    wave.tick(seconds=59)
    assert wave.step("copy anna")["status"] == "polling"
    wave.tick(seconds=1)
    assert wave.step("copy anna")["status"] == "poll_timeout"
    assert "420 seconds" in wave.step("copy anna")["error_message"]
    assert wave.members() == {"anna": "failed"}
    assert wave.jobs() == ["uncopy anna"]
    wave.succeed("uncopy anna")
    wave.tick(minutes=5)
    assert wave.ended() == "failed"


def test_an_answer_after_the_timeout_that_says_it_is_done_counts(wave: Wave) -> None:
    started(wave)
    wave.poll("copy anna")
    wave.tick(minutes=6)
    wave.clock.advance(minutes=30)
    wave.tick()
    assert wave.step("copy anna")["status"] == "polling"
    wave.succeed("copy anna", result={"complete": True})
    assert wave.finish() == "completed"


def test_an_answer_after_the_timeout_that_goes_on_ends_it(wave: Wave) -> None:
    started(wave)
    wave.poll("copy anna")
    wave.tick(minutes=6)
    wave.tick(minutes=30)
    wave.poll("copy anna")
    wave.tick()
    assert wave.step("copy anna")["status"] == "poll_timeout"
    assert wave.ended() == "failed"


def test_complete_means_nothing_without_poll(wave: Wave) -> None:
    started(wave, runbook({"move T-0": ["move"]}))
    wave.succeed("move anna", result={"complete": False})
    assert wave.ended() == "completed"


def test_a_polling_step_that_does_not_speak_of_complete_is_done(wave: Wave) -> None:
    started(wave)
    wave.succeed("copy anna", result=True)
    assert wave.jobs() == ["check anna"]
    assert wave.finish() == "completed"


def test_outputs_come_from_the_data_envelope(wave: Wave) -> None:
    started(wave)
    wave.succeed("copy anna", result={"complete": True, "data": {"Id": "42"}, "Id": "the envelope's"})
    assert wave.member("anna")["worker_data_json"] == '{"JobId":"42"}'
    assert wave.finish() == "completed"


def test_outputs_of_a_plain_result_are_its_own_fields(wave: Wave) -> None:
    started(wave)
    wave.succeed("copy anna", result={"id": 7, "data": {"Id": "no envelope without complete"}})
    assert wave.member("anna")["worker_data_json"] == '{"JobId":7}'
    assert wave.finish() == "completed"


def test_an_announced_poll_that_got_lost_is_announced_again(wave: Wave) -> None:
    started(wave)
    wave.poll("copy anna")
    wave.announce(minutes=2)
    assert wave.lose_events() == 1
    wave.announce(seconds=59)
    assert wave.lose_events() == 0
    wave.tick(seconds=1)
    assert wave.jobs() == ["copy anna"]
    assert wave.finish() == "completed"


def test_a_poll_job_carries_its_own_end_of_life(wave: Wave) -> None:
    started(wave)
    wave.poll("copy anna")
    wave.tick(minutes=2)
    assert wave.job("copy anna").not_after == wave.now + timedelta(days=7)
    assert wave.finish() == "completed"
