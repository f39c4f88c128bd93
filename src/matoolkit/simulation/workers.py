"""Scripted workers: they take jobs, act or fail as the seed has it, answer late, twice or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from matoolkit.bus import BusError, LockLost, Outgoing, Subscription
from matoolkit.messages import UnreadableMessage, WorkerError, WorkerResult, decode_job, encode
from matoolkit.simulation.faults import Fault
from matoolkit.simulation.scenario import fate
from matoolkit.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.bus import Bus, Received
    from matoolkit.clock import Clock
    from matoolkit.messages import WorkerJob
    from matoolkit.simulation.faults import Faults
    from matoolkit.simulation.processes import Processes
    from matoolkit.store.database import Database

_POLLS_DONE_AT = 0.45
_AT_ONCE = 4
_QUICK = 0.85


@dataclass(slots=True)
class Tenant:
    """What the functions did, so that it can be held against what the product says they did."""

    runs: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SimulatedWorker:
    """One worker process."""

    worker_id: str
    seed: int
    database: Database
    bus: Bus
    clock: Clock
    processes: Processes
    faults: Faults
    tenant: Tenant
    note: Callable[[str, str], None]

    def run(self) -> None:
        """Take jobs, for ever."""
        jobs = Subscription("worker-jobs", f"worker-{self.worker_id}")
        while True:
            self.processes.sleep(timedelta(minutes=30), [jobs])
            try:
                with self.database.transaction() as tx:
                    received = self.bus.receive(tx, jobs, 1 + self.faults.chance.randrange(_AT_ONCE))
            except StoreError:
                self.processes.sleep(timedelta(seconds=2))
                continue
            for message in received:
                self._work_on(message)

    def _work_on(self, message: Received) -> None:
        try:
            job = decode_job(message.body)
        except UnreadableMessage:
            return
        self.processes.sleep(timedelta(seconds=self._duration(message)))
        result = self._act(job)
        chances = self.faults.likelihoods
        if self.faults.strikes(Fault.ANSWER_LOST, chances.lose_answer):
            return
        twice = self.faults.strikes(Fault.ANSWERED_TWICE, chances.answer_twice)
        self._answer(message, result, twice=twice)

    def _duration(self, message: Received) -> float:
        if self.faults.strikes(Fault.LOCK_EXPIRED, self.faults.likelihoods.slow):
            return 61 + 120 * self.faults.chance.random()
        drawn = fate(self.seed, f"time/{message.message_id}")
        return 10 * drawn if drawn < _QUICK else 50 * drawn

    def _act(self, job: WorkerJob) -> WorkerResult:
        """Run the function: what comes of a job is settled by the seed, however often it runs."""
        self.tenant.runs.append(job.job_id)
        self.note("ran", job.job_id)
        status, result, error = self._outcome(job)
        return WorkerResult(
            job_id=job.job_id,
            batch_id=job.batch_id,
            worker_id=self.worker_id,
            function_name=job.function_name,
            status="success" if status else "failure",
            result_type="Object",
            result=result,
            error=error,
            duration_ms=1,
            timestamp=self.clock.now(),
            correlation_data=job.correlation_data,
        )

    def _outcome(self, job: WorkerJob) -> tuple[bool, Any, WorkerError | None]:
        if job.not_after is not None and job.not_after < self.clock.now():
            return False, None, WorkerError(message="too late to be run", type="Expired")
        drawn, chances = fate(self.seed, job.job_id), self.faults.likelihoods
        if drawn < chances.worker_error:
            self.faults.struck[Fault.WORKER_ERROR] += 1
            return False, None, WorkerError(message="object not found", type="Request_ResourceNotFound", attempts=1)
        if drawn < chances.worker_error + chances.throttled:
            self.faults.struck[Fault.THROTTLED] += 1
            return False, None, WorkerError(message="too busy", type="429", is_throttled=True, attempts=5)
        output = {"Id": f"id-of-{job.idempotency_key}"}
        if fate(self.seed, f"poll/{job.job_id}") < _POLLS_DONE_AT:
            return True, {"complete": True, "data": output}, None
        return True, {"complete": False, **output}, None

    def _answer(self, message: Received, result: WorkerResult, *, twice: bool) -> None:
        """The result is sent before the job is settled: together where the bus can, one after the other where not."""
        outgoing = Outgoing(
            body=encode(result),
            properties={
                "WorkerId": self.worker_id,
                "JobId": result.job_id,
                "BatchId": str(result.batch_id),
                "Status": result.status,
            },
        )
        together = not twice
        for _ in range(5):
            try:
                with self.database.transaction() as tx:
                    self.bus.publish(tx, "worker-results", [outgoing])
                    if together:
                        self.bus.complete(tx, [message])
                if not together:
                    with self.database.transaction() as tx:
                        self.bus.publish(tx, "worker-results", [outgoing])
                    together = True
                    continue
            except LockLost:
                return
            except (StoreError, BusError):
                self.processes.sleep(timedelta(seconds=1))
                continue
            return
