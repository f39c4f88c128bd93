"""The product: all in one process, with the real worker, as `up` runs it; a member is a member, a step is a step."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from benchmarks.peers.engines.contest import Assignment, Contestant, Told, compete, named
from matoolkit.batches.announcing import Announcer
from matoolkit.batches.making import create_batch
from matoolkit.bus import EmbeddedBus, Names
from matoolkit.clock import SystemClock
from matoolkit.hosts.all_in_one import AllInOne, Pace
from matoolkit.hosts.garbage import keep_what_is_there
from matoolkit.hosts.worker_host import Manner, WorkerHost
from matoolkit.runbooks import load_runbook
from matoolkit.scheduler.due import start_due_phases
from matoolkit.store import runbooks
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate
from matoolkit.store.schema import batch_members, batches, step_executions
from matoolkit.worker.registry import Registry, described

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.bus import SubscriptionRule

_NAME = "wave"
_AHEAD = timedelta(hours=1)
_PARAMETERS = "{{Who: '{{{{Key}}}}', Step: '{index}'}}"
_STEP = f"      - {{{{name: step-{{index}}, worker_id: worker-01, function: Note-It, params: {_PARAMETERS}}}}}"
_HEAD = f"""
name: {_NAME}
data_source: {{type: sql, connection: SQL_X, query: q, primary_key: Key, batch_time_column: Time}}
phases:
  - name: move
    offset: T-0
    steps:
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brisk(Pace):
    """Locks of another length, as every engine has it here."""

    lock_seconds: float

    @property
    def lock_duration(self) -> timedelta:
        """How long."""
        return timedelta(seconds=self.lock_seconds)


class Matoolkit(Contestant):
    package = "matoolkit"

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        # The wave is made by hand; that the runbook's data source does not exist is no news.
        logging.disable(logging.CRITICAL)
        address = assignment.address
        url = address.replace("postgresql://", "postgresql+psycopg://", 1)
        self.database = open_database(url if url != address else in_file(Path(address)))
        self.clock = SystemClock()

    def prepare(self) -> None:
        migrate(self.database)
        steps = "\n".join(_STEP.format(index=index) for index in range(self.assignment.steps))
        now = self.clock.now()
        with self.database.transaction() as tx:
            runbooks.publish(tx, name=_NAME, yaml_content=_HEAD + steps, now=now, by="benchmark")
            published = runbooks.active(tx)[0]
            EmbeddedBus(self.database, self.clock).declare(tx, Names().topology())
            create_batch(
                tx,
                Announcer(EmbeddedBus(self.database, self.clock)),
                published,
                load_runbook(published.yaml_content),
                start_time=now + _AHEAD,
                members=[_member(number) for number in range(self.assignment.members)],
                now=now,
            )

    def start(self) -> None:
        registry = Registry()
        registry.add([described("Note-It", _function(self.assignment))], "benchmark")
        manner = Manner(parallelism=self.options["parallelism"])

        def worker(bus: EmbeddedBus, rule: SubscriptionRule) -> WorkerHost:
            return WorkerHost(bus, rule, registry, self.clock, manner=manner)

        pace = _Brisk(clock=self.clock, lock_seconds=self.options["lock_seconds"])
        self.product = AllInOne(self.database, pace, worker=worker, environment={})
        if self.database.dialect == "sqlite":
            # What `up` does before it starts: the file was nobody else's.
            self.product.bury()
        self.product.start()
        keep_what_is_there()

    def submit(self, members: range) -> None:  # noqa: ARG002 - they are in the batch already
        # What the scheduler does at its first beat after the hour has come.
        with self.database.transaction() as tx:
            start_due_phases(tx, self.product.announcer, self.clock.now() + _AHEAD)

    def is_settled(self) -> bool:
        with self.database.reading() as tx:
            statuses = tx.connection.execute(select(batches.c.status)).scalars().all()
        return statuses == ["completed"]

    def told(self) -> Told:
        steps = step_executions.c
        with self.database.reading() as tx:
            ask = tx.connection.execute
            return Told(
                members=ask(select(func.count()).where(batch_members.c.status != "active")).scalar_one(),
                steps=ask(select(func.count()).where(steps.status.in_(("succeeded", "failed")))).scalar_one(),
                times=ask(select(func.count(steps.completed_at)).where(steps.dispatched_at.is_not(None))).scalar_one(),
                errors=named(ask(select(steps.error_message).where(steps.status == "failed")).scalars()),
            )


def _function(assignment: Assignment) -> Callable[..., object]:
    async def note(Who: str, Step: str) -> bool:  # noqa: N803 - as runbooks write them
        assignment.note(int(Who.partition("@")[0].removeprefix("user")), int(Step))
        return True

    return note


def _member(number: int) -> tuple[str, str]:
    key = f"user{number}@contoso.example"
    return key, f'{{"Key":"{key}","Name":"Ada Lovelace {number}","Department":"Research","Region":"EUR"}}'


if __name__ == "__main__":
    compete(Matoolkit)
