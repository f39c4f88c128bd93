"""A worker whose functions do nothing and succeed: for rehearsals and for measuring everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.bus import LockLost, Outgoing
from matoolkit.messages import WorkerResult, decode_job, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matoolkit.bus import Bus, Received, Subscription
    from matoolkit.clock import Clock
    from matoolkit.messages import WorkerJob


class NoopWorker:
    """Takes as many jobs at a time as it has places, and answers them all in one go."""

    def __init__(
        self,
        bus: Bus,
        subscription: Subscription,
        clock: Clock,
        *,
        parallelism: int = 64,
        function: Callable[[WorkerJob], WorkerResult] | None = None,
    ) -> None:
        self._bus = bus
        self._subscription = subscription
        self._clock = clock
        self._parallelism = parallelism
        self._function = function or self._succeed
        self._held: Sequence[Received] = ()
        self._answers: list[Outgoing] = []

    def work(self) -> int:
        """Answer what is held and take what comes next, in one transaction; how many jobs that was."""
        try:
            with self._bus.transaction() as tx:
                if self._held:
                    self._bus.publish(tx, "worker-results", self._answers)
                    self._bus.complete(tx, self._held)
                received = self._bus.receive(tx, self._subscription, self._parallelism)
        except LockLost as lost:
            # Somebody else runs those again; what they answer counts.
            gone = {each.sequence for each in lost.lost}
            kept = [
                (each, answer)
                for each, answer in zip(self._held, self._answers, strict=True)
                if each.sequence not in gone
            ]
            self._held, self._answers = [each for each, _ in kept], [answer for _, answer in kept]
            return 1
        done = len(self._held)
        self._held = received
        self._answers = [self._answer(each) for each in received]
        return done + len(received)

    def _answer(self, message: Received) -> Outgoing:
        job = decode_job(message.body)
        result = self._function(job)
        return Outgoing(
            body=encode(result),
            properties={
                "WorkerId": job.worker_id,
                "JobId": job.job_id,
                "BatchId": str(job.batch_id),
                "Status": result.status,
            },
        )

    def _succeed(self, job: WorkerJob) -> WorkerResult:
        return WorkerResult(
            job_id=job.job_id,
            batch_id=job.batch_id,
            worker_id=job.worker_id,
            function_name=job.function_name,
            status="success",
            result_type="Boolean",
            result=True,
            duration_ms=0,
            timestamp=self._clock.now(),
            correlation_data=job.correlation_data,
        )
