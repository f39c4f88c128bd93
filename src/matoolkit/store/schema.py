"""The tables. Migrations must lead to exactly these; a test compares them.

Four tables hold executions of steps: of members in phases, of a batch's init, of rollbacks, of removals. They share
their columns, and what is true of one execution is true of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Unicode,
    UnicodeText,
    UniqueConstraint,
    false,
    text,
)

from matoolkit.store.states import (
    FAILED_EXECUTION,
    OPEN_EXECUTION,
    BatchStatus,
    ExecutionStatus,
    MemberStatus,
    PhaseStatus,
    SequenceStatus,
    SkipReason,
)
from matoolkit.store.types import State, UtcDateTime, exact

if TYPE_CHECKING:
    from enum import StrEnum

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

Identity = BigInteger().with_variant(Integer, "sqlite")
"""SQLite makes only an INTEGER primary key its row id."""

Name = exact(Unicode(256))
"""What people name things: runbooks, phases, steps, workers, functions; Azure SQL's plain text has no such letters."""


def _status(name: str, states: type[StrEnum], default: StrEnum | None = None) -> tuple[Any, ...]:
    """A column that holds one of some states, and the check that it does."""
    column = Column(
        name, exact(State(32)), nullable=default is None, server_default=None if default is None else str(default)
    )
    allowed = ", ".join(f"'{state}'" for state in states)
    return column, CheckConstraint(f"{name} IN ({allowed})", name=name)


def _where(condition: str) -> dict[str, Any]:
    """A filtered index, in the words of each database; only PostgreSQL has booleans that are no numbers."""
    numeric = text(condition.replace("= true", "= 1").replace("= false", "= 0"))
    return {"sqlite_where": numeric, "mssql_where": numeric, "postgresql_where": text(condition)}


_OPEN = f"status IN ({', '.join(repr(str(state)) for state in OPEN_EXECUTION)})"

runbooks = Table(
    "runbooks",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", Name, nullable=False),
    Column("name_folded", Name, nullable=False),
    Column("version", Integer, nullable=False),
    Column("yaml_content", UnicodeText, nullable=False),
    Column("data_table_name", Name),
    Column("is_active", Boolean, nullable=False),
    Column("overdue_behavior", exact(String(16)), nullable=False, server_default="rerun"),
    Column("ignore_overdue_applied", Boolean, nullable=False, server_default=false()),
    Column("rerun_init", Boolean, nullable=False, server_default=false()),
    Column("created_at", UtcDateTime, nullable=False),
    Column("published_by", Name),
    Column("last_error", UnicodeText),
    Column("last_error_at", UtcDateTime),
    UniqueConstraint("name_folded", "version"),
    CheckConstraint("overdue_behavior IN ('rerun', 'ignore')", name="overdue_behavior"),
)
Index("ux_runbooks_active", runbooks.c.name_folded, unique=True, **_where("is_active = true"))

runbook_automation_settings = Table(
    "runbook_automation_settings",
    metadata,
    Column("runbook_name", Name, primary_key=True),
    Column("automation_enabled", Boolean, nullable=False),
    Column("enabled_at", UtcDateTime),
    Column("enabled_by", Name),
    Column("disabled_at", UtcDateTime),
    Column("disabled_by", Name),
)

batches = Table(
    "batches",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("runbook_id", Identity, ForeignKey("runbooks.id"), nullable=False),
    Column("runbook_name_folded", Name, nullable=False),
    Column("batch_start_time", UtcDateTime),
    *_status("status", BatchStatus, BatchStatus.DETECTED),
    Column("detected_at", UtcDateTime, nullable=False),
    Column("loaded_at", UtcDateTime),
    Column("init_dispatched_at", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("completed_at", UtcDateTime),
    Column("is_manual", Boolean, nullable=False),
    Column("created_by", Name),
    Column("cancelled_by", Name),
    Column("current_phase", Name),
    Column("rerunning_init_version", Integer),
    # Ended before its time: its members and steps are being ended too, in chunks.
    Column("winding_up", Boolean, nullable=False, server_default=false()),
)
Index(
    "ux_batches_start",
    batches.c.runbook_name_folded,
    batches.c.batch_start_time,
    unique=True,
    **_where("is_manual = false"),
)
Index(
    "ix_batches_open",
    batches.c.status,
    **_where(f"status IN ('{BatchStatus.DETECTED}', '{BatchStatus.INIT_DISPATCHED}', '{BatchStatus.ACTIVE}')"),
)

batch_members = Table(
    "batch_members",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("batch_id", Identity, ForeignKey("batches.id"), nullable=False),
    Column("member_key", exact(Unicode(512)), nullable=False),
    Column("member_key_folded", exact(Unicode(512)), nullable=False),
    Column("data_json", UnicodeText, nullable=False),
    Column("worker_data_json", UnicodeText),
    *_status("status", MemberStatus, MemberStatus.ACTIVE),
    Column("generation", Integer, nullable=False, server_default="1"),
    Column("added_at", UtcDateTime, nullable=False),
    Column("removed_at", UtcDateTime),
    Column("removed_by", Name),
    Column("failed_at", UtcDateTime),
    Column("completed_at", UtcDateTime),
    Column("add_dispatched_at", UtcDateTime),
    Column("remove_dispatched_at", UtcDateTime),
    # Two promises that are kept by a message, and by reconciliation should the message get lost.
    Column("catch_up_due", Boolean, nullable=False, server_default=false()),
    Column("removal_due", Boolean, nullable=False, server_default=false()),
    # Missing from the source, and kept until an operator says that so many may go at once.
    Column("removal_held_at", UtcDateTime),
    UniqueConstraint("batch_id", "member_key_folded"),
)
Index("ix_batch_members_status", batch_members.c.batch_id, batch_members.c.status, batch_members.c.id)
Index("ix_batch_members_batch", batch_members.c.batch_id, batch_members.c.id)
Index("ix_batch_members_key", batch_members.c.member_key_folded)
Index(
    "ix_batch_members_owed",
    batch_members.c.id,
    **_where("catch_up_due = true"),
)
Index(
    "ix_batch_members_leaving",
    batch_members.c.id,
    **_where("removal_due = true"),
)
Index(
    "ix_batch_members_held",
    batch_members.c.batch_id,
    **_where("removal_held_at IS NOT NULL"),
)

phase_executions = Table(
    "phase_executions",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("batch_id", Identity, ForeignKey("batches.id"), nullable=False),
    Column("phase_name", Name, nullable=False),
    Column("offset_minutes", Integer, nullable=False),
    Column("due_at", UtcDateTime),
    Column("runbook_version", Integer, nullable=False),
    *_status("status", PhaseStatus, PhaseStatus.PENDING),
    *_status("skip_reason", SkipReason),
    Column("dispatched_at", UtcDateTime),
    Column("completed_at", UtcDateTime),
    # How far the members' steps have been written; the phase cannot close before `expanded_at` is set.
    Column("expanded_to_member_id", Identity, nullable=False, server_default="0"),
    Column("expansion_moved_at", UtcDateTime),
    Column("expanded_at", UtcDateTime),
    UniqueConstraint("batch_id", "runbook_version", "phase_name"),
)
Index("ix_phase_executions_due", phase_executions.c.due_at, **_where(f"status = '{PhaseStatus.PENDING}'"))
Index("ix_phase_executions_running", phase_executions.c.batch_id, **_where(f"status = '{PhaseStatus.DISPATCHED}'"))


def _execution_columns() -> tuple[Any, ...]:
    """What every execution of a step carries."""
    return (
        Column("id", Identity, primary_key=True),
        Column("batch_id", Identity, nullable=False),
        Column("runbook_version", Integer, nullable=False),
        Column("step_name", Name, nullable=False),
        Column("step_index", Integer, nullable=False),
        Column("worker_id", Name, nullable=False),
        Column("function_name", Name, nullable=False),
        Column("params_json", UnicodeText),
        *_status("status", ExecutionStatus, ExecutionStatus.PENDING),
        Column("job_id", exact(String(128))),
        Column("job_out", Boolean, nullable=False, server_default=false()),
        Column("job_not_after", UtcDateTime),
        Column("first_dispatched_at", UtcDateTime),
        Column("dispatched_at", UtcDateTime),
        Column("completed_at", UtcDateTime),
        Column("result_json", UnicodeText),
        Column("error_message", UnicodeText),
        Column("timeout_sec", Integer, nullable=False),
        Column("on_failure", Name),
        Column("is_poll_step", Boolean, nullable=False, server_default=false()),
        Column("poll_interval_sec", Integer),
        Column("poll_timeout_sec", Integer),
        Column("poll_started_at", UtcDateTime),
        Column("last_polled_at", UtcDateTime),
        Column("poll_check_at", UtcDateTime),
        Column("poll_count", Integer, nullable=False, server_default="0"),
        Column("retry_count", Integer, nullable=False, server_default="0"),
        Column("max_retries", Integer, nullable=False, server_default="0"),
        Column("retry_interval_sec", Integer),
        Column("retry_after", UtcDateTime),
    )


def _execution_indexes(table: Table) -> None:
    """What finds executions that are to be polled, and jobs that are out; for steps, an index that is there anyway."""
    Index(
        f"ix_{table.name}_poll",
        table.c.poll_check_at,
        **_where(f"status = '{ExecutionStatus.POLLING}'"),
    )
    if table.name != "step_executions":
        Index(f"ix_{table.name}_out", table.c.job_not_after, **_where("job_out = true"))


step_executions = Table(
    "step_executions",
    metadata,
    *_execution_columns(),
    Column("phase_execution_id", Identity, ForeignKey("phase_executions.id"), nullable=False),
    Column("batch_member_id", Identity, ForeignKey("batch_members.id"), nullable=False),
    Column("generation", Integer, nullable=False),
    *_status("rollback_status", SequenceStatus),
)
_execution_indexes(step_executions)
Index(
    "ux_step_executions_place",
    step_executions.c.batch_member_id,
    step_executions.c.phase_execution_id,
    step_executions.c.generation,
    step_executions.c.step_index,
    unique=True,
)
Index("ux_step_executions_in_flight", step_executions.c.batch_member_id, unique=True, **_where("job_out = true"))
Index("ix_step_executions_open", step_executions.c.phase_execution_id, **_where(_OPEN))
Index("ix_step_executions_batch", step_executions.c.batch_id, step_executions.c.id)
Index(
    "ix_step_executions_failed",
    step_executions.c.batch_id,
    step_executions.c.id,
    **_where(f"status IN ({', '.join(repr(str(state)) for state in FAILED_EXECUTION)})"),
)

init_executions = Table(
    "init_executions",
    metadata,
    *_execution_columns(),
    *_status("rollback_status", SequenceStatus),
    UniqueConstraint("batch_id", "runbook_version", "step_index"),
)
_execution_indexes(init_executions)

rollback_executions = Table(
    "rollback_executions",
    metadata,
    *_execution_columns(),
    Column("rollback_name", Name, nullable=False),
    # The failed step it undoes: a member's, or one of init.
    Column("step_execution_id", Identity, ForeignKey("step_executions.id")),
    Column("init_execution_id", Identity, ForeignKey("init_executions.id")),
    Column("batch_member_id", Identity, ForeignKey("batch_members.id")),
    CheckConstraint(
        "(step_execution_id IS NULL AND init_execution_id IS NOT NULL) OR "
        "(step_execution_id IS NOT NULL AND init_execution_id IS NULL)",
        name="one_parent",
    ),
)
_execution_indexes(rollback_executions)
Index(
    "ux_rollback_executions_step",
    rollback_executions.c.step_execution_id,
    rollback_executions.c.step_index,
    unique=True,
    **_where("step_execution_id IS NOT NULL"),
)
Index(
    "ux_rollback_executions_init",
    rollback_executions.c.init_execution_id,
    rollback_executions.c.step_index,
    unique=True,
    **_where("init_execution_id IS NOT NULL"),
)
Index("ix_rollback_executions_open", rollback_executions.c.batch_member_id, **_where(_OPEN))
Index("ix_rollback_executions_batch", rollback_executions.c.batch_id, rollback_executions.c.id)

removal_executions = Table(
    "removal_executions",
    metadata,
    *_execution_columns(),
    Column("batch_member_id", Identity, ForeignKey("batch_members.id"), nullable=False),
    Column("generation", Integer, nullable=False),
    UniqueConstraint("batch_member_id", "generation", "step_index"),
)
_execution_indexes(removal_executions)
Index("ix_removal_executions_open", removal_executions.c.batch_member_id, **_where(_OPEN))
Index("ix_removal_executions_batch", removal_executions.c.batch_id, removal_executions.c.id)

audit = Table(
    "audit",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("actor", Name, nullable=False),
    Column("action", exact(String(64)), nullable=False),
    Column("target", exact(Unicode(512)), nullable=False),
    Column("batch_id", Identity),
    Column("detail_json", UnicodeText),
)
Index("ix_audit_batch", audit.c.batch_id, audit.c.id)

dead_messages = Table(
    "dead_messages",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("topic", exact(String(128)), nullable=False),
    Column("message_id", exact(String(256)), nullable=False),
    Column("message_type", exact(String(64))),
    Column("reason", exact(Unicode(256)), nullable=False),
    Column("error", UnicodeText),
    Column("properties_json", UnicodeText, nullable=False),
    Column("body", UnicodeText, nullable=False),
    Column("resubmitted_at", UtcDateTime),
    Column("resubmitted_by", Name),
)

leases = Table(
    "leases",
    metadata,
    Column("name", exact(String(64)), primary_key=True),
    Column("holder", exact(Unicode(256)), nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)
"""Who alone may do something for now: of several schedulers, the one that ticks."""

idempotent_answers = Table(
    "idempotent_answers",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("actor", Name, nullable=False),
    Column("idempotency_key", exact(Unicode(256)), nullable=False),
    # What was asked: the same key for something else is a mistake to be told about.
    Column("request_hash", exact(String(64)), nullable=False),
    Column("status_code", Integer, nullable=False),
    Column("body", UnicodeText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("actor", "idempotency_key"),
)
"""What was answered to a request that said how to recognise its repetition."""
Index("ix_idempotent_answers_age", idempotent_answers.c.created_at)
