"""Everything that is measured, each with its unit and a sentence. What to make of it is in docs/operations.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Sort(StrEnum):
    """What kind of number a metric is."""

    COUNT = "count"
    """It only grows."""
    TIMES = "times"
    """How long something took, each time."""
    LEVEL = "level"
    """How it is at this moment."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Something that is measured."""

    name: str
    sort: Sort
    unit: str
    says: str


def _metric(name: str, sort: Sort, unit: str, says: str) -> Metric:
    return Metric(f"matoolkit.{name}", sort, unit, says)


# What lies in the bus
QUEUE_DEPTH: Final = _metric("queue.depth", Sort.LEVEL, "{message}", "Messages in a subscription, by their state")
QUEUE_OLDEST: Final = _metric("queue.oldest", Sort.LEVEL, "s", "How long the oldest message of a subscription waits")
OUTBOX_WAITING: Final = _metric("outbox.waiting", Sort.LEVEL, "{message}", "Messages written and not sent yet")
OUTBOX_AGE: Final = _metric("outbox.age", Sort.LEVEL, "s", "How long the oldest of them has been waiting")
DEAD_MESSAGES: Final = _metric("dead_messages", Sort.LEVEL, "{message}", "Messages put aside and not sent again")
# Where the wave is
MEMBERS_ACTIVE: Final = _metric("members.active", Sort.LEVEL, "{member}", "Members under way in open batches")
MEMBERS_STUCK: Final = _metric("members.stuck", Sort.LEVEL, "{member}", "Members who do not move, by the reason")
PHASES_OVERDUE: Final = _metric("phases.overdue", Sort.LEVEL, "{phase}", "Phases past their time that did not start")
RUNBOOKS_FAULTY: Final = _metric("runbooks.faulty", Sort.LEVEL, "{runbook}", "Active runbooks with a `last_error`")
LEAD: Final = _metric(
    "scheduler.lead", Sort.LEVEL, "s", "How long the scheduler's lease still runs; below zero: nobody"
)
# The scheduler
TICK: Final = _metric("tick.duration", Sort.TIMES, "s", "A tick, from asking the first source to applying the last")
BEAT: Final = _metric("beat.duration", Sort.TIMES, "s", "A beat: phases and polls that are due")
# The orchestrator
SET: Final = _metric("set.duration", Sort.TIMES, "s", "Handling a set of messages, its commit included")
HANDLED: Final = _metric("messages.handled", Sort.COUNT, "{message}", "Messages handled, by subscription")
PUT_ASIDE: Final = _metric("messages.put_aside", Sort.COUNT, "{message}", "Messages that could not be handled")
JOBS_SENT: Final = _metric("jobs.sent", Sort.COUNT, "{job}", "Jobs sent, by kind")
STEPS_ENDED: Final = _metric("steps.ended", Sort.COUNT, "{step}", "Steps that ended, by kind and how")
STEPS_RETRIED: Final = _metric("steps.retried", Sort.COUNT, "{step}", "Steps that failed and are tried again")
PHASES_ENDED: Final = _metric("phases.ended", Sort.COUNT, "{phase}", "Phases that ended, by how")
BATCHES_ENDED: Final = _metric("batches.ended", Sort.COUNT, "{batch}", "Batches that ended by themselves, by how")
# The worker
JOB: Final = _metric("job.duration", Sort.TIMES, "s", "A job, by worker, function and status")
JOBS_FAILED: Final = _metric("jobs.failed", Sort.COUNT, "{job}", "Jobs that failed, by worker, function and error")
JOBS_RUNNING: Final = _metric("jobs.running", Sort.LEVEL, "{job}", "Jobs under way on a worker")
WORKER_HEALTH: Final = _metric("worker.health", Sort.LEVEL, "1", "0 healthy, 1 degraded, 2 unhealthy")
THROTTLED: Final = _metric("tenant.throttled", Sort.COUNT, "{answer}", "Answers of the tenant that ask to wait")
THROTTLE_WAIT: Final = _metric("tenant.wait", Sort.TIMES, "s", "Waiting for the tenant's pace, before a request")
# Any process
REQUEST: Final = _metric("request.duration", Sort.TIMES, "s", "A request to the admin API, by method and status")
LOOP_FAILURES: Final = _metric("loop.failures", Sort.COUNT, "{failure}", "Turns of a loop that failed, by loop")

ALL: Final[tuple[Metric, ...]] = tuple(value for value in list(vars().values()) if isinstance(value, Metric))
"""In the order they are written."""
