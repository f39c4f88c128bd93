"""DBOS: a member is a workflow, a step is a step of it; DBOS takes unfinished workflows up again when it starts."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from typing import Any

from dbos import DBOS, DBOSConfig

from benchmarks.peers.engines.contest import Assignment, Told, compete, named
from benchmarks.peers.engines.looped import Looped


class Dbos(Looped):
    package = "dbos"

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        logging.disable(logging.CRITICAL)
        address = assignment.address
        url = address.replace("postgresql://", "postgresql+psycopg://", 1)
        config: DBOSConfig = {
            "name": "wave",
            "system_database_url": url if url != address else f"sqlite:///{address}",
            "application_version": "1",
            "executor_id": "local",
            "log_level": "CRITICAL",
        }
        DBOS(config=config)

        @DBOS.step()
        async def step(number: int, index: int) -> None:
            assignment.note(number, index)

        @DBOS.workflow()
        async def member(number: int) -> None:
            for index in range(assignment.steps):
                await step(number, index)

        self.member: Any = member

    def prepare(self) -> None:
        if not self.assignment.address.startswith("postgresql:"):
            # It stays with the file; the rollback journal that SQLite starts with costs another sync for each commit.
            with closing(sqlite3.connect(self.assignment.address)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")

    def start(self) -> None:
        DBOS.launch()

    def submit(self, members: range) -> None:
        self.wait_for(self._start_all(members))

    def is_settled(self) -> bool:
        open_ones = DBOS.list_workflows(
            status=["PENDING", "ENQUEUED", "DELAYED"], limit=1, load_input=False, load_output=False
        )
        return not open_ones

    def told(self) -> Told:
        told, errors = Told(), []
        for workflow in DBOS.list_workflows():
            told.members += workflow.status in ("SUCCESS", "ERROR") and workflow.input is not None
            errors.append(workflow.error)
            for step in DBOS.list_workflow_steps(workflow.workflow_id):
                told.steps += 1
                told.times += step["completed_at_epoch_ms"] is not None
        told.errors = named(errors)
        return told

    async def _start_all(self, members: range) -> None:
        for member in members:
            await DBOS.start_workflow_async(self.member, member)
            self.assignment.hand_in([member])


if __name__ == "__main__":
    compete(Dbos)
