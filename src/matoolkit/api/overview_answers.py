"""What the API answers about one person closely, and about all of it from afar."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from matoolkit.api.answers import Answer, BatchSummary, MemberAnswer, StepAnswer
from matoolkit.store.states import BatchStatus


class Whereabouts(Answer):
    """A batch in which somebody is or was."""

    batch: BatchSummary
    member: MemberAnswer


class MemberPlaces(Answer):
    """Every batch in which somebody is or was, the latest first."""

    places: list[Whereabouts]
    next_cursor: str | None = None


class ExecutionAnswer(StepAnswer):
    """A step of a member; what was sent and what came of it for those who may see people's data."""

    generation: int | None
    undoes: int | None
    rollback_name: str | None
    parameters: dict[str, Any] | None
    result: Any


class MemberHistory(Answer):
    """A member with all that was done: steps, what undid them, and what was done as they left."""

    batch_id: int
    member: MemberAnswer
    steps: list[ExecutionAnswer]
    rollbacks: list[ExecutionAnswer]
    removals: list[ExecutionAnswer]


class FailureAnswer(Answer):
    """What went wrong in the same way, and how often."""

    kind: Literal["step", "init", "rollback", "removal"]
    phase_name: str | None
    step_name: str
    worker_id: str
    function_name: str
    error_message: str | None
    count: int
    last_at: datetime | None


class FailureList(Answer):
    """What went wrong in a batch, the most frequent first."""

    batch_id: int
    failures: list[FailureAnswer]


class NextPhaseAnswer(Answer):
    """A phase that is to come."""

    batch_id: int
    runbook_name: str
    batch_status: BatchStatus
    batch_start_time: datetime | None
    phase_name: str
    due_at: datetime


class WorkerAnswer(Answer):
    """What lies before a worker; without an id it serves every one."""

    worker_id: str | None
    waiting: int
    running: int
    oldest_since: datetime | None
    is_silent: bool


class SchedulerAnswer(Answer):
    """Whether something starts what is due."""

    is_running: bool
    holder: str | None
    lease_expires_at: datetime | None


class HeldAnswer(Answer):
    """Removals of a batch that wait for an operator."""

    batch_id: int
    runbook_name: str
    count: int
    since: datetime


class RunbookTroubleAnswer(Answer):
    """What the last tick found wrong with a runbook."""

    name: str
    version: int
    last_error: str
    last_error_at: datetime | None


class StatusAnswer(Answer):
    """All of it from afar."""

    at: datetime
    attention: list[str]
    """What a person should look at, in words; empty when there is nothing."""
    batches_by_status: dict[str, int]
    open_batches: list[BatchSummary]
    next_phases: list[NextPhaseAnswer]
    scheduler: SchedulerAnswer
    workers: list[WorkerAnswer] | None
    """Null where the messages do not lie in the database."""
    held_removals: list[HeldAnswer]
    dead_letters: int
    runbook_errors: list[RunbookTroubleAnswer]
