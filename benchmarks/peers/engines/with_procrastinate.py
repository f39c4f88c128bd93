"""Procrastinate: a step's job defers the member's next; one worker, many jobs at a time, jobs and events kept.

What a dead worker left is put back by a periodic task, as its documentation advises.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from procrastinate import App, PsycopgConnector

from benchmarks.peers.engines.contest import Assignment, Told, compete
from benchmarks.peers.engines.looped import Looped

_OPEN = "SELECT count(*) AS open FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
_KNOWN = """
SELECT count(DISTINCT args->>'member') AS members, count(*) AS steps,
    (SELECT count(DISTINCT job_id) FROM procrastinate_events WHERE type IN ('succeeded', 'failed')) AS times
FROM procrastinate_jobs WHERE status IN ('succeeded', 'failed')
"""


class Procrastinate(Looped):
    package = "procrastinate"

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        logging.disable(logging.CRITICAL)
        connections = self.options["connections"]
        self.app = App(
            connector=PsycopgConnector(conninfo=assignment.address, min_size=connections, max_size=connections)
        )

        @self.app.task(name="step")
        async def step(member: int, number: int) -> None:
            assignment.note(member, number)
            if number + 1 < assignment.steps:
                await step.defer_async(member=member, number=number + 1)

        self.step: Any = step
        self.wait_for(self._open())

    def prepare(self) -> None:
        self.wait_for(self.app.schema_manager.apply_schema_async())

    def start(self) -> None:
        for _ in range(self.options["workers"]):
            self.begin(
                self.app.run_worker_async(
                    concurrency=self.options["concurrency"],
                    install_signal_handlers=False,
                    fetch_job_polling_interval=0.5,
                    update_heartbeat_interval=self.options["heartbeat_seconds"] / 3,
                    stalled_worker_timeout=self.options["heartbeat_seconds"],
                )
            )
        self.begin(self._retry_stalled())

    def submit(self, members: range) -> None:
        self.wait_for(self.step.batch_defer_async(*[{"member": member, "number": 0} for member in members]))

    def is_settled(self) -> bool:
        self.insist()
        row = self.wait_for(self.app.connector.execute_query_one_async(_OPEN))
        return row["open"] == 0

    def told(self) -> Told:
        # Jobs with their arguments and events are kept; what a job failed with is in the worker's output alone.
        return Told(**self.wait_for(self.app.connector.execute_query_one_async(_KNOWN)))

    async def _open(self) -> None:
        await self.app.open_async()

    async def _retry_stalled(self) -> None:
        """What the documentation has a periodic task do, every so many seconds here."""
        seconds = self.options["heartbeat_seconds"]
        while True:
            await asyncio.sleep(1)
            for job in await self.app.job_manager.get_stalled_jobs(seconds_since_heartbeat=seconds):
                await self.app.job_manager.retry_job(job)


if __name__ == "__main__":
    compete(Procrastinate)
