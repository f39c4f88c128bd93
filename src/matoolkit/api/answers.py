"""What the API answers, field by field: camelCase on the wire, times in ISO 8601 with the zone UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from matoolkit.batches.manual import Action
from matoolkit.store.states import BatchStatus, ExecutionStatus, MemberStatus, PhaseStatus, SequenceStatus, SkipReason


class Answer(BaseModel):
    """What every answer has in common."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class ErrorAnswer(BaseModel):
    """Why it could not be done."""

    error: str


class RunbookErrorsAnswer(BaseModel):
    """Everything that is wrong with a runbook, or why the request could not be read."""

    errors: list[str] | None = None
    error: str | None = None


class FileErrorsAnswer(BaseModel):
    """Everything that is wrong with a file, or why the request could not be read."""

    error: str
    errors: list[str] | None = None
    warnings: list[str] | None = None


class Health(Answer):
    """Whether the API works."""

    status: Literal["healthy", "unhealthy"]
    database: Literal["reachable", "unreachable"]
    version: str


class Published(Answer):
    """A runbook that was published."""

    runbook_id: int
    version: int
    data_table_name: str | None
    warnings: list[str]


class RunbookSummary(Answer):
    """A runbook's active version."""

    id: int
    name: str
    version: int
    data_table_name: str | None
    overdue_behavior: str
    rerun_init: bool
    created_at: datetime
    last_error: str | None
    last_error_at: datetime | None


class ListedRunbook(RunbookSummary):
    """A runbook that is in force."""

    automation_enabled: bool
    """Whether new batches are made of what its query finds."""


class RunbookList(Answer):
    """Active runbooks, by name."""

    runbooks: list[ListedRunbook]
    next_cursor: str | None = None


class RunbookDetail(RunbookSummary):
    """One version of a runbook."""

    yaml_content: str
    is_active: bool
    published_by: str | None


class VersionSummary(RunbookSummary):
    """One of the versions of a runbook."""

    is_active: bool
    published_by: str | None


class VersionList(Answer):
    """All versions of a runbook, the newest first."""

    name: str
    versions: list[VersionSummary]


class VersionDeleted(Answer):
    """A version that is no longer in force."""

    message: str
    name: str
    version: int


class AutomationAnswer(Answer):
    """Whether a runbook makes batches by itself."""

    runbook_name: str
    automation_enabled: bool
    enabled_at: datetime | None
    enabled_by: str | None
    disabled_at: datetime | None
    disabled_by: str | None


class PreviewGroup(Answer):
    """Members who would be a batch."""

    batch_time: datetime
    member_count: int


class PreviewAnswer(Answer):
    """What a runbook's query gives now."""

    row_count: int
    columns: list[str]
    sample: list[dict[str, Any]] = Field(max_length=100)
    batch_groups: list[PreviewGroup]
    warnings: list[str] = []


class BatchSummary(Answer):
    """A batch."""

    id: int
    runbook_name: str
    runbook_version: int
    batch_start_time: datetime | None
    status: BatchStatus
    is_manual: bool
    created_by: str | None
    current_phase: str | None
    member_count: int
    detected_at: datetime
    init_dispatched_at: datetime | None
    completed_at: datetime | None


class BatchList(Answer):
    """Batches, the newest first."""

    batches: list[BatchSummary]
    total: int
    limit: int
    offset: int
    next_cursor: str | None = None


class PhaseAnswer(Answer):
    """A phase of a batch."""

    id: int
    phase_name: str
    offset_minutes: int
    due_at: datetime | None
    status: PhaseStatus
    skip_reason: SkipReason | None
    runbook_version: int
    dispatched_at: datetime | None
    completed_at: datetime | None
    waiting_for: str | None = None
    steps_by_status: dict[str, int] | None = None


class PhaseList(Answer):
    """A batch's phases in the order of time, those of older versions first."""

    batch_id: int
    phases: list[PhaseAnswer]


class StepAnswer(Answer):
    """A step of a member, or one of init."""

    id: int
    phase_execution_id: int | None
    phase_name: str | None
    batch_member_id: int | None
    member_key: str | None
    step_name: str
    step_index: int
    worker_id: str
    function_name: str
    status: ExecutionStatus
    job_id: str | None
    is_poll_step: bool
    poll_count: int
    retry_count: int
    dispatched_at: datetime | None
    completed_at: datetime | None
    error_message: str | None
    rollback_status: SequenceStatus | None
    runbook_version: int
    waiting_for: str | None = None


class StepList(Answer):
    """Steps of a batch in the order they were written."""

    batch_id: int
    total: int
    steps: list[StepAnswer]
    next_cursor: str | None = None


class BatchDetail(BatchSummary):
    """A batch with what it is about to do."""

    available_phases: list[str]
    cancelled_by: str | None
    held_removals: int
    members_by_status: dict[str, int]
    waiting_for: str | None = None


class BatchAnswer(Answer):
    """A batch, its phases and its init."""

    batch: BatchDetail
    phases: list[PhaseAnswer]
    init_steps: list[StepAnswer]


class BatchCreated(Answer):
    """A manual batch that was made."""

    batch_id: int
    status: BatchStatus
    member_count: int
    available_phases: list[str]
    warnings: list[str]


class MemberAnswer(Answer):
    """A member of a batch; `data` and `workerData` for those who may see people's data."""

    id: int
    member_key: str
    status: MemberStatus
    generation: int
    added_at: datetime
    removed_at: datetime | None
    removed_by: str | None
    failed_at: datetime | None
    completed_at: datetime | None
    data: dict[str, Any] | None = None
    worker_data: dict[str, Any] | None = None
    waiting_for: str | None = None


class MemberList(Answer):
    """Members of a batch in the order they were added."""

    batch_id: int
    total: int
    members: list[MemberAnswer]
    next_cursor: str | None = None


class MembersAdded(Answer):
    """Members who joined a manual batch."""

    batch_id: int
    added_count: int
    skipped_count: int
    warnings: list[str]


class MemberRemovedAnswer(Answer):
    """A member who was taken out."""

    message: str
    batch_id: int
    member_id: int


class Advanced(Answer):
    """How far a batch was taken."""

    action: Action
    phase_name: str | None
    member_count: int
    step_count: int
    next_phase: str | None


class Cancelled(Answer):
    """A batch that was cancelled."""

    message: str
    batch_id: int
    status: BatchStatus


class Released(Answer):
    """Held removals that were let go."""

    batch_id: int
    released_count: int


class DeadLetterAnswer(Answer):
    """A message that could not be handled; what may be about people is left out of its body."""

    id: int
    topic: str
    message_type: str | None
    reason: str
    error: str | None
    at: datetime
    body: Any
    resubmitted_at: datetime | None
    resubmitted_by: str | None


class DeadLetterList(Answer):
    """Messages that could not be handled, the newest first."""

    messages: list[DeadLetterAnswer]
    next_cursor: str | None = None


class Resubmitted(Answer):
    """A message that was sent again."""

    message: str


class AuditEntry(Answer):
    """Something that somebody did."""

    at: datetime
    actor: str
    action: str
    target: str
    batch_id: int | None
    detail: dict[str, Any] | None


class AuditList(Answer):
    """What was done, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None = None
