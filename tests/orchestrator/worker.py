"""The worker's side: jobs as they arrive, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.messages import WorkerError, WorkerResult, decode_job, encode
from tests.orchestrator.post import WORKER, Post

if TYPE_CHECKING:
    from matoolkit.bus import Received
    from matoolkit.messages import WorkerJob
    from matoolkit.store.database import Database


@dataclass(frozen=True)
class Job:
    """A job as its worker has it."""

    message: Received
    body: WorkerJob

    @property
    def label(self) -> str:
        """What it does, and for whom."""
        name = self.body.function_name.removeprefix("Do-")
        who = self.body.parameters.get("Key")
        return f"{name} {who}" if who else name


class WorkerSide(Post):
    """One worker, who does what the test says."""

    def __init__(self, database: Database, **settings: Any) -> None:
        super().__init__(database, **settings)
        self.held: dict[str, Job] = {}
        """Jobs the worker has taken and not answered."""
        self.every_job: list[Job] = []
        self.results: list[WorkerResult] = []

    def jobs(self) -> list[str]:
        """What the worker has been asked to do and has not answered; messages are handled first."""
        self.pump()
        with self.database.transaction() as tx:
            received = self.bus.receive(tx, WORKER.subscription, 5000)
            self.bus.complete(tx, received)
        for message in received:
            job = Job(message, decode_job(message.body))
            assert job.label not in self.held, f"{job.label} was sent twice: {job.body.job_id}"
            self.held[job.label] = job
            self.every_job.append(job)
        return sorted(self.held)

    def job(self, label: str) -> WorkerJob:
        """One of the jobs the worker holds."""
        self.jobs()
        return self.held[label].body

    def succeed(self, *labels: str, result: Any = None) -> None:
        """The worker did it."""
        for label in labels:
            self.answer(label, result=result)
        self.pump()

    def poll(self, *labels: str) -> None:
        """The worker says that the work goes on."""
        self.succeed(*labels, result={"complete": False})

    def fail(self, *labels: str, message: str = "no such mailbox", kind: str = "NotFound") -> None:
        """The worker could not do it."""
        for label in labels:
            self.failure(label, message=message, kind=kind)
        self.pump()

    def failure(self, label: str, *, message: str = "no such mailbox", kind: str = "NotFound") -> WorkerResult:
        """The worker reports a failure; nobody has read it yet."""
        return self.answer(label, error=WorkerError(message=message, type=kind, attempts=1))

    def answer(
        self, label: str, *, result: Any = None, error: WorkerError | None = None, traceparent: str | None = None
    ) -> WorkerResult:
        """The worker reports, from where it was asked or from a place of its own; nobody has read it yet."""
        if label not in self.held:
            self.jobs()
        job = self.held.pop(label).body
        answer = WorkerResult(
            job_id=job.job_id,
            batch_id=job.batch_id,
            worker_id=job.worker_id,
            function_name=job.function_name,
            status="success" if error is None else "failure",
            result_type="Object",
            result=result,
            error=error,
            timestamp=self.now,
            traceparent=traceparent or job.traceparent,
            correlation_data=job.correlation_data,
        )
        self.results.append(answer)
        self.send_again(answer)
        return answer

    def answer_again(self, answer: WorkerResult, **changed: Any) -> None:
        """A result comes once more, as it was or changed."""
        self.send_again(answer, **changed)
        self.pump()

    def send_again(self, answer: WorkerResult, **changed: Any) -> None:
        """The same; nobody has read it yet."""
        self.send_result(encode(msgspec.structs.replace(answer, **changed)))

    def give_up(self, label: str, reason: str = "MaxDeliveryCountExceeded", why: str = "lock lost ten times") -> None:
        """The bus dead-letters a job that was just sent, instead of handing it out; nobody has been told."""
        self.pump()
        with self.database.transaction() as tx:
            received = self.bus.receive(tx, WORKER.subscription, 5000)
            dead = [each for each in received if Job(each, decode_job(each.body)).label == label]
            assert len(dead) == 1
            self.bus.dead_letter(tx, dead, reason, why)
            self.bus.abandon(tx, [each for each in received if each not in dead])
