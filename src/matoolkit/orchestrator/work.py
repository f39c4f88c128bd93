"""One transaction's worth of work: what the handlers share, and what is to be sent and closed at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.bus import Outgoing
from matoolkit.messages import encode, message_type
from matoolkit.orchestrator.tracing import Tracing
from matoolkit.store.states import ExecutionStatus
from matoolkit.telemetry import SILENT

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.bus import Bus
    from matoolkit.messages import Event
    from matoolkit.orchestrator.library import Library
    from matoolkit.store.database import Transaction
    from matoolkit.store.executions import Execution
    from matoolkit.telemetry import Metric, Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an operator may change about an orchestrator."""

    events_topic: str = "orchestrator-events"
    jobs_topic: str = "worker-jobs"
    results_topic: str = "worker-results"
    events_subscription: str = "orchestrator"
    results_subscription: str = "orchestrator"
    deployment_id: str = "local"
    """Echoed by workers; results of another deployment on the same topics are not ours."""
    set_size: int = 500
    """How many messages are handled in one transaction at the most."""
    chunk_size: int = 500
    """How many members a phase starts in one transaction."""
    job_lifetime: timedelta = timedelta(days=7)
    """How long a job may wait for its worker."""
    stall_after: timedelta = timedelta(minutes=2)
    """When reconciliation takes something that should have moved for stuck."""


@dataclass(frozen=True, slots=True)
class Closing:
    """Phases and batches that may be over, looked at in a transaction of their own once this one is committed."""

    phases: frozenset[int] = frozenset()
    batches: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.phases or self.batches)

    def __or__(self, other: Closing) -> Closing:
        return Closing(self.phases | other.phases, self.batches | other.batches)


@dataclass(slots=True)
class Work:
    """The transaction, the time, and what has been gathered so far."""

    tx: Transaction
    now: datetime
    bus: Bus
    settings: Settings
    library: Library
    telemetry: Telemetry = SILENT
    tracing: Tracing = field(default_factory=lambda: Tracing(SILENT))
    phases_to_close: set[int] = field(default_factory=set)
    batches_to_close: set[int] = field(default_factory=set)
    members_to_return: set[int] = field(default_factory=set)
    """Whose leaving is over: those who have come back meanwhile may start."""
    _workers: frozenset[str] | None = None
    _workers_read: bool = False
    _events: list[Outgoing] = field(default_factory=list)
    _jobs: list[Outgoing] = field(default_factory=list)

    def can_be_sent(self, execution: Execution, *, overdue: bool = False) -> bool:
        """Whether an execution waits for nothing but its job.

        `overdue` lets go also what should have been tried again long ago, had its message come.
        """
        if execution.status != ExecutionStatus.PENDING or execution.job_out:
            return False
        if execution.retry_after is None:
            return True
        return overdue and execution.retry_after + self.settings.stall_after < self.now

    def has_worker(self, worker_id: str) -> bool:
        """Whether anybody takes a worker's jobs: a topic silently drops what no filter lets through."""
        if not self._workers_read:
            self._workers = self.bus.listeners(self.tx, self.settings.jobs_topic, "WorkerId")
            self._workers_read = True
        return self._workers is None or worker_id in self._workers

    def send_event(self, event: Event, at: datetime | None = None) -> None:
        """Have an event sent, at a time if one is given."""
        properties = {"MessageType": message_type(event)}
        self._events.append(Outgoing(body=encode(event), properties=properties, deliver_at=at))

    def send_job(self, job: Outgoing) -> None:
        """Have a job sent."""
        self._jobs.append(job)

    def count(self, metric: Metric, amount: int, **labels: str | int) -> None:
        """Have something counted once it is committed."""
        if amount and self.telemetry.is_on:
            telemetry = self.telemetry
            self.tx.after_commit(lambda: telemetry.count(metric, amount, **labels))

    def finish(self) -> Closing:
        """Write what is to be sent beside the state it speaks of; tells what may have to be closed."""
        if self._events:
            self.bus.publish(self.tx, self.settings.events_topic, self._events)
        if self._jobs:
            self.bus.publish(self.tx, self.settings.jobs_topic, self._jobs)
        self._events, self._jobs = [], []
        return Closing(frozenset(self.phases_to_close), frozenset(self.batches_to_close))
