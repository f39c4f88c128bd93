"""What comes of a job: always a result where one can be addressed, and never two."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from matoolkit.messages import Kind, encode
from matoolkit.worker import FunctionContext, FunctionError
from tests.worker.workplace import WORKER, Workplace, doing

if TYPE_CHECKING:
    from matoolkit.messages import WorkerResult


@dataclass
class Move:
    Name: str
    At: datetime


def run(workplace: Workplace, code: Any, parameters: dict[str, Any] | None = None, **fields: Any) -> WorkerResult:
    workplace.send(workplace.job(parameters=parameters, **fields))
    with workplace.working(doing(code)):
        return workplace.result()


def failure(result: WorkerResult) -> tuple[str, str, int]:
    assert result.status == "failure"
    assert result.error is not None
    assert result.result is None
    return result.error.type, result.error.message, result.error.attempts


@pytest.mark.parametrize(
    ("returned", "kind", "value"),
    [
        (None, "Boolean", True),
        (False, "Boolean", False),
        ({"complete": False, 1: {2}}, "Object", {"complete": False, "1": [2]}),
        (Move("a", datetime(2026, 3, 1, tzinfo=UTC)), "Object", {"Name": "a", "At": "2026-03-01T00:00:00Z"}),
        ("done", "Object", {"Value": "done"}),
        ([1, 2], "Object", {"Value": [1, 2]}),
        (0, "Object", {"Value": 0}),
    ],
)
@pytest.mark.parametrize("kind_of_function", ["coroutine", "plain"])
def test_what_a_function_returns_is_shaped(
    sqlite_database: Any, returned: Any, kind: str, value: Any, kind_of_function: str
) -> None:
    async def coroutine() -> Any:
        return returned

    result = run(Workplace(sqlite_database), coroutine if kind_of_function == "coroutine" else lambda: returned)
    assert (result.status, result.result_type, result.result, result.error) == ("success", kind, value, None)


def test_a_result_says_which_job_it_belongs_to(workplace: Workplace) -> None:
    job = workplace.job(parameters={"Name": "Ada"})
    workplace.send(job)
    seen = []

    def do(Name: str) -> bool:  # noqa: N803 - as runbooks write it
        seen.append((Name, threading.current_thread().name))
        return True

    with workplace.working(doing(do)):
        result = workplace.result()
    assert (result.job_id, result.batch_id, result.worker_id, result.function_name) == (job.job_id, 7, WORKER, "Do-It")
    assert result.correlation_data == job.correlation_data
    assert result.timestamp is not None
    assert result.duration_ms >= 0
    assert [name for name, _ in seen] == ["Ada"]
    assert seen[0][1].startswith("function-"), "a plain function runs in a thread of its own"
    assert workplace.jobs() == msgspec.structs.replace(workplace.jobs(), ready=0, locked=0, dead=0)


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot say")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no such room"), ("ValueError", "no such room", 1)),
        (FunctionError("gone", type="Request_ResourceNotFound"), ("Request_ResourceNotFound", "gone", 1)),
        (FunctionError("slow down", type="TooManyRequests", is_throttled=True, attempts=6), None),
        (SystemExit(3), ("SystemExit", "3", 1)),
        (KeyboardInterrupt(), ("KeyboardInterrupt", "KeyboardInterrupt", 1)),
        (Odd(), ("Odd", "Odd", 1)),
        (RecursionError("deep"), ("RecursionError", "deep", 1)),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("kind_of_function", ["coroutine", "plain"])
def test_whatever_a_function_raises_is_its_result(
    sqlite_database: Any, error: BaseException, expected: Any, kind_of_function: str
) -> None:
    async def coroutine() -> None:
        raise error

    def plain() -> None:
        raise error

    result = run(Workplace(sqlite_database), coroutine if kind_of_function == "coroutine" else plain)
    assert failure(result) == (expected or ("TooManyRequests", "slow down", 6))
    assert result.error is not None
    assert result.error.is_throttled is (expected is None)


def test_a_plain_function_may_stop_an_iteration(sqlite_database: Any) -> None:
    assert failure(run(Workplace(sqlite_database), lambda: next(iter(()))))[0] == "StopIteration"


def test_a_worker_survives_what_functions_raise(workplace: Workplace) -> None:
    async def do(Number: int) -> None:  # noqa: N803 - as runbooks write it
        sys.exit(Number)

    workplace.send(*(workplace.job(parameters={"Number": str(number)}) for number in range(20)))
    with workplace.working(doing(do), parallelism=3):
        assert {each.error.message for each in workplace.results(20) if each.error} == {str(n) for n in range(20)}


@pytest.mark.parametrize("name", ["do-it", "DO-IT"])
def test_names_of_functions_compare_without_case(sqlite_database: Any, name: str) -> None:
    workplace = Workplace(sqlite_database)
    workplace.send(workplace.job(name))
    with workplace.working(doing(lambda: None)):
        assert workplace.result().status == "success"


@pytest.mark.parametrize("name", ["Do-That", "os.system", "__import__", ""])
def test_nothing_is_called_that_is_not_registered(sqlite_database: Any, name: str) -> None:
    workplace = Workplace(sqlite_database)
    workplace.send(workplace.job(name))
    with workplace.working(doing(lambda: None)):
        kind, message, attempts = failure(workplace.result())
    assert (kind, attempts) == ("FunctionNotAllowed", 0)
    assert repr(name) in message


def test_what_is_wrong_with_parameters_is_told_at_once_and_nothing_is_run(workplace: Workplace) -> None:
    ran = []

    async def do(Name: str, Count: int) -> None:  # noqa: N803 - as runbooks write it
        ran.append(Name + str(Count))

    kind, message, attempts = failure(run(workplace, do, {"Count": "many", "Nmae": "Ada"}))
    assert (kind, attempts, ran) == ("ValidationError", 0, [])
    assert message == ("Do-It: there is no parameter Nmae; Name is missing; Count is not what is wanted: whole number")


def test_a_job_that_comes_late_is_not_run(workplace: Workplace) -> None:
    ran = []
    past = datetime.now(UTC) - timedelta(seconds=1)
    kind, _, attempts = failure(run(workplace, lambda: ran.append(1), not_after=past))
    assert (kind, attempts, ran) == ("Expired", 0, [])


def test_a_job_in_time_is_run(workplace: Workplace) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=1)
    assert run(workplace, lambda: None, not_after=soon).status == "success"


# Repeated ------------------------------------------------------------------------------------------------------------


def delivered_before(workplace: Workplace) -> None:
    """A worker took the job and was never heard of again."""
    assert len(workplace.take()) == 1
    workplace.expire_locks()


def test_what_cannot_be_repeated_is_not_done_again_for_a_job_that_is_handed_out_again(workplace: Workplace) -> None:
    ran = []
    workplace.send(workplace.job())
    delivered_before(workplace)
    with workplace.working(doing(lambda: ran.append(1), repeatable=False)):
        assert failure(workplace.result())[0] == "OutcomeUnknown"
    assert ran == []


def test_nor_for_a_further_attempt(workplace: Workplace) -> None:
    ran = []
    workplace.send(workplace.job(job_id="step-9-retry-1", idempotency_key="step-9"))
    with workplace.working(doing(lambda: ran.append(1), repeatable=False)):
        assert failure(workplace.result())[0] == "OutcomeUnknown"
    assert ran == []


def test_it_is_done_the_first_time(workplace: Workplace) -> None:
    workplace.send(workplace.job())
    with workplace.working(doing(lambda: None, repeatable=False)):
        assert workplace.result().status == "success"


def test_what_can_be_repeated_is_told_that_it_is(workplace: Workplace) -> None:
    first = datetime(2026, 3, 1, 12, tzinfo=UTC)
    workplace.send(workplace.job(job_id="step-9-retry-2-poll-1", idempotency_key="step-9", first_dispatched_at=first))
    delivered_before(workplace)
    seen: list[FunctionContext] = []

    async def do(ctx: FunctionContext) -> None:
        seen.append(ctx)

    with workplace.working(doing(do)):
        workplace.result()
    (ctx,) = seen
    assert (ctx.attempt, ctx.deliveries, ctx.redelivered, ctx.repeated) == (3, 2, True, True)
    assert (ctx.idempotency_key, ctx.first_dispatched_at) == ("step-9", first)
    assert ctx.deadline is not None
    assert ctx.deadline > datetime.now(UTC) + timedelta(minutes=29)


# Unreadable ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message_id", "job_id", "execution"),
    [
        ("{", "step-12-retry-1", "step-12-retry-1", (Kind.STEP, 12)),
        ("[]", "rollback-3", "rollback-3", (Kind.ROLLBACK, 3)),
        ('{"jobId": "init-4"}', "other", "init-4", (Kind.INIT, 4)),
        ('{"JobId": "mine", "CorrelationData": {"StepExecutionId": 5}}', "other", "mine", (Kind.STEP, 5)),
        ('{"job_id": 7, "parameters": []}', "removal-8", "removal-8", (Kind.REMOVAL, 8)),
    ],
)
def test_an_unreadable_job_is_answered_when_it_says_where_the_answer_belongs(
    workplace: Workplace, body: str, message_id: str, job_id: str, execution: Any
) -> None:
    workplace.send_bodies((body, message_id))
    with workplace.working(doing(lambda: None)):
        result = workplace.result()
    kind, message, attempts = failure(result)
    assert (kind, attempts) == ("ValidationError", 0)
    assert "the job cannot be read" in message
    assert (result.job_id, result.correlation_data.execution()) == (job_id, execution)


@pytest.mark.parametrize("body", ["", "{", "[]", '{"jobId": "what"}', '{"correlationData": {"isInitStep": true}}'])
def test_one_that_does_not_is_set_aside_and_holds_nobody_up(workplace: Workplace, body: str) -> None:
    workplace.send_bodies((body, "whatever"))
    workplace.send(workplace.job())
    with workplace.working(doing(lambda: None)):
        assert workplace.result().status == "success"
    (dead,) = workplace.dead()
    assert (dead.reason, dead.body) == ("UnreadableJob", body)
    assert dead.description


@pytest.mark.parametrize("job_id", ["x" * 261_900, "a\\u0000b"], ids=["long", "nul"])
@pytest.mark.parametrize("readable", [True, False])
def test_a_job_that_no_result_can_be_made_of_is_set_aside_and_ends_nobody(
    workplace: Workplace, job_id: str, *, readable: bool
) -> None:
    fields = '"batchId":1,"workerId":"w","functionName":"Do-It","parameters":{},' if readable else ""
    workplace.send_bodies((f'{{"jobId":"{job_id}",{fields}"correlationData":{{"stepExecutionId":5}}}}', "whatever"))
    workplace.send(workplace.job())
    with workplace.working(doing(lambda: None)):
        assert workplace.result().status == "success"
    (dead,) = workplace.dead()
    assert dead.reason == "NoResult"


def test_keys_in_any_case_are_read(workplace: Workplace) -> None:
    body = encode(workplace.job()).replace('"functionName"', '"FunctionName"').replace('"batchId"', '"batch_id"')
    workplace.send_bodies((body, None))
    with workplace.working(doing(lambda: None)):
        assert workplace.result().status == "success"


# Results that cannot be sent -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("returned", [{"Text": "x" * 300_000}, {"Thing": object()}, {"Text": "\ud800"}])
def test_a_result_that_cannot_be_sent_is_a_failure_that_says_so(workplace: Workplace, returned: Any) -> None:
    kind, message, attempts = failure(run(workplace, lambda: returned))
    assert kind in ("ResultRefused", "UnfitReturn")
    assert attempts == 1
    assert len(message) < 1000


def test_a_long_error_is_cut(workplace: Workplace) -> None:
    def fail() -> None:
        raise ValueError("x" * 500_000)

    assert len(failure(run(workplace, fail))[1]) == 4000


def test_a_huge_function_name_is_answered(workplace: Workplace) -> None:
    workplace.send(workplace.job("N" * 200_000))
    with workplace.working(doing(lambda: None)):
        assert failure(workplace.result())[0] == "FunctionNotAllowed"
