"""Results: which execution they mean, which forms they come in, and which are passed over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.messages import encode
from matoolkit.store import schema
from tests.orchestrator.runbooks import runbook, step

if TYPE_CHECKING:
    from tests.orchestrator.driver import Wave


def started(wave: Wave) -> dict[str, Any]:
    """One job is out; what a worker would echo of it."""
    wave.publish(runbook({"move T-0": [step("move", output_params={"Id": "Id"}), "check"]}))
    wave.batch("anna", minutes=0)
    wave.tick()
    job = wave.job("move anna")
    del wave.held["move anna"]
    correlation: dict[str, Any] = json.loads(encode(job.correlation_data))
    return {"jobId": job.job_id, "status": "success", "result": {"Id": 7}, "correlationData": correlation}


def arrives(wave: Wave, answer: dict[str, Any]) -> None:
    wave.send_result(json.dumps(answer))
    wave.pump()


def test_a_result_in_camel_case(wave: Wave) -> None:
    arrives(wave, started(wave))
    assert wave.jobs() == ["check anna"]
    assert wave.finish() == "completed"


def test_a_result_in_pascal_case_with_success_in_capitals(wave: Wave) -> None:
    """As the reference's workers wrote them."""
    answer = started(wave)
    step_id = answer["correlationData"]["stepExecutionId"]
    arrives(
        wave,
        {
            "JobId": answer["jobId"],
            "Status": "Success",
            "ResultType": "Object",
            "Result": {"complete": True, "data": {"Id": 7}},
            "Error": None,
            "DurationMs": 1234,
            "Timestamp": "2026-03-01T10:30:00Z",
            "CorrelationData": {
                "StepExecutionId": step_id,
                "IsInitStep": False,
                "RunbookName": "wave",
                "RunbookVersion": 1,
            },
        },
    )
    assert wave.jobs() == ["check anna"]
    assert wave.member("anna")["worker_data_json"] == '{"Id":7}'
    assert wave.finish() == "completed"


def test_a_result_in_snake_case(wave: Wave) -> None:
    answer = started(wave)
    step_id = answer["correlationData"]["stepExecutionId"]
    error = {"message": "busy", "type": "429", "is_throttled": True, "attempts": 5}
    correlation = {"step_execution_id": step_id, "is_init_step": False}
    arrives(wave, {"job_id": answer["jobId"], "status": "FAILURE", "error": error, "correlation_data": correlation})
    assert wave.step("move anna")["error_message"] == "429: busy (throttled, 5 attempts)"
    assert wave.ended() == "failed"


def test_a_result_of_another_deployment_is_not_ours(wave: Wave) -> None:
    answer = started(wave)
    other = {**answer, "correlationData": {**answer["correlationData"], "deploymentId": "blue"}}
    arrives(wave, other)
    assert wave.steps("anna")["move"] == "dispatched"
    arrives(wave, answer)
    assert wave.finish() == "completed"


@pytest.mark.parametrize("job", ["step-0", "", "init-1", "step-1-retry-1"])
def test_a_result_of_another_job_is_stale(wave: Wave, job: str) -> None:
    answer = started(wave)
    arrives(wave, {**answer, "jobId": answer["jobId"] + job})
    assert wave.steps("anna")["move"] == ("dispatched" if job else "succeeded")
    arrives(wave, answer)
    assert wave.finish() == "completed"


def test_of_a_stale_and_a_right_result_in_one_set_the_right_one_counts(wave: Wave) -> None:
    answer = started(wave)
    wave.send_result(json.dumps({**answer, "jobId": "step-0", "status": "failure"}))
    wave.send_result(json.dumps(answer))
    wave.send_result(json.dumps(answer))
    wave.pump()
    assert wave.jobs() == ["check anna"]
    assert wave.finish() == "completed"


def test_a_result_for_a_step_that_has_ended_is_ignored(wave: Wave) -> None:
    """The reference's race: a result for an already terminal step."""
    answer = started(wave)
    arrives(wave, answer)
    before = wave.step("move anna")
    arrives(wave, {**answer, "status": "failure", "error": {"message": "after all"}})
    arrives(wave, answer)
    assert wave.step("move anna") == before
    assert wave.members() == {"anna": "active"}
    assert wave.jobs() == ["check anna"]
    assert wave.finish() == "completed"


@pytest.mark.parametrize(
    "correlation",
    [{}, {"stepExecutionId": 999_999_999}, {"rollbackExecutionId": 999_999_999}, {"stepExecutionId": None}],
)
def test_a_result_of_nothing_we_know_is_passed_over(wave: Wave, correlation: dict[str, Any]) -> None:
    answer = started(wave)
    arrives(wave, {**answer, "correlationData": correlation})
    assert wave.steps("anna")["move"] == "dispatched"
    assert wave.rows(schema.dead_messages) == []
    arrives(wave, answer)
    assert wave.finish() == "completed"


@pytest.mark.parametrize("result", [None, True, 7, "done", [1, 2], {"Id": {"deep": "\0"}}])
def test_whatever_a_function_returns_is_kept(wave: Wave, result: Any) -> None:
    arrives(wave, {**started(wave), "result": result})
    assert json.loads(wave.step("move anna")["result_json"]) == result
    assert wave.jobs() == ["check anna"]
    assert wave.finish() == "completed"


def test_an_error_with_a_nul_in_it_is_kept_without(wave: Wave) -> None:
    arrives(wave, {**started(wave), "status": "failure", "error": {"message": "a\0b", "type": "T"}})
    assert wave.step("move anna")["error_message"] == "T: a\ufffdb"
    assert wave.ended() == "failed"


def test_a_failure_without_an_error_says_so(wave: Wave) -> None:
    arrives(wave, {**started(wave), "status": "failure"})
    assert "without saying why" in wave.step("move anna")["error_message"]
    assert wave.ended() == "failed"


def test_a_job_says_all_that_its_worker_needs(wave: Wave) -> None:
    wave.publish(runbook({"move T-0": [step("move", timeout="5m")]}))
    wave.batch("anna", minutes=0)
    wave.tick()
    job, row = wave.job("move anna"), wave.step("move anna")
    assert job.job_id == job.idempotency_key == f"step-{row['id']}"
    assert wave.held["move anna"].message.message_id == job.job_id
    assert dict(wave.held["move anna"].message.properties) == {"WorkerId": "worker-1", "FunctionName": "Do-move"}
    assert (job.batch_id, job.timeout_seconds, job.first_dispatched_at) == (wave.batch_id, 300, wave.now)
    assert job.not_after == wave.now + wave.settings.job_lifetime == row["job_not_after"]
    correlation = json.loads(encode(job.correlation_data))
    assert correlation == {
        "deploymentId": "local",
        "stepExecutionId": row["id"],
        "isInitStep": False,
        "runbookName": "wave",
        "runbookVersion": 1,
    }
    assert wave.finish() == "completed"
