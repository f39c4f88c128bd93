"""A wave whose every result is decided by the job's id: whatever is lost, repeated or late, its outcome is one."""

from __future__ import annotations

import re
import time
from threading import Event
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import text

from matoolkit.batches import making
from matoolkit.messages import WorkerError, WorkerResult
from matoolkit.runbooks import load_runbook
from matoolkit.store import runbooks

if TYPE_CHECKING:
    from matoolkit.batches.announcing import Announcer
    from matoolkit.clock import Clock
    from matoolkit.messages import WorkerJob
    from matoolkit.store.database import Database

RUNBOOK = """
name: wave
data_source: {type: sql, connection: SQL_X, query: q, primary_key: Key, batch_time_column: Time}
retry: {max_retries: 1, interval: 1s}
init:
  - {name: open, worker_id: worker-01, function: Open-Wave, params: {}}
phases:
  - name: prepare
    offset: T-1d
    steps:
      - name: create
        worker_id: worker-01
        function: New-Account
        params: {User: "{{Key}}"}
        output_params: {AccountId: Id}
      - {name: invite, worker_id: worker-01, function: Send-Invitation, params: {User: "{{Key}}", Id: "{{AccountId}}"}}
  - name: move
    offset: T-0
    steps:
      - {name: forward, worker_id: worker-02, function: Set-Forwarding, params: {User: "{{Key}}"}, on_failure: undo}
      - name: mailbox
        worker_id: worker-02
        function: Move-Mailbox
        params: {User: "{{Key}}"}
        poll: {interval: 1s, timeout: 10m}
rollbacks:
  undo:
    - {name: unforward, worker_id: worker-02, function: Remove-Forwarding, params: {User: "{{Key}}"}}
"""
WORKERS = ("worker-01", "worker-02")
FAILS_EVERY, STUMBLES_EVERY, WAITS_EVERY = 11, 7, 5

_NUMBERS = re.compile(r"-(retry|poll)-(\d+)")
_OUTCOME = text("""
    SELECT m.member_key, m.status, p.phase_name, s.step_index, s.status, s.retry_count, s.poll_count, s.rollback_status
    FROM step_executions s
    JOIN batch_members m ON m.id = s.batch_member_id
    JOIN phase_executions p ON p.id = s.phase_execution_id
    ORDER BY m.member_key, p.phase_name, s.step_index
""")
_OPEN = text("""
    SELECT count(*) FROM (
        SELECT id FROM batches WHERE status NOT IN ('completed', 'failed', 'cancelled')
        UNION ALL SELECT id FROM rollback_executions WHERE status IN ('pending', 'dispatched', 'polling')
    ) AS unfinished
""")
_ROLLBACKS = text("SELECT status, count(*) FROM rollback_executions GROUP BY status ORDER BY status")


def begin(database: Database, announcer: Announcer, clock: Clock, people: int) -> None:
    """Publish the runbook and make the batch."""
    now = clock.now()
    with database.transaction() as tx:
        runbooks.publish(tx, name="wave", yaml_content=RUNBOOK, now=now, by="test")
        (published,) = runbooks.active(tx)
        found = [(key, msgspec.json.encode({"Key": key}).decode()) for key in map("person{:03}".format, range(people))]
        making.create_batch(tx, announcer, published, load_runbook(RUNBOOK), start_time=now, members=found, now=now)


def is_over(database: Database) -> bool:
    """Whether nothing is open any more."""
    with database.reading() as tx:
        return int(tx.connection.execute(_OPEN).scalar_one()) == 0


def wait_until_over(database: Database, patience: float) -> bool:
    """Whether the wave ended before patience did."""
    ends, pause = time.monotonic() + patience, Event()
    while not is_over(database):
        if time.monotonic() > ends:
            return False
        pause.wait(0.1)
    return True


def outcome(database: Database) -> list[Any]:
    """Who ended where, step by step."""
    with database.reading() as tx:
        steps = [tuple(row) for row in tx.connection.execute(_OUTCOME)]
        return [*steps, *(tuple(row) for row in tx.connection.execute(_ROLLBACKS))]


def function(job: WorkerJob) -> WorkerResult:
    """What a job gives."""
    number = int(str(job.parameters.get("User", "person001")).removeprefix("person"))
    counts = {kind: int(count) for kind, count in _NUMBERS.findall(job.job_id)}
    result: object = True
    error = None
    if job.function_name == "Set-Forwarding" and number % FAILS_EVERY == 0:
        error = WorkerError(message="the mailbox is on hold", type="MailboxOnHold", attempts=1)
    elif job.function_name == "New-Account":
        result = {"Id": f"id-{number}"}
        if number % STUMBLES_EVERY == 0 and not counts.get("retry"):
            error = WorkerError(message="try again", type="ServiceUnavailable", attempts=1)
    elif job.function_name == "Move-Mailbox":
        result = {"complete": number % WAITS_EVERY != 0 or counts.get("poll", 0) >= 1}
    return WorkerResult(
        job_id=job.job_id,
        batch_id=job.batch_id,
        worker_id=job.worker_id,
        function_name=job.function_name,
        status="success" if error is None else "failure",
        result_type="Object",
        result=None if error else result,
        error=error,
        correlation_data=job.correlation_data,
    )
