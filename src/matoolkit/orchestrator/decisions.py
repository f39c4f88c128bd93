"""What follows from an event, decided from rows and the event alone: no database, no clock, no chance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from matoolkit.messages import Kind
from matoolkit.store.states import BatchStatus, ExecutionStatus, PhaseStatus, SkipReason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matoolkit.messages import WorkerError, WorkerResult
    from matoolkit.store.batches import Batch
    from matoolkit.store.executions import Execution
    from matoolkit.store.members import Member

_NO_TEXT = str.maketrans({"\0": "\ufffd"})


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The step is done."""

    result_json: str
    outcome: Mapping[str, Any] | None
    """Where its outputs are found."""


@dataclass(frozen=True, slots=True)
class GoesOn:
    """The worker will know more later: ask again."""

    result_json: str
    ask_at: datetime


@dataclass(frozen=True, slots=True)
class TryAgain:
    """It failed, and has tries left."""

    error: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Failed:
    """It failed for good."""

    error: str


@dataclass(frozen=True, slots=True)
class TooLate:
    """Nobody waits for it any more: recorded, and nothing else."""

    result_json: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Stale:
    """Not the job this execution waits for: a duplicate, or an attempt that was given up."""


Decision = Succeeded | GoesOn | TryAgain | Failed | TooLate | Stale


def on_result(
    execution: Execution, result: WorkerResult, batch: Batch, member: Member | None, now: datetime
) -> Decision:
    """What a worker's result means for the execution it speaks of."""
    if not execution.job_out or result.job_id != execution.job_id:
        return Stale()
    if execution.status == ExecutionStatus.CANCELLED or not still_wanted(execution, batch, member):
        failed = result.error is not None or result.status == "failure"
        return TooLate(_json(result.result), error_text(result.error) if failed else None)
    if result.status == "failure":
        error = error_text(result.error)
        if execution.retry_count < execution.max_retries:
            return TryAgain(error, now + timedelta(seconds=execution.retry_interval_sec or 0))
        return Failed(error)
    if execution.is_poll_step and isinstance(result.result, dict) and _field(result.result, "complete") is False:
        return GoesOn(_json(result.result), next_poll(execution, now))
    return Succeeded(_json(result.result), outputs_of(result.result))


def still_wanted(execution: Execution, batch: Batch, member: Member | None) -> bool:
    """Whether anything may follow from an execution: not after its batch ended or its member left."""
    match execution.kind:
        case Kind.STEP:
            return (
                batch.is_active
                and member is not None
                and member.is_active
                and member.generation == execution.generation
            )
        case Kind.INIT:
            if batch.status in (BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED):
                return True
            return batch.is_active and batch.rerunning_init_version == execution.runbook_version
        case Kind.ROLLBACK | Kind.REMOVAL:
            return True
        case _:
            assert_never(execution.kind)


def next_poll(execution: Execution, now: datetime) -> datetime:
    """When to ask again: an interval after the last answer, and no later than the timeout."""
    ask_at = now + timedelta(seconds=execution.poll_interval_sec or 0)
    return min(ask_at, poll_deadline(execution, now))


def poll_deadline(execution: Execution, now: datetime) -> datetime:
    """When asking ends."""
    return (execution.poll_started_at or now) + timedelta(seconds=execution.poll_timeout_sec or 0)


def phase_outcome(*, any_through: bool, any_failed: bool) -> tuple[PhaseStatus, SkipReason | None]:
    """What a phase has come to, once all its members have ended."""
    if any_through:
        return PhaseStatus.COMPLETED, None
    if any_failed:
        return PhaseStatus.FAILED, None
    return PhaseStatus.SKIPPED, SkipReason.EMPTY


def batch_outcome(*, any_completed: bool, any_failed: bool) -> BatchStatus:
    """What a batch has come to, once all its phases have ended."""
    return BatchStatus.FAILED if any_failed and not any_completed else BatchStatus.COMPLETED


def job_id(kind: Kind, execution_id: int, *, retry: int, poll: int) -> str:
    """The id of one attempt's job: another for each, since topics drop what they have seen."""
    job = f"{kind}-{execution_id}"
    if retry:
        job += f"-retry-{retry}"
    return f"{job}-poll-{poll}" if poll else job


def outputs_of(result: Any) -> Mapping[str, Any] | None:
    """Where a step's outputs are: in the result, or in its `data` when it has that envelope."""
    if not isinstance(result, dict):
        return None
    data = _field(result, "data")
    return data if isinstance(data, dict) and _field(result, "complete") is not None else result


def picked_outputs(wanted: Sequence[tuple[str, str]], found: Mapping[str, Any] | None) -> dict[str, Any]:
    """The variables a step sets, from the fields of what it returned; fields that are not there set nothing."""
    if found is None:
        return {}
    values = {variable: _field(found, field, _MISSING) for variable, field in wanted}
    return {variable: value for variable, value in values.items() if value is not _MISSING}


def error_text(error: WorkerError | None) -> str:
    """A failure in one line for an operator: what kind, what happened, after how many attempts."""
    if error is None:
        return "the worker reported a failure without saying why"
    text = f"{error.type}: {error.message}" if error.type else error.message
    if error.is_throttled:
        text += f" (throttled, {error.attempts} attempts)"
    return text.translate(_NO_TEXT) or "the worker reported a failure without saying why"


_MISSING = object()


def _field(fields: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """A field by its name; in any case where no name fits to the letter."""
    if name in fields:
        return fields[name]
    folded = name.casefold()
    return next((value for key, value in fields.items() if key.casefold() == folded), default)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
