"""A whole wave from beginning to end, on functions that do nothing but behave like real ones.

Some fail once and are tried again, some fail for good and are undone, one kind of work takes a while and is polled;
somebody joins late and somebody leaves. What must come of it is known beforehand, and compared at the end.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import text

from matoolkit.hosts.all_in_one import AllInOne, Pace
from matoolkit.hosts.sources import source_settings
from matoolkit.messages import WorkerError, WorkerResult
from matoolkit.scheduler import Settings
from matoolkit.scheduler.sources import open_source
from matoolkit.simulation.invariants import ALWAYS, AT_REST, check
from matoolkit.simulation.pretending import PretendingHand
from matoolkit.store import runbooks
from matoolkit.store.address import in_file
from matoolkit.store.states import OPEN_BATCH

if TYPE_CHECKING:
    from pathlib import Path

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
_LEAD = timedelta(minutes=36)
_TICK = timedelta(minutes=2)


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

    def __init__(self, database: Database, clock: Clock, members: int, *, people: Path, beat_seconds: float) -> None:
        """Take what the wave runs on, and the file that is to be its data source."""
        self._database, self._clock, self._count, self._people = database, clock, members, people
        self._attempts: Counter[str] = Counter()
        settings = source_settings({"SQL_DEMO": in_file(people).render_as_string(hide_password=False)})
        pace = Pace(
            clock=clock,
            beat_seconds=beat_seconds,
            look_again_seconds=beat_seconds * 2,
            scheduling=Settings(tick=_TICK),
        )
        self._host = AllInOne(
            database,
            pace,
            worker=lambda bus, place: PretendingHand(bus, place, clock, self._function),
            environment={},
            sources=partial(open_source, settings=settings),
        )

    def begin(self) -> None:
        """Write down the people, publish the runbook, start everything: the next tick finds them."""
        now = self._clock.now()
        date = (now + _LEAD).isoformat()
        with closing(sqlite3.connect(self._people)) as source, source:
            source.execute("CREATE TABLE people (UserPrincipalName TEXT, DisplayName TEXT, MigrationDate TEXT)")
            rows = [(*_person(number), date) for number in range(self._count)]
            source.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        with self._database.transaction() as tx:
            runbooks.publish(tx, name="demo-wave", yaml_content=RUNBOOK, now=now, by="demo")
        self._host.start()

    def people_change(self) -> None:
        """One who comes late and one who goes."""
        with closing(sqlite3.connect(self._people)) as source, source:
            late = _person(self._count)
            source.execute("INSERT INTO people SELECT ?, ?, max(MigrationDate) FROM people", late)
            source.execute("DELETE FROM people WHERE UserPrincipalName = ?", _person(1)[:1])

    def progress(self) -> Progress:
        """How far the wave is now."""
        with self._database.reading() as tx:
            return Progress(
                Counter(dict(tx.execute(_MEMBERS).all())),
                dict(tx.execute(_PHASES).all()),
                Counter(dict(tx.execute(_STEPS).all())),
            )

    @property
    def is_over(self) -> bool:
        """Whether the batch has ended."""
        with self._database.reading() as tx:
            statuses = tx.execute(_BATCHES).scalars()
            return bool(statuses) and not any(status in OPEN_BATCH for status in statuses)

    def end(self) -> Closing:
        """Stop everything and look at what came of it."""
        stopped = self._host.stop()
        progress = self.progress()
        failing = sum(1 for number in range(self._count + 1) if number != 1 and _fails(number))
        expected = Counter({"failed": failing, "removed": 1, "completed": self._count - failing})
        with self._database.reading() as tx:
            failures = [(row[0], row[1], row[2]) for row in tx.execute(_FAILURES)]
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
    return key, f"Person {number}"


def _fails(number: int) -> bool:
    return number % _FAILS_EVERY == _FAILS_EVERY // 2


_BATCHES = text("SELECT status FROM batches ORDER BY id")
_MEMBERS = text("SELECT status, count(*) FROM batch_members GROUP BY status ORDER BY status")
_PHASES = text("SELECT phase_name, status FROM phase_executions ORDER BY id")
_STEPS = text("SELECT status, count(*) FROM step_executions GROUP BY status ORDER BY status")
_FAILURES = text("""
    SELECT m.member_key, s.step_name, s.error_message FROM step_executions s
    JOIN batch_members m ON m.id = s.batch_member_id
    WHERE s.status IN ('failed', 'poll_timeout') ORDER BY m.id
""")
