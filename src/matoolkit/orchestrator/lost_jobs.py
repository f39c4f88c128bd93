"""Jobs that will never report, because the bus gave them up or their time is over: their steps fail, saying so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from matoolkit.messages import UnreadableMessage, WorkerError, WorkerResult, correlated, decode_job
from matoolkit.orchestrator import worker_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.bus import DeadLetter
    from matoolkit.messages import Correlation
    from matoolkit.orchestrator.work import Work
    from matoolkit.store.executions import Execution


def report(work: Work, dead: Sequence[DeadLetter]) -> list[tuple[DeadLetter, str]]:
    """Turn dead-lettered jobs into failed results; gives those that cannot even be read."""
    results: list[WorkerResult] = []
    unreadable: list[tuple[DeadLetter, str]] = []
    for letter in dead:
        try:
            job = decode_job(letter.body)
        except UnreadableMessage as error:
            unreadable.append((letter, str(error)))
            continue
        reason = f"the job was given up by the message bus: {letter.reason}"
        if letter.description:
            reason += f" ({letter.description})"
        results.append(_lost(job.job_id, reason, job.correlation_data, job.traceparent))
    worker_result.handle(work, results)
    return unreadable


def give_up(work: Work, executions: Sequence[Execution]) -> None:
    """Fail executions whose jobs vanished."""
    results = [
        _lost(
            each.job_id,
            "the job was neither run nor given back in the time it had",
            correlated(each.kind, each.id),
        )
        for each in executions
        if each.job_id is not None
    ]
    if results:
        worker_result.handle(work, results)


def _lost(job_id: str, message: str, correlation: Correlation, traceparent: str | UnsetType = UNSET) -> WorkerResult:
    return WorkerResult(
        job_id=job_id,
        traceparent=traceparent,
        status="failure",
        error=WorkerError(message=message, type="JobLost"),
        correlation_data=correlation,
    )
