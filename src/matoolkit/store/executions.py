"""Executions of steps, of all four kinds: how they are read, found and moved from state to state.

The four tables share their columns, so the statements are written once and made for each table. Every change names
the state it expects; `Transaction.change_rows` undoes the transaction when a row was no longer in it.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Executable,
    Integer,
    Select,
    String,
    Table,
    bindparam,
    false,
    func,
    insert,
    literal,
    null,
    select,
    true,
    update,
)

from matoolkit.messages import Kind
from matoolkit.store.guards import checked
from matoolkit.store.locking import IDS
from matoolkit.store.rows import Rows
from matoolkit.store.schema import (
    init_executions,
    phase_executions,
    removal_executions,
    rollback_executions,
    step_executions,
)
from matoolkit.store.states import OPEN_EXECUTION, ExecutionStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matoolkit.store.database import Transaction

TABLES: dict[Kind, Table] = {
    Kind.STEP: step_executions,
    Kind.INIT: init_executions,
    Kind.ROLLBACK: rollback_executions,
    Kind.REMOVAL: removal_executions,
}


class Execution(msgspec.Struct, frozen=True):
    """One step's execution, of whichever kind, as it was read."""

    kind: Kind
    id: int
    batch_id: int
    runbook_version: int
    step_name: str
    step_index: int
    worker_id: str
    function_name: str
    params_json: str | None
    status: str
    job_id: str | None
    job_out: bool
    first_dispatched_at: datetime | None
    timeout_sec: int
    on_failure: str | None
    is_poll_step: bool
    poll_interval_sec: int | None
    poll_timeout_sec: int | None
    poll_started_at: datetime | None
    poll_count: int
    retry_count: int
    max_retries: int
    retry_interval_sec: int | None
    retry_after: datetime | None
    group: str | None
    """The phase's or the rollback's name."""
    member_id: int | None
    phase_id: int | None
    generation: int | None
    failed_step_id: int | None
    failed_init_id: int | None


_SHARED = [
    "id",
    "batch_id",
    "runbook_version",
    "step_name",
    "step_index",
    "worker_id",
    "function_name",
    "params_json",
    "status",
    "job_id",
    "job_out",
    "first_dispatched_at",
    "timeout_sec",
    "on_failure",
    "is_poll_step",
    "poll_interval_sec",
    "poll_timeout_sec",
    "poll_started_at",
    "poll_count",
    "retry_count",
    "max_retries",
    "retry_interval_sec",
    "retry_after",
]

ENDED = Rows(
    Column("id", BigInteger),
    Column("job_id", String),
    Column("status", String),
    Column("result_json", String),
    Column("error_message", String),
)
WAITING = Rows(
    Column("id", BigInteger),
    Column("job_id", String),
    Column("at", UtcDateTime),
    Column("result_json", String),
    Column("error_message", String),
)
SENT = Rows(
    Column("id", BigInteger),
    Column("expected", String),
    Column("status", String),
    Column("job_id", String),
    Column("function_name", String),
    Column("params_json", String),
    Column("poll_count", Integer),
)
REFUSED = Rows(Column("id", BigInteger), Column("status", String), Column("error_message", String))
PLANNED = Rows(
    Column("parent_id", BigInteger),
    Column("member_id", BigInteger),
    Column("generation", Integer),
    Column("batch_id", BigInteger),
    Column("runbook_version", Integer),
    Column("group_name", String),
    Column("step_name", String),
    Column("step_index", Integer),
    Column("worker_id", String),
    Column("function_name", String),
    Column("timeout_sec", Integer),
    Column("on_failure", String),
    Column("is_poll_step", Boolean),
    Column("poll_interval_sec", Integer),
    Column("poll_timeout_sec", Integer),
    Column("max_retries", Integer),
    Column("retry_interval_sec", Integer),
)
"""Executions about to be written: for init, rollbacks and removals, a row each."""

_PLANNED_DIRECTLY = [
    "batch_id",
    "runbook_version",
    "step_name",
    "step_index",
    "worker_id",
    "function_name",
    "timeout_sec",
    "on_failure",
    "is_poll_step",
    "poll_interval_sec",
    "poll_timeout_sec",
    "max_retries",
    "retry_interval_sec",
]


class Executions:
    """The statements about one kind of execution."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.table = TABLES[kind]

    def read(self, tx: Transaction, ids: Iterable[int]) -> dict[int, Execution]:
        """Executions by their ids."""
        wanted = [(each,) for each in ids]
        return {each.id: each for each in self._rows(tx, self.reading, IDS, wanted)} if wanted else {}

    def next_open(self, tx: Transaction, owners: Iterable[int], owner: str) -> dict[int, Execution]:
        """For each owner (a member, a batch, a failed step) the first of its executions that has not ended."""
        wanted = [(each,) for each in owners]
        if not wanted:
            return {}
        column = {
            "member": "member_id",
            "batch": "batch_id",
            "failed_step": "failed_step_id",
            "failed_init": "failed_init_id",
        }[owner]
        rows = self._rows(tx, self.first_open[owner], IDS, wanted)
        return {getattr(each, column): each for each in rows}

    def end(self, tx: Transaction, rows: Sequence[Sequence[Any]], now: datetime) -> None:
        """The job reported that it ended, one way or the other."""
        tx.change_rows(self.ending, ENDED, rows, now=now)

    def wait_for_poll(self, tx: Transaction, rows: Sequence[Sequence[Any]], now: datetime) -> None:
        """The worker said that the work goes on."""
        tx.change_rows(self.polling, WAITING, rows, now=now)

    def wait_for_retry(self, tx: Transaction, rows: Sequence[Sequence[Any]]) -> None:
        """Failed, and to be sent again at a time."""
        tx.change_rows(self.retrying, WAITING, rows)

    def record_late(self, tx: Transaction, rows: Sequence[Sequence[Any]], now: datetime) -> None:
        """The job of something that was cancelled has reported: its hands are still now, and nothing else changes."""
        tx.change_rows(self.recording, ENDED, rows, now=now)

    def send(self, tx: Transaction, rows: Sequence[Sequence[Any]], now: datetime, not_after: datetime) -> None:
        """A job goes out."""
        tx.change_rows(self.sending, SENT, rows, now=now, not_after=not_after)

    def refuse(self, tx: Transaction, rows: Sequence[Sequence[Any]], now: datetime) -> None:
        """Ended without a job: it could not be sent, or its polling took too long."""
        tx.change_rows(self.refusing, REFUSED, rows, now=now)

    def plan(self, tx: Transaction, rows: Sequence[Sequence[Any]], parent: str = "") -> None:
        """Write executions that are to come; of rollbacks, `parent` says what they undo."""
        if rows:
            tx.with_rows(self.planning[parent], PLANNED, rows)

    def _rows(
        self, tx: Transaction, statement: Executable, rows: Rows, values: Sequence[Sequence[Any]]
    ) -> list[Execution]:
        return [Execution(self.kind, *row) for row in tx.with_rows(statement, rows, values)]

    @cached_property
    def columns(self) -> list[ColumnElement[Any]]:
        """What `Execution` is made of, in its order."""
        c = self.table.c
        group: ColumnElement[Any] = {
            Kind.STEP: phase_executions.c.phase_name,
            Kind.ROLLBACK: rollback_executions.c.rollback_name,
        }.get(self.kind, null())
        return [
            *(c[name] for name in _SHARED),
            group.label("group_name"),
            *(
                c[name] if name in c else null().label(name)
                for name in (
                    "batch_member_id",
                    "phase_execution_id",
                    "generation",
                    "step_execution_id",
                    "init_execution_id",
                )
            ),
        ]

    @cached_property
    def selected(self) -> Select[Any]:
        """Executions as `Execution` takes them."""
        statement = select(*self.columns).select_from(self.table)
        if self.kind is Kind.STEP:
            statement = statement.join(phase_executions, phase_executions.c.id == self.table.c.phase_execution_id)
        return statement

    @cached_property
    def reading(self) -> Select[Any]:
        """Executions by id."""
        return self.selected.join(IDS.table, IDS.c.id == self.table.c.id)

    @cached_property
    def first_open(self) -> dict[str, Select[Any]]:
        """The first open execution of each owner, by what the owner is."""
        c = self.table.c
        owners: dict[Kind, dict[str, tuple[str, tuple[str, ...]]]] = {
            Kind.STEP: {"member": ("batch_member_id", ("phase_execution_id", "step_index"))},
            Kind.INIT: {"batch": ("batch_id", ("runbook_version", "step_index"))},
            Kind.ROLLBACK: {
                "failed_step": ("step_execution_id", ("step_index",)),
                "failed_init": ("init_execution_id", ("step_index",)),
            },
            Kind.REMOVAL: {"member": ("batch_member_id", ("generation", "step_index"))},
        }
        found: dict[str, Select[Any]] = {}
        for owner, (column, order) in owners[self.kind].items():
            other = self.table.alias("other")
            first = (
                select(other.c.id)
                .where(other.c[column] == IDS.c.id, checked(other.c.status).in_(OPEN_EXECUTION))
                .order_by(*(other.c[name] for name in order))
                .limit(1)
                .correlate(IDS.table)
                .scalar_subquery()
            )
            found[owner] = self.selected.join(IDS.table, c.id == first)
        return found

    @cached_property
    def ending(self) -> Executable:
        """The job reported an end."""
        return (
            update(self.table)
            .where(
                self.table.c.id == ENDED.c.id,
                self.table.c.job_id == ENDED.c.job_id,
                checked(self.table.c.job_out) == true(),
                checked(self.table.c.status).in_((ExecutionStatus.DISPATCHED, ExecutionStatus.POLLING)),
            )
            .values(
                status=ENDED.c.status,
                result_json=ENDED.c.result_json,
                error_message=ENDED.c.error_message,
                completed_at=_time("now"),
                job_out=false(),
                poll_check_at=null(),
            )
        )

    @cached_property
    def polling(self) -> Executable:
        """The job reported that the work goes on."""
        c = self.table.c
        return (
            update(self.table)
            .where(
                c.id == WAITING.c.id,
                c.job_id == WAITING.c.job_id,
                checked(c.job_out) == true(),
                checked(c.status).in_((ExecutionStatus.DISPATCHED, ExecutionStatus.POLLING)),
            )
            .values(
                status=ExecutionStatus.POLLING,
                result_json=WAITING.c.result_json,
                poll_started_at=func.coalesce(c.poll_started_at, _time("now")),
                last_polled_at=_time("now"),
                poll_check_at=WAITING.c.at,
                job_out=false(),
            )
        )

    @cached_property
    def retrying(self) -> Executable:
        """The job reported a failure that is to be tried again: from the start, polls included."""
        c = self.table.c
        return (
            update(self.table)
            .where(
                c.id == WAITING.c.id,
                c.job_id == WAITING.c.job_id,
                checked(c.job_out) == true(),
                checked(c.status).in_((ExecutionStatus.DISPATCHED, ExecutionStatus.POLLING)),
            )
            .values(
                status=ExecutionStatus.PENDING,
                error_message=WAITING.c.error_message,
                retry_count=c.retry_count + 1,
                retry_after=WAITING.c.at,
                job_id=null(),
                job_out=false(),
                poll_count=0,
                poll_started_at=null(),
                last_polled_at=null(),
                poll_check_at=null(),
            )
        )

    @cached_property
    def recording(self) -> Executable:
        """The job of a cancelled execution reported."""
        c = self.table.c
        return (
            update(self.table)
            .where(c.id == ENDED.c.id, c.job_id == ENDED.c.job_id, checked(c.job_out) == true())
            .values(
                status=ExecutionStatus.CANCELLED,
                result_json=ENDED.c.result_json,
                error_message=ENDED.c.error_message,
                completed_at=func.coalesce(c.completed_at, _time("now")),
                job_out=false(),
                poll_check_at=null(),
            )
        )

    @cached_property
    def sending(self) -> Executable:
        """From pending to dispatched; a polling one stays polling."""
        c = self.table.c
        return (
            update(self.table)
            .where(c.id == SENT.c.id, checked(c.status) == SENT.c.expected, checked(c.job_out) == false())
            .values(
                status=SENT.c.status,
                job_id=SENT.c.job_id,
                job_out=true(),
                function_name=SENT.c.function_name,
                params_json=SENT.c.params_json,
                poll_count=SENT.c.poll_count,
                poll_check_at=null(),
                retry_after=null(),
                dispatched_at=_time("now"),
                first_dispatched_at=func.coalesce(c.first_dispatched_at, _time("now")),
                job_not_after=_time("not_after"),
            )
        )

    @cached_property
    def refusing(self) -> Executable:
        """From pending or polling to an end, with no job out."""
        c = self.table.c
        return (
            update(self.table)
            .where(
                c.id == REFUSED.c.id,
                checked(c.status).in_((ExecutionStatus.PENDING, ExecutionStatus.POLLING)),
                checked(c.job_out) == false(),
            )
            .values(
                status=REFUSED.c.status,
                error_message=REFUSED.c.error_message,
                completed_at=_time("now"),
                poll_check_at=null(),
                retry_after=null(),
            )
        )

    @cached_property
    def planning(self) -> dict[str, Executable]:
        """New executions, where there are none yet in their place, by what they undo."""
        if self.kind is Kind.STEP:
            return {}  # `phases.write_chunk` writes those
        c, given = self.table.c, PLANNED.c
        own: dict[str, dict[str, ColumnElement[Any]]]
        unique: tuple[str, ...]
        if self.kind is Kind.INIT:
            own, unique = {"": {}}, ("batch_id", "runbook_version")
        elif self.kind is Kind.REMOVAL:
            own = {"": {"batch_member_id": given.member_id, "generation": given.generation}}
            unique = ("batch_member_id", "generation")
        else:
            shared = {"batch_member_id": given.member_id, "rollback_name": given.group_name}
            own = {
                "failed_step": {**shared, "step_execution_id": given.parent_id},
                "failed_init": {**shared, "init_execution_id": given.parent_id},
            }
            unique = ()
        found: dict[str, Executable] = {}
        for parent, columns in own.items():
            values = {**{name: given[name] for name in _PLANNED_DIRECTLY}, **columns}
            place = unique or (next(reversed(columns)),)
            there = (
                select(literal(1))
                .select_from(self.table)
                .where(c.step_index == given.step_index, *(c[name] == values[name] for name in place))
                .correlate(PLANNED.table)
                .exists()
            )
            rows = select(*values.values()).select_from(PLANNED.table).where(~there)
            found[parent] = insert(self.table).from_select(list(values), rows)
        return found


def _time(name: str) -> ColumnElement[datetime]:
    return bindparam(name, type_=UtcDateTime)


steps = Executions(Kind.STEP)
inits = Executions(Kind.INIT)
rollbacks = Executions(Kind.ROLLBACK)
removals = Executions(Kind.REMOVAL)
EXECUTIONS: dict[Kind, Executions] = {each.kind: each for each in (steps, inits, rollbacks, removals)}
