"""The eight messages, typed, to and from the wire.

What is written is camelCase JSON. What is read may also be PascalCase or snake_case, and may hold keys nobody here
knows: they are ignored, so that older and newer parts understand each other.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from matoolkit.errors import MatoolkitError


class UnreadableMessage(MatoolkitError):
    """The body of a message cannot be understood."""


class UnknownMessage(MatoolkitError):
    """The message is of a type this version does not know."""


class Kind(StrEnum):
    """What an execution of a step belongs to; also the first part of its job ids."""

    STEP = "step"
    """A member, in a phase."""
    INIT = "init"
    """The start of a batch."""
    ROLLBACK = "rollback"
    """The undoing of a failed step."""
    REMOVAL = "removal"
    """The leaving of a member."""


class _Body(Struct, frozen=True, kw_only=True, rename="camel"):
    schema_version: int = 1
    traceparent: str | UnsetType = UNSET


class _Event(_Body, frozen=True, kw_only=True, rename="camel", tag_field="messageType"):
    runbook_name: str = ""
    runbook_version: int = 0
    batch_id: int


class BatchInit(_Event, frozen=True, kw_only=True, rename="camel", tag="batch-init"):
    """A batch is to run its init steps."""

    batch_start_time: datetime | UnsetType | None = UNSET
    member_count: int = 0


class PhaseDue(_Event, frozen=True, kw_only=True, rename="camel", tag="phase-due"):
    """A phase's time has come; or, with `after_member_id`, the next chunk of its members is to be started."""

    phase_execution_id: int
    phase_name: str = ""
    offset_minutes: int = 0
    due_at: datetime | UnsetType | None = UNSET
    after_member_id: int = 0


class MemberAdded(_Event, frozen=True, kw_only=True, rename="camel", tag="member-added"):
    """A member joined, or came back to, a batch that is under way."""

    batch_member_id: int
    member_key: str = ""
    generation: int = 1


class MemberRemoved(_Event, frozen=True, kw_only=True, rename="camel", tag="member-removed"):
    """A member left a batch."""

    batch_member_id: int
    member_key: str = ""
    generation: int = 1


class _Check(_Event, frozen=True, kw_only=True, rename="camel"):
    kind: Kind | UnsetType = UNSET
    execution_id: int | UnsetType = UNSET
    step_execution_id: int | UnsetType = UNSET
    is_init_step: bool | UnsetType = UNSET

    batch_id: int = 0

    def execution(self) -> tuple[Kind, int]:
        """Which execution is meant, from the new fields or from the two older ones."""
        if self.execution_id is not UNSET:
            return (self.kind if self.kind is not UNSET else Kind.STEP), self.execution_id
        if self.step_execution_id is UNSET:
            raise UnreadableMessage("the message names no execution: executionId or stepExecutionId is missing")
        return (Kind.INIT if self.is_init_step is True else Kind.STEP), self.step_execution_id


class PollCheck(_Check, frozen=True, kw_only=True, rename="camel", tag="poll-check"):
    """A polling step's interval has passed."""

    step_name: str = ""
    poll_count: int | UnsetType = UNSET


class RetryCheck(_Check, frozen=True, kw_only=True, rename="camel", tag="retry-check"):
    """A failed step's retry interval has passed."""

    retry_count: int | UnsetType = UNSET


def execution_fields(kind: Kind, execution_id: int) -> dict[str, Any]:
    """How a check names its execution, for new readers and, where they know the kind, for older ones."""
    fields: dict[str, Any] = {"kind": kind, "execution_id": execution_id}
    if kind in (Kind.STEP, Kind.INIT):
        fields |= {"step_execution_id": execution_id, "is_init_step": kind is Kind.INIT}
    return fields


class Correlation(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a worker echoes, so that a result finds its execution."""

    deployment_id: str | UnsetType = UNSET
    step_execution_id: int | UnsetType | None = UNSET
    init_execution_id: int | UnsetType | None = UNSET
    rollback_execution_id: int | UnsetType | None = UNSET
    removal_execution_id: int | UnsetType | None = UNSET
    is_init_step: bool = False
    runbook_name: str = ""
    runbook_version: int = 0

    def execution(self) -> tuple[Kind, int] | None:
        """Which execution is meant, if any is."""
        if isinstance(self.step_execution_id, int):
            # Older senders named init executions here too, told apart by the flag.
            return (Kind.INIT if self.is_init_step else Kind.STEP), self.step_execution_id
        if isinstance(self.init_execution_id, int):
            return Kind.INIT, self.init_execution_id
        if isinstance(self.rollback_execution_id, int):
            return Kind.ROLLBACK, self.rollback_execution_id
        if isinstance(self.removal_execution_id, int):
            return Kind.REMOVAL, self.removal_execution_id
        return None


def correlated(
    kind: Kind, execution_id: int, *, deployment_id: str | UnsetType = UNSET, runbook: tuple[str, int] = ("", 0)
) -> Correlation:
    """What is to be echoed for an execution of a runbook's step; the runbook by name and version."""
    return Correlation(
        deployment_id=deployment_id,
        step_execution_id=execution_id if kind is Kind.STEP else UNSET,
        init_execution_id=execution_id if kind is Kind.INIT else UNSET,
        rollback_execution_id=execution_id if kind is Kind.ROLLBACK else UNSET,
        removal_execution_id=execution_id if kind is Kind.REMOVAL else UNSET,
        is_init_step=kind is Kind.INIT,
        runbook_name=runbook[0],
        runbook_version=runbook[1],
    )


class WorkerJob(_Body, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A function to be run by a worker."""

    job_id: str
    batch_id: int
    worker_id: str
    function_name: str
    parameters: dict[str, Any]
    idempotency_key: str = ""
    first_dispatched_at: datetime | None = None
    not_after: datetime | None = None
    timeout_seconds: int = 1800
    correlation_data: Correlation

    message_type: ClassVar[str] = "worker-job"


class WorkerError(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Why a job failed."""

    message: str = ""
    type: str = ""
    is_throttled: bool = False
    attempts: int = 0


class WorkerResult(_Body, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What came of a job."""

    job_id: str
    batch_id: int = 0
    worker_id: str = ""
    function_name: str = ""
    status: Literal["success", "failure"]
    result_type: str | None = None
    result: Any = None
    error: WorkerError | None = None
    duration_ms: int = 0
    timestamp: datetime | None = None
    correlation_data: Correlation

    message_type: ClassVar[str] = "worker-result"


Event = BatchInit | PhaseDue | MemberAdded | MemberRemoved | PollCheck | RetryCheck

_EVENT_TYPES: dict[str, type[Struct]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (BatchInit, PhaseDue, MemberAdded, MemberRemoved, PollCheck, RetryCheck)
}
_JOB_ID = re.compile(rf"({'|'.join(Kind)})-(\d{{1,18}})(?:-|$)")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
# What this product wrote itself is read at once; whatever these refuse is looked at more patiently.
_jobs = msgspec.json.Decoder(WorkerJob)
_results = msgspec.json.Decoder(WorkerResult)


def message_type(event: Event) -> str:
    """The name under which an event travels."""
    return str(event.__struct_config__.tag)


def encode(message: Struct) -> str:
    """A message as it goes on the wire."""
    return _encoder.encode(message).decode()


def decode_event(body: str | bytes, type_hint: str | None = None) -> Event:
    """An event from the wire; `type_hint` is the application property, for senders that leave it out of the body."""
    fields = _fields(body)
    named = fields.get("messageType") or fields.get("MessageType") or fields.get("message_type") or type_hint
    found = _EVENT_TYPES.get(str(named))
    if found is None:
        raise UnknownMessage(f"no message is of the type {named!r}")
    fields = _known_keys(fields, found)
    fields["messageType"] = named
    event: Event = _convert(fields, found)
    return event


def decode_job(body: str | bytes) -> WorkerJob:
    """A job from the wire."""
    try:
        return _jobs.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        job: WorkerJob = _convert(_nested(_known_keys(_fields(body), WorkerJob)), WorkerJob)
        return job


def salvaged_job(body: str | bytes, message_id: str) -> WorkerJob | None:
    """What an unreadable job still says about where its result belongs; None when it does not say even that.

    The id of its message is the job's id, and the id names the execution.
    """
    try:
        fields = _nested(_known_keys(_fields(body), WorkerJob))
    except UnreadableMessage:
        fields = {}
    job_id = fields.get("jobId")
    if not isinstance(job_id, str) or not job_id:
        job_id = message_id
    correlation = _salvaged_correlation(fields.get("correlationData"), job_id)
    if correlation is None:
        return None
    texts = {key: value for key in ("workerId", "functionName") if isinstance(value := fields.get(key), str)}
    batch_id = fields.get("batchId")
    return WorkerJob(
        job_id=job_id,
        batch_id=batch_id if isinstance(batch_id, int) else 0,
        worker_id=texts.get("workerId", ""),
        function_name=texts.get("functionName", ""),
        parameters={},
        correlation_data=correlation,
    )


def decode_result(body: str | bytes) -> WorkerResult:
    """A result from the wire."""
    try:
        return _results.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        fields = _nested(_known_keys(_fields(body), WorkerResult))
        status = fields.get("status")
        if isinstance(status, str):
            fields["status"] = status.lower()
        result: WorkerResult = _convert(fields, WorkerResult)
        return result


def _salvaged_correlation(given: Any, job_id: str) -> Correlation | None:
    try:
        correlation: Correlation = msgspec.convert(given, Correlation)
    except msgspec.ValidationError:
        pass
    else:
        if correlation.execution() is not None:
            return correlation
    found = _JOB_ID.match(job_id)
    return correlated(Kind(found[1]), int(found[2])) if found else None


def _fields(body: str | bytes) -> dict[str, Any]:
    try:
        fields = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableMessage(f"the body is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise UnreadableMessage(f"the body is a JSON {type(fields).__name__}, not an object")
    return fields


def _convert(fields: dict[str, Any], kind: type[Any]) -> Any:
    try:
        return msgspec.convert(fields, kind)
    except (msgspec.ValidationError, OverflowError) as error:
        raise UnreadableMessage(f"the body is no {kind.__name__}: {error}") from error


def _nested(fields: dict[str, Any]) -> dict[str, Any]:
    """The two parts of a job or a result that have keys of ours; what is in parameters and results is left alone."""
    for key, kind in (("correlationData", Correlation), ("error", WorkerError)):
        part = fields.get(key)
        if isinstance(part, dict):
            fields[key] = _known_keys(part, kind)
    return fields


def _known_keys(fields: dict[str, Any], kind: type[Struct]) -> dict[str, Any]:
    """The keys a message is written with, in whatever case they came; a key in the right case wins over another."""
    known = kind.__struct_encode_fields__
    renamed: dict[str, Any] = {}
    for key, value in fields.items():
        name = key if key in known else _camel(key)
        if name in known and (name not in renamed or key == name):
            renamed[name] = value
    return renamed


def _camel(key: str) -> str:
    joined = re.sub(r"_+([a-zA-Z0-9])", lambda match: match.group(1).upper(), key)
    return joined[:1].lower() + joined[1:]
