"""A whole wave from beginning to end, on functions that do nothing but behave like real ones.

Some fail once and are tried again, some fail for good and are undone, one kind of work takes a while and is polled;
somebody joins late and somebody leaves. What must come of it is known beforehand, and compared at the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import text

from matoolkit.batches import making, membership
from matoolkit.hosts.all_in_one import AllInOne
from matoolkit.messages import WorkerError, WorkerResult
from matoolkit.runbooks import load_runbook
from matoolkit.simulation.invariants import ALWAYS, AT_REST, check
from matoolkit.store import batches as batch_store
from matoolkit.store import members as member_store
from matoolkit.store import roster, runbooks
from matoolkit.store.states import OPEN_BATCH

if TYPE_CHECKING:
    from matoolkit.clock import Clock
    from matoolkit.messages import WorkerJob
    from matoolkit.store.database import Database

RUNBOOK = """\
name: demo-wave
description: Moves a department, on functions that only pretend to
data_source:
  type: sql
  connection: SQL_DEMO
  query: SELECT UserPrincipalName, DisplayName, MigrationDate FROM people
  primary_key: UserPrincipalName
  batch_time_column: MigrationDate
retry:
  max_retries: 2
  interval: 30s
init:
  - name: create-batch-group
    worker_id: worker-01
    function: New-BatchGroup
    params:
      Batch: "{{_batch_id}}"
phases:
  - name: pre-stage
    offset: T-30m
    steps:
      - name: create-user
        worker_id: worker-01
        function: New-EntraUser
        params:
          UserPrincipalName: "{{UserPrincipalName}}"
          DisplayName: "{{DisplayName}}"
        output_params:
          EntraId: Id
  - name: notify
    offset: T-20m
    steps:
      - name: send-notice
        worker_id: worker-01
        function: Send-Notice
        params:
          To: "{{UserPrincipalName}}"
          When: "{{_batch_start_time}}"
  - name: cut-over
    offset: T-10m
    steps:
      - name: set-forwarding
        worker_id: worker-01
        function: Set-Forwarding
        params:
          UserId: "{{EntraId}}"
        on_failure: undo-forwarding
      - name: move-mailbox
        worker_id: worker-01
        function: Start-MailboxMove
        params:
          UserId: "{{EntraId}}"
        poll:
          interval: 1m
          timeout: 20m
  - name: verification
    offset: T-0
    steps:
      - name: verify
        worker_id: worker-01
        function: Test-Mailbox
        params:
          UserId: "{{EntraId}}"
on_member_removed:
  - name: disable-user
    worker_id: worker-01
    function: Disable-EntraUser
    params:
      UserPrincipalName: "{{UserPrincipalName}}"
rollbacks:
  undo-forwarding:
    - name: remove-forwarding
      worker_id: worker-01
      function: Remove-Forwarding
      params:
        UserId: "{{EntraId}}"
"""
_FAILS_EVERY, _STUMBLES_EVERY = 40, 9
_POLLS = 2
_LEAD = timedelta(minutes=31)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the wave is."""

    members: Counter[str]
    phases: dict[str, str]
    steps: Counter[str]


@dataclass(slots=True)
class Closing:
    """Who ended where, and whether that is as it must be."""

    members: Counter[str]
    expected: Counter[str]
    failures: list[tuple[str, str, str]]
    steps: Counter[str]
    violations: list[str] = field(default_factory=list)

    @property
    def as_expected(self) -> bool:
        """Whether everybody is where they must be, and nothing is that must not."""
        return self.members == self.expected and not self.violations


class Demonstration:
    """The wave, its people and its pretended functions."""

    def __init__(self, database: Database, clock: Clock, members: int, *, tick_seconds: float) -> None:
        self._database, self._clock, self._count = database, clock, members
        self._attempts: Counter[str] = Counter()
        self._batch = 0
        self._host = AllInOne(
            database, clock, function=self._function, tick_seconds=tick_seconds, look_again_seconds=tick_seconds * 2
        )

    def begin(self) -> None:
        """Publish the runbook, find the people, start everything."""
        now = self._clock.now()
        people = [_person(number) for number in range(self._count)]
        with self._database.transaction() as tx:
            runbooks.publish(tx, name="demo-wave", yaml_content=RUNBOOK, now=now, by="demo")
            (published,) = runbooks.active(tx)
            self._batch = making.create_batch(
                tx,
                self._host.announcer,
                published,
                load_runbook(RUNBOOK),
                start_time=now + _LEAD,
                members=people,
                now=now,
            )
        self._host.start()

    def people_change(self) -> None:
        """One who comes late and one who goes."""
        with self._database.transaction() as tx:
            batch = batch_store.read(tx, [self._batch])[self._batch]
            now = self._clock.now()
            membership.add_members(tx, self._host.announcer, batch, [_person(self._count)], now)
            leaver = roster.listed(tx, self._batch)[1].id
            membership.remove_members(tx, self._host.announcer, batch, [leaver], now, by="demo")

    def progress(self) -> Progress:
        """How far the wave is now."""
        with self._database.reading() as tx:
            return Progress(
                Counter(dict(tx.execute(member_store.COUNT_BY_STATUS, batch=self._batch).all())),
                dict(tx.execute(_PHASES, batch=self._batch).all()),
                Counter(dict(tx.execute(_STEPS, batch=self._batch).all())),
            )

    @property
    def is_over(self) -> bool:
        """Whether the batch has ended."""
        with self._database.reading() as tx:
            return batch_store.read(tx, [self._batch])[self._batch].status not in OPEN_BATCH

    def end(self) -> Closing:
        """Stop everything and look at what came of it."""
        stopped = self._host.stop()
        progress = self.progress()
        failing = sum(1 for number in range(self._count + 1) if number != 1 and _fails(number))
        expected = Counter({"failed": failing, "removed": 1, "completed": self._count - failing})
        with self._database.reading() as tx:
            failures = [(row[0], row[1], row[2]) for row in tx.execute(_FAILURES, batch=self._batch)]
            violations = [str(each) for each in check(tx, (*ALWAYS, *AT_REST))]
        if not stopped:
            violations.append("a part did not stop")
        return Closing(progress.members, +expected, failures, progress.steps, violations)

    def stop(self) -> None:
        """Stop in the middle."""
        self._host.stop()

    def _function(self, job: WorkerJob) -> WorkerResult:
        """Pretend."""
        self._attempts[job.idempotency_key] += 1
        attempt = self._attempts[job.idempotency_key]
        subject = str(job.parameters.get("UserId") or job.parameters.get("UserPrincipalName") or "")
        digits = "".join(letter for letter in subject.split("@", maxsplit=1)[0] if letter.isdigit())
        number = int(digits) if digits else -1
        if job.function_name == "Set-Forwarding" and _fails(number):
            return self._answer(
                job, error=WorkerError(message="the mailbox is on hold", type="MailboxOnHold", attempts=1)
            )
        if job.function_name == "New-EntraUser":
            if number % _STUMBLES_EVERY == 0 and attempt == 1:
                return self._answer(job, error=WorkerError(message="try again", type="ServiceUnavailable", attempts=1))
            return self._answer(job, {"Id": f"id-{number}"})
        if job.function_name == "Start-MailboxMove":
            return self._answer(job, {"complete": attempt > _POLLS})
        return self._answer(job, result=True)

    def _answer(self, job: WorkerJob, result: object = None, *, error: WorkerError | None = None) -> WorkerResult:
        return WorkerResult(
            job_id=job.job_id,
            batch_id=job.batch_id,
            worker_id=job.worker_id,
            function_name=job.function_name,
            status="success" if error is None else "failure",
            result_type="Boolean" if isinstance(result, bool) else "Object",
            result=result,
            error=error,
            timestamp=self._clock.now(),
            correlation_data=job.correlation_data,
        )


def _person(number: int) -> tuple[str, str]:
    key = f"person{number}@contoso.example"
    return key, msgspec.json.encode({"UserPrincipalName": key, "DisplayName": f"Person {number}"}).decode()


def _fails(number: int) -> bool:
    return number % _FAILS_EVERY == _FAILS_EVERY // 2


_PHASES = text("SELECT phase_name, status FROM phase_executions WHERE batch_id = :batch ORDER BY id")
_STEPS = text("SELECT status, count(*) FROM step_executions WHERE batch_id = :batch GROUP BY status ORDER BY status")
_FAILURES = text("""
    SELECT m.member_key, s.step_name, s.error_message FROM step_executions s
    JOIN batch_members m ON m.id = s.batch_member_id
    WHERE s.batch_id = :batch AND s.status IN ('failed', 'poll_timeout') ORDER BY m.id
""")
