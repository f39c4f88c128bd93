"""From an execution to a job: its function and parameters resolved from fresh data, its row and its message written."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.bus import BusError, Outgoing, check
from matoolkit.errors import MatoolkitError
from matoolkit.messages import WorkerJob, correlated, encode
from matoolkit.orchestrator.decisions import job_id
from matoolkit.orchestrator.library import StepMissing
from matoolkit.runbooks import UnresolvedVariables, Values, resolve_step
from matoolkit.store.executions import EXECUTIONS
from matoolkit.store.states import ExecutionStatus
from matoolkit.telemetry.metrics import JOBS_SENT, STEPS_ENDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from matoolkit.messages import Kind
    from matoolkit.orchestrator.work import Work
    from matoolkit.runbooks import Step
    from matoolkit.store.batches import Batch
    from matoolkit.store.executions import Execution
    from matoolkit.store.members import Member

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_NOBODY: dict[str, Any] = {}
_LONGEST_FUNCTION_NAME = 256


class UnfitData(MatoolkitError):
    """A member's data cannot be read, or makes of a function's name what no function can be called."""


_REFUSALS = (UnresolvedVariables, StepMissing, UnfitData, BusError)
"""What is wrong with one member's step, and must not hold up the others of its set."""


def send(
    work: Work,
    kind: Kind,
    executions: Iterable[Execution],
    batches: Mapping[int, Batch],
    members: Mapping[int, Member],
) -> list[tuple[Execution, str]]:
    """Send pending executions to their workers; gives those that cannot be sent, ended as failed, each with why."""
    rows: list[tuple[Any, ...]] = []
    refused: list[tuple[Execution, str]] = []
    resolving = _Resolving(work)
    not_after = work.now + work.settings.job_lifetime
    for execution in _with_worker(work, executions):
        batch = batches[execution.batch_id]
        member = None if execution.member_id is None else members[execution.member_id]
        job = job_id(kind, execution.id, retry=execution.retry_count, poll=0)
        try:
            function, parameters = resolving.resolved(execution, batch, member)
            message = _message(work, execution, batch, job, (function, parameters))
            check(work.settings.jobs_topic, message)
        except _REFUSALS as error:
            refused.append((execution, str(error)))
            continue
        row = (
            execution.id,
            ExecutionStatus.PENDING,
            ExecutionStatus.DISPATCHED,
            job,
            function,
            _encode(parameters).decode(),
            0,
        )
        rows.append(row)
        work.send_job(message)
    EXECUTIONS[kind].send(work.tx, rows, work.now, not_after)
    work.count(JOBS_SENT, len(rows), kind=kind)
    if refused:
        work.count(STEPS_ENDED, len(refused), kind=kind, status=ExecutionStatus.FAILED)
        ended = [(execution.id, ExecutionStatus.FAILED, error) for execution, error in refused]
        EXECUTIONS[kind].refuse(work.tx, ended, work.now)
    return refused


def send_polls(work: Work, kind: Kind, executions: Iterable[Execution], batches: Mapping[int, Batch]) -> None:
    """Ask again: the same function with the same parameters."""
    rows: list[tuple[Any, ...]] = []
    not_after = work.now + work.settings.job_lifetime
    for execution in _with_worker(work, executions):
        poll = execution.poll_count + 1
        job = job_id(kind, execution.id, retry=execution.retry_count, poll=poll)
        parameters = execution.params_json or "{}"
        polling = ExecutionStatus.POLLING
        rows.append((execution.id, polling, polling, job, execution.function_name, parameters, poll))
        batch = batches[execution.batch_id]
        work.send_job(_message(work, execution, batch, job, (execution.function_name, _decode(parameters))))
    EXECUTIONS[kind].send(work.tx, rows, work.now, not_after)
    work.count(JOBS_SENT, len(rows), kind=kind)


def _with_worker(work: Work, executions: Iterable[Execution]) -> Iterator[Execution]:
    """Those somebody would run. The others stay as they are, and are looked at again by reconciliation."""
    missing: Counter[str] = Counter()
    for execution in executions:
        if work.has_worker(execution.worker_id):
            yield execution
        else:
            missing[execution.worker_id] += 1
    for worker, count in sorted(missing.items()):
        log.warning("%d jobs wait, because no worker '%s' has ever registered", count, worker)


class _Resolving:
    """Resolves the steps of one set; what the members of a batch have in common is looked up once."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._steps: dict[tuple[int, int, str | None, int], Step] = {}
        self._specials: dict[int, dict[str, object]] = {}

    def resolved(self, execution: Execution, batch: Batch, member: Member | None) -> tuple[str, dict[str, object]]:
        place = (batch.id, execution.runbook_version, execution.group, execution.step_index)
        step = self._steps.get(place)
        if step is None:
            step = self._steps[place] = self._work.library.step(self._work.tx, batch, execution)
        specials = self._specials.get(batch.id)
        if specials is None:
            start = batch.start_time
            text = None if start is None else start.strftime("%Y-%m-%dT%H:%M:%SZ")
            specials = self._specials[batch.id] = {"_batch_id": batch.id, "_batch_start_time": text}
        if member is None:
            return resolve_step(step, Values(_NOBODY, _NOBODY, specials))
        try:
            data = _decode(member.data_json)
            worker_data = _decode(member.worker_data_json) if member.worker_data_json else _NOBODY
        except msgspec.DecodeError as error:
            raise UnfitData(f"the member's data cannot be read: {error}") from error
        function, parameters = resolve_step(step, Values(data, worker_data, specials))
        if len(function) > _LONGEST_FUNCTION_NAME or not function.isprintable():
            raise UnfitData("the function's name is over 256 characters or holds some that cannot be printed")
        return function, parameters


def _message(work: Work, execution: Execution, batch: Batch, job: str, call: tuple[str, dict[str, Any]]) -> Outgoing:
    function, parameters = call
    body = WorkerJob(
        job_id=job,
        batch_id=execution.batch_id,
        worker_id=execution.worker_id,
        function_name=function,
        parameters=parameters,
        idempotency_key=f"{execution.kind}-{execution.id}",
        first_dispatched_at=execution.first_dispatched_at or work.now,
        not_after=work.now + work.settings.job_lifetime,
        timeout_seconds=execution.timeout_sec,
        traceparent=work.tracing.of(execution, batch),
        correlation_data=correlated(
            execution.kind,
            execution.id,
            deployment_id=work.settings.deployment_id,
            runbook=(batch.runbook_name, execution.runbook_version),
        ),
    )
    return Outgoing(
        body=encode(body),
        properties={"WorkerId": execution.worker_id, "FunctionName": function},
        message_id=job,
        time_to_live=work.settings.job_lifetime,
    )
