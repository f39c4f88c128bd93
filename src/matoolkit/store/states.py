"""The states things can be in, each with a sentence, and which of them are an end."""

from __future__ import annotations

from enum import StrEnum


class BatchStatus(StrEnum):
    """Where a batch is."""

    DETECTED = "detected"
    """Created; its init steps have not been sent."""
    INIT_DISPATCHED = "init_dispatched"
    """Its init steps run; no phase may start."""
    ACTIVE = "active"
    """Its phases fire as they fall due."""
    COMPLETED = "completed"
    """Every phase has ended, at least one of them well or none of them badly."""
    FAILED = "failed"
    """Its init failed, or no phase ended well."""
    CANCELLED = "cancelled"
    """An operator ended it."""


class MemberStatus(StrEnum):
    """Where a member is."""

    ACTIVE = "active"
    """Takes part."""
    COMPLETED = "completed"
    """Every step of every phase succeeded."""
    REMOVED = "removed"
    """Left the data source, or was taken out, or was still under way when the batch was cancelled."""
    FAILED = "failed"
    """A step failed for good; the others go on without this member."""


class PhaseStatus(StrEnum):
    """Where a phase of a batch is."""

    PENDING = "pending"
    """Its time has not come."""
    DISPATCHED = "dispatched"
    """Its members are under way."""
    COMPLETED = "completed"
    """At least one member went through all its steps."""
    FAILED = "failed"
    """No member went through, and some failed."""
    SKIPPED = "skipped"
    """Nobody was there, its time had passed, or the batch failed before it."""
    SUPERSEDED = "superseded"
    """Replaced by the same batch's phases of a newer runbook version."""
    CANCELLED = "cancelled"
    """The batch was cancelled."""


class SkipReason(StrEnum):
    """Why a phase was skipped."""

    EMPTY = "empty"
    """No member was there to run it; one that joins later catches up on it."""
    OVERDUE = "overdue"
    """It was past due when a new version took over, and the version said to ignore such phases."""
    REPEATED = "repeated"
    """The older version had already run a phase of this name."""
    INIT_FAILED = "init_failed"
    """The batch's init failed."""


class ExecutionStatus(StrEnum):
    """Where one execution of a step is: a member's, a batch's init, a rollback's or a removal's."""

    PENDING = "pending"
    """Not sent, or waiting to be sent again."""
    DISPATCHED = "dispatched"
    """Sent to its worker."""
    SUCCEEDED = "succeeded"
    """The worker reported success."""
    FAILED = "failed"
    """It failed, and its retries are spent."""
    POLLING = "polling"
    """The worker said that the work goes on; it is asked again at intervals."""
    POLL_TIMEOUT = "poll_timeout"
    """The work did not end in the time the step gave it."""
    CANCELLED = "cancelled"
    """It will not be sent any more."""


class SequenceStatus(StrEnum):
    """How a rollback went."""

    RUNNING = "running"
    """Its steps are being sent, one after another."""
    SUCCEEDED = "succeeded"
    """All its steps succeeded."""
    FAILED = "failed"
    """One of its steps failed; those behind it were not sent."""


OPEN_BATCH = (BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED, BatchStatus.ACTIVE)
OPEN_PHASE = (PhaseStatus.PENDING, PhaseStatus.DISPATCHED)
OPEN_EXECUTION = (ExecutionStatus.PENDING, ExecutionStatus.DISPATCHED, ExecutionStatus.POLLING)
FAILED_EXECUTION = (ExecutionStatus.FAILED, ExecutionStatus.POLL_TIMEOUT)
