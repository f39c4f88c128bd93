"""All parts in one process, with the real worker: a wave from its start to its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.batches.making import create_batch
from matoolkit.clock import SystemClock
from matoolkit.hosts.all_in_one import AllInOne, Pace
from matoolkit.hosts.worker_host import Manner, WorkerHost
from matoolkit.runbooks import load_runbook
from matoolkit.store import batches, runbooks
from matoolkit.worker.registry import Registry, described

if TYPE_CHECKING:
    from matoolkit.bus import EmbeddedBus, SubscriptionRule
    from matoolkit.store.database import Database

SECONDS, PEOPLE = 60, 40
RUNBOOK = """
name: wave
data_source: {type: sql, connection: SQL_X, query: q, primary_key: Key, batch_time_column: Time}
phases:
  - name: move
    offset: T-0
    steps:
      - name: make
        worker_id: worker-01
        function: Make-It
        params: {Name: '{{Key}}'}
        output_params: {MadeId: Id}
      - {name: check, worker_id: worker-02, function: Check-It, params: {Id: '{{MadeId}}', Count: '3'}}
"""


async def make(Name: str) -> dict[str, Any]:  # noqa: N803 - as runbooks write it
    return {"Id": f"id-{Name}"}


def check(Id: str, Count: int) -> bool:  # noqa: N803 - as runbooks write it
    return Id.startswith("id-") and Count == 3


@pytest.fixture
def all_in_one(database: Database) -> AllInOne:
    registry = Registry()
    registry.add([described("Make-It", make), described("Check-It", check)], "test")

    def worker(bus: EmbeddedBus, rule: SubscriptionRule) -> WorkerHost:
        return WorkerHost(bus, rule, registry, SystemClock(), manner=Manner(parallelism=8))

    return AllInOne(database, Pace(beat_seconds=0.1), worker=worker, environment={})


def test_a_wave_goes_through_the_real_worker(all_in_one: AllInOne) -> None:
    database, now = all_in_one.database, all_in_one.clock.now()
    with database.transaction() as tx:
        runbooks.publish(tx, name="wave", yaml_content=RUNBOOK, now=now, by="test")
        (published,) = runbooks.active(tx)
        people = [(str(number), f'{{"Key": "{number}"}}') for number in range(PEOPLE)]
        wave = load_runbook(RUNBOOK)
        batch = create_batch(tx, all_in_one.announcer, published, wave, start_time=now, members=people, now=now)
    all_in_one.start()
    ends = time.monotonic() + SECONDS
    try:
        while (status := read(database, batch)) == "active":
            assert time.monotonic() < ends
    finally:
        assert all_in_one.stop()
    assert status == "completed"
    with database.reading() as tx:
        (count,) = tx.connection.exec_driver_sql(
            "SELECT count(*) FROM step_executions WHERE status = 'succeeded' AND result_json IS NOT NULL"
        ).one()
    assert count == 2 * PEOPLE


def read(database: Database, batch: int) -> str:
    with database.reading() as tx:
        return str(batches.read(tx, [batch])[batch].status)
