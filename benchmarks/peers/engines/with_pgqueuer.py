"""PGQueuer: a step's job enqueues the member's next; one queue manager takes jobs in batches."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import uvloop
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, Job, PgQueuer, Queries

from benchmarks.peers.engines.contest import Assignment, Told, compete, named
from benchmarks.peers.engines.looped import Looped

if TYPE_CHECKING:
    import asyncio

_CONNECTIONS = 20


class Pgqueuer(Looped):
    package = "pgqueuer"

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        logging.disable(logging.CRITICAL)
        self.queries: Any = None

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return uvloop.new_event_loop()

    def prepare(self) -> None:
        self.wait_for(self._install())

    def start(self) -> None:
        for _ in range(self.options["managers"]):
            self.wait_for(self._start())

    def submit(self, members: range) -> None:
        payloads = [_payload(member, 0) for member in members]
        self.wait_for(self.queries.enqueue(["step"] * len(payloads), payloads, [0] * len(payloads)))

    def is_settled(self) -> bool:
        self.insist()
        return not self.wait_for(self.queries.queue_size())

    def told(self) -> Told:
        # Jobs that ended are gone, and their payload with them; the log knows them by number, and keeps tracebacks.
        log = self.wait_for(self.queries.queue_log())
        ended = {entry.job_id: entry for entry in log if entry.status in ("successful", "exception")}
        return Told(
            steps=len(ended),
            times=sum(entry.created is not None for entry in ended.values()),
            errors=named(entry.traceback.exception_message for entry in ended.values() if entry.traceback),
        )

    async def _install(self) -> None:
        connection = await asyncpg.connect(self.assignment.address)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    async def _start(self) -> None:
        address, options = self.assignment.address, self.options
        pool = await asyncpg.create_pool(address, min_size=_CONNECTIONS, max_size=_CONNECTIONS)
        queuer = PgQueuer(AsyncpgPoolDriver(pool))
        queries = self.queries = queuer.qm.queries

        @queuer.entrypoint("step")
        async def step(job: Job) -> None:
            member, number = (int(part) for part in (job.payload or b"").split())
            self.assignment.note(member, number)
            if number + 1 < self.assignment.steps:
                await queries.enqueue("step", _payload(member, number + 1))

        self.begin(
            queuer.qm.run(
                batch_size=options["batch_size"],
                dequeue_timeout=timedelta(seconds=options["dequeue_seconds"]),
                heartbeat_timeout=timedelta(seconds=options["heartbeat_seconds"]),
            )
        )


def _payload(member: int, step: int) -> bytes:
    return f"{member} {step}".encode()


if __name__ == "__main__":
    compete(Pgqueuer)
