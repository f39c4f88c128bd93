"""Celery: a member is a chain of tasks, acknowledged late; results are kept, with names and arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from celery import Celery, chain
from redis import Redis

from benchmarks.peers.engines.contest import LINE, Assignment, Told, compete, named
from benchmarks.peers.engines.serving import Serving, handed_over

_ASSIGNMENT = handed_over()
app = Celery("wave", broker=_ASSIGNMENT.address, backend=_ASSIGNMENT.address)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=_ASSIGNMENT.options["prefetch"],
    broker_transport_options={
        "visibility_timeout": _ASSIGNMENT.options["visibility_seconds"],
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    },
    broker_connection_retry_on_startup=True,
    result_extended=True,
    worker_send_task_events=False,
)


@app.task(name="step")
def step(member: int, number: int) -> None:
    _ASSIGNMENT.note(member, number)


class Chained(Serving):
    package = "celery"

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self.redis: Any = Redis.from_url(assignment.address)

    def start(self) -> None:
        pool, concurrency = self.options["pool"], str(self.options["concurrency"])
        module = "benchmarks.peers.engines.with_celery"
        gossip = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        self.serve("celery", "--app", module, "worker", "--pool", pool, "--concurrency", concurrency, *gossip)
        self.wait_until(lambda: app.control.ping(timeout=0.5))

    def submit(self, members: range) -> None:
        with app.producer_pool.acquire(block=True) as producer:
            for member in members:
                steps = (step.si(member, number) for number in range(self.assignment.steps))
                chain(*steps).apply_async(producer=producer)

    def is_settled(self) -> bool:
        self.insist()
        return not self.redis.llen("celery") and not self.redis.hlen("unacked")

    def told(self) -> Told:
        keys = self.redis.keys("celery-task-meta-*")
        results = [app.backend.decode(value) for value in (self.redis.mget(keys) if keys else [])]
        # The rest of a chain that failed is marked as failed as well, though it never ran.
        ran = Path(self.assignment.journal).read_text().splitlines()
        results = [each for each in results if LINE.format(member=each["args"][0], step=each["args"][1]).strip() in ran]
        return Told(
            members=len({str(result["args"][0]) for result in results}),
            steps=sum(result["status"] in ("SUCCESS", "FAILURE") for result in results),
            times=sum(bool(result["date_done"]) for result in results),
            errors=named(result.get("result") for result in results if result.get("status") == "FAILURE"),
        )


if __name__ == "__main__":
    compete(Chained)
