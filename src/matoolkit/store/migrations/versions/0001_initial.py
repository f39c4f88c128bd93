"""The first schema: runbooks, batches, members, phases, the four kinds of executions, the audit and the bus.

Written by `python -m devtools.initial_revision`, from then on a matter of its own: it imports nothing that may change.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from matoolkit.store.types import UtcDateTime

revision = "0001"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_EXACT = "Latin1_General_100_BIN2"


def _code(length: int) -> sa.String:
    """Words of ours, compared letter by letter."""
    return sa.String(length).with_variant(sa.String(length, collation=_EXACT), "mssql")


def _name(length: int) -> sa.Unicode:
    """Words of people's, compared letter by letter."""
    return sa.Unicode(length).with_variant(sa.Unicode(length, collation=_EXACT), "mssql")


def _where(condition: str) -> dict[str, Any]:
    """A filtered index, in the words of each database; only PostgreSQL has booleans that are no numbers."""
    numeric = sa.text(condition.replace("= true", "= 1").replace("= false", "= 0"))
    return {"sqlite_where": numeric, "mssql_where": numeric, "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", _ID, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("actor", _name(256), nullable=False),
        sa.Column("action", _code(64), nullable=False),
        sa.Column("target", _name(512), nullable=False),
        sa.Column("batch_id", _ID, nullable=True),
        sa.Column("detail_json", sa.UnicodeText(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_batch", "audit", ["batch_id", "id"], unique=False)
    op.create_table(
        "bus_message_ids",
        sa.Column("topic_id", _ID, nullable=False),
        sa.Column("message_id", _code(128), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("topic_id", "message_id", name=op.f("pk_bus_message_ids")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_bus_message_ids_until", "bus_message_ids", ["until"], unique=False)
    op.create_table(
        "bus_messages",
        sa.Column("id", _ID, nullable=False),
        sa.Column("subscription_id", _ID, nullable=False),
        sa.Column("available_at", sa.BigInteger(), nullable=False),
        sa.Column("delivery_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("enqueued_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("dead_at", sa.BigInteger(), nullable=True),
        sa.Column("dead_reason", _code(256), nullable=True),
        sa.Column("dead_description", sa.UnicodeText(), nullable=True),
        sa.Column("message_id", _code(128), nullable=True),
        sa.Column("properties", sa.UnicodeText(), nullable=False),
        sa.Column("body", sa.UnicodeText(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bus_messages")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_bus_messages_available",
        "bus_messages",
        ["subscription_id", "available_at", "id"],
        unique=False,
        **_where("dead_at IS NULL"),
    )
    op.create_index(
        "ix_bus_messages_dead", "bus_messages", ["subscription_id", "id"], unique=False, **_where("dead_at IS NOT NULL")
    )
    op.create_index(
        "ix_bus_messages_expires", "bus_messages", ["expires_at"], unique=False, **_where("dead_at IS NULL")
    )
    op.create_table(
        "bus_subscriptions",
        sa.Column("id", _ID, nullable=False),
        sa.Column("topic_id", _ID, nullable=False),
        sa.Column("name", _code(128), nullable=False),
        sa.Column("filter_property", _code(64), nullable=True),
        sa.Column("filter_value", _code(256), nullable=True),
        sa.Column("lock_ms", sa.BigInteger(), nullable=False),
        sa.Column("max_delivery_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bus_subscriptions")),
        sa.UniqueConstraint("topic_id", "name", name=op.f("uq_bus_subscriptions_topic_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "bus_topics",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", _code(128), nullable=False),
        sa.Column("time_to_live_ms", sa.BigInteger(), nullable=False),
        sa.Column("duplicate_window_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bus_topics")),
        sa.UniqueConstraint("name", name=op.f("uq_bus_topics_name")),
    )
    op.create_table(
        "dead_messages",
        sa.Column("id", _ID, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("topic", _code(128), nullable=False),
        sa.Column("message_id", _code(256), nullable=False),
        sa.Column("message_type", _code(64), nullable=True),
        sa.Column("reason", _name(256), nullable=False),
        sa.Column("error", sa.UnicodeText(), nullable=True),
        sa.Column("properties_json", sa.UnicodeText(), nullable=False),
        sa.Column("body", sa.UnicodeText(), nullable=False),
        sa.Column("resubmitted_at", UtcDateTime(), nullable=True),
        sa.Column("resubmitted_by", _name(256), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_messages")),
    )
    op.create_table(
        "idempotent_answers",
        sa.Column("id", _ID, nullable=False),
        sa.Column("actor", _name(256), nullable=False),
        sa.Column("idempotency_key", _name(256), nullable=False),
        sa.Column("request_hash", _code(64), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=False),
        sa.Column("body", sa.UnicodeText(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_idempotent_answers")),
        sa.UniqueConstraint("actor", "idempotency_key", name=op.f("uq_idempotent_answers_actor_idempotency_key")),
    )
    op.create_index("ix_idempotent_answers_age", "idempotent_answers", ["created_at"], unique=False)
    op.create_table(
        "init_executions",
        sa.Column("id", _ID, nullable=False),
        sa.Column("batch_id", _ID, nullable=False),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("step_name", _name(256), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("worker_id", _name(256), nullable=False),
        sa.Column("function_name", _name(256), nullable=False),
        sa.Column("params_json", sa.UnicodeText(), nullable=True),
        sa.Column("status", _code(32), server_default="pending", nullable=False),
        sa.Column("job_id", _code(128), nullable=True),
        sa.Column("job_out", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("job_not_after", UtcDateTime(), nullable=True),
        sa.Column("first_dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("completed_at", UtcDateTime(), nullable=True),
        sa.Column("result_json", sa.UnicodeText(), nullable=True),
        sa.Column("error_message", sa.UnicodeText(), nullable=True),
        sa.Column("timeout_sec", sa.Integer(), nullable=False),
        sa.Column("on_failure", _name(256), nullable=True),
        sa.Column("is_poll_step", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("poll_interval_sec", sa.Integer(), nullable=True),
        sa.Column("poll_timeout_sec", sa.Integer(), nullable=True),
        sa.Column("poll_started_at", UtcDateTime(), nullable=True),
        sa.Column("last_polled_at", UtcDateTime(), nullable=True),
        sa.Column("poll_check_at", UtcDateTime(), nullable=True),
        sa.Column("poll_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_retries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_interval_sec", sa.Integer(), nullable=True),
        sa.Column("retry_after", UtcDateTime(), nullable=True),
        sa.Column("rollback_status", _code(32), nullable=True),
        sa.CheckConstraint(
            "rollback_status IN ('running', 'succeeded', 'failed')", name=op.f("ck_init_executions_rollback_status")
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'dispatched', 'succeeded', 'failed', 'polling', 'poll_timeout', 'cancelled')",
            name=op.f("ck_init_executions_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_init_executions")),
        sa.UniqueConstraint(
            "batch_id",
            "runbook_version",
            "step_index",
            name=op.f("uq_init_executions_batch_id_runbook_version_step_index"),
        ),
    )
    op.create_index(
        "ix_init_executions_out", "init_executions", ["job_not_after"], unique=False, **_where("job_out = true")
    )
    op.create_index(
        "ix_init_executions_poll", "init_executions", ["poll_check_at"], unique=False, **_where("status = 'polling'")
    )
    op.create_table(
        "leases",
        sa.Column("name", _code(64), nullable=False),
        sa.Column("holder", _name(256), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", _ID, nullable=False),
        sa.Column("topic", _code(128), nullable=False),
        sa.Column("message_id", _code(128), nullable=True),
        sa.Column("properties", sa.UnicodeText(), nullable=False),
        sa.Column("body", sa.UnicodeText(), nullable=False),
        sa.Column("deliver_at", sa.BigInteger(), nullable=True),
        sa.Column("time_to_live_ms", sa.BigInteger(), nullable=True),
        sa.Column("taken_until", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("written_at", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_unsent", "outbox", ["id"], unique=False, **_where("sequence IS NULL"))
    op.create_table(
        "runbook_automation_settings",
        sa.Column("runbook_name", _name(256), nullable=False),
        sa.Column("automation_enabled", sa.Boolean(), nullable=False),
        sa.Column("enabled_at", UtcDateTime(), nullable=True),
        sa.Column("enabled_by", _name(256), nullable=True),
        sa.Column("disabled_at", UtcDateTime(), nullable=True),
        sa.Column("disabled_by", _name(256), nullable=True),
        sa.PrimaryKeyConstraint("runbook_name", name=op.f("pk_runbook_automation_settings")),
    )
    op.create_table(
        "runbooks",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", _name(256), nullable=False),
        sa.Column("name_folded", _name(256), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("yaml_content", sa.UnicodeText(), nullable=False),
        sa.Column("data_table_name", _name(256), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("overdue_behavior", _code(16), server_default="rerun", nullable=False),
        sa.Column("ignore_overdue_applied", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("rerun_init", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("published_by", _name(256), nullable=True),
        sa.Column("last_error", sa.UnicodeText(), nullable=True),
        sa.Column("last_error_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint("overdue_behavior IN ('rerun', 'ignore')", name=op.f("ck_runbooks_overdue_behavior")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runbooks")),
        sa.UniqueConstraint("name_folded", "version", name=op.f("uq_runbooks_name_folded_version")),
    )
    op.create_index("ux_runbooks_active", "runbooks", ["name_folded"], unique=True, **_where("is_active = true"))
    op.create_table(
        "batches",
        sa.Column("id", _ID, nullable=False),
        sa.Column("runbook_id", _ID, nullable=False),
        sa.Column("runbook_name_folded", _name(256), nullable=False),
        sa.Column("batch_start_time", UtcDateTime(), nullable=True),
        sa.Column("status", _code(32), server_default="detected", nullable=False),
        sa.Column("detected_at", UtcDateTime(), nullable=False),
        sa.Column("loaded_at", UtcDateTime(), nullable=True),
        sa.Column("init_dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("completed_at", UtcDateTime(), nullable=True),
        sa.Column("is_manual", sa.Boolean(), nullable=False),
        sa.Column("created_by", _name(256), nullable=True),
        sa.Column("cancelled_by", _name(256), nullable=True),
        sa.Column("current_phase", _name(256), nullable=True),
        sa.Column("rerunning_init_version", sa.Integer(), nullable=True),
        sa.Column("winding_up", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.CheckConstraint(
            "status IN ('detected', 'init_dispatched', 'active', 'completed', 'failed', 'cancelled')",
            name=op.f("ck_batches_status"),
        ),
        sa.ForeignKeyConstraint(["runbook_id"], ["runbooks.id"], name=op.f("fk_batches_runbook_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
    )
    op.create_index(
        "ix_batches_open",
        "batches",
        ["status"],
        unique=False,
        **_where("status IN ('detected', 'init_dispatched', 'active')"),
    )
    op.create_index(
        "ux_batches_start",
        "batches",
        ["runbook_name_folded", "batch_start_time"],
        unique=True,
        **_where("is_manual = false"),
    )
    op.create_table(
        "batch_members",
        sa.Column("id", _ID, nullable=False),
        sa.Column("batch_id", _ID, nullable=False),
        sa.Column("member_key", _name(512), nullable=False),
        sa.Column("member_key_folded", _name(512), nullable=False),
        sa.Column("data_json", sa.UnicodeText(), nullable=False),
        sa.Column("worker_data_json", sa.UnicodeText(), nullable=True),
        sa.Column("status", _code(32), server_default="active", nullable=False),
        sa.Column("generation", sa.Integer(), server_default="1", nullable=False),
        sa.Column("added_at", UtcDateTime(), nullable=False),
        sa.Column("removed_at", UtcDateTime(), nullable=True),
        sa.Column("removed_by", _name(256), nullable=True),
        sa.Column("failed_at", UtcDateTime(), nullable=True),
        sa.Column("completed_at", UtcDateTime(), nullable=True),
        sa.Column("add_dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("remove_dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("catch_up_due", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("removal_due", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("removal_held_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint(
            "status IN ('active', 'completed', 'removed', 'failed')", name=op.f("ck_batch_members_status")
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_batch_members_batch_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch_members")),
        sa.UniqueConstraint("batch_id", "member_key_folded", name=op.f("uq_batch_members_batch_id_member_key_folded")),
    )
    op.create_index("ix_batch_members_batch", "batch_members", ["batch_id", "id"], unique=False)
    op.create_index(
        "ix_batch_members_held", "batch_members", ["batch_id"], unique=False, **_where("removal_held_at IS NOT NULL")
    )
    op.create_index("ix_batch_members_key", "batch_members", ["member_key_folded"], unique=False)
    op.create_index("ix_batch_members_leaving", "batch_members", ["id"], unique=False, **_where("removal_due = true"))
    op.create_index("ix_batch_members_owed", "batch_members", ["id"], unique=False, **_where("catch_up_due = true"))
    op.create_index("ix_batch_members_status", "batch_members", ["batch_id", "status", "id"], unique=False)
    op.create_table(
        "phase_executions",
        sa.Column("id", _ID, nullable=False),
        sa.Column("batch_id", _ID, nullable=False),
        sa.Column("phase_name", _name(256), nullable=False),
        sa.Column("offset_minutes", sa.Integer(), nullable=False),
        sa.Column("due_at", UtcDateTime(), nullable=True),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("status", _code(32), server_default="pending", nullable=False),
        sa.Column("skip_reason", _code(32), nullable=True),
        sa.Column("dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("completed_at", UtcDateTime(), nullable=True),
        sa.Column("expanded_to_member_id", _ID, server_default="0", nullable=False),
        sa.Column("expansion_moved_at", UtcDateTime(), nullable=True),
        sa.Column("expanded_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint(
            "skip_reason IN ('empty', 'overdue', 'repeated', 'init_failed')",
            name=op.f("ck_phase_executions_skip_reason"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'dispatched', 'completed', 'failed', 'skipped', 'superseded', 'cancelled')",
            name=op.f("ck_phase_executions_status"),
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_phase_executions_batch_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_phase_executions")),
        sa.UniqueConstraint(
            "batch_id",
            "runbook_version",
            "phase_name",
            name=op.f("uq_phase_executions_batch_id_runbook_version_phase_name"),
        ),
    )
    op.create_index(
        "ix_phase_executions_due", "phase_executions", ["due_at"], unique=False, **_where("status = 'pending'")
    )
    op.create_index(
        "ix_phase_executions_running", "phase_executions", ["batch_id"], unique=False, **_where("status = 'dispatched'")
    )
    op.create_table(
        "removal_executions",
        sa.Column("id", _ID, nullable=False),
        sa.Column("batch_id", _ID, nullable=False),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("step_name", _name(256), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("worker_id", _name(256), nullable=False),
        sa.Column("function_name", _name(256), nullable=False),
        sa.Column("params_json", sa.UnicodeText(), nullable=True),
        sa.Column("status", _code(32), server_default="pending", nullable=False),
        sa.Column("job_id", _code(128), nullable=True),
        sa.Column("job_out", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("job_not_after", UtcDateTime(), nullable=True),
        sa.Column("first_dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("completed_at", UtcDateTime(), nullable=True),
        sa.Column("result_json", sa.UnicodeText(), nullable=True),
        sa.Column("error_message", sa.UnicodeText(), nullable=True),
        sa.Column("timeout_sec", sa.Integer(), nullable=False),
        sa.Column("on_failure", _name(256), nullable=True),
        sa.Column("is_poll_step", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("poll_interval_sec", sa.Integer(), nullable=True),
        sa.Column("poll_timeout_sec", sa.Integer(), nullable=True),
        sa.Column("poll_started_at", UtcDateTime(), nullable=True),
        sa.Column("last_polled_at", UtcDateTime(), nullable=True),
        sa.Column("poll_check_at", UtcDateTime(), nullable=True),
        sa.Column("poll_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_retries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_interval_sec", sa.Integer(), nullable=True),
        sa.Column("retry_after", UtcDateTime(), nullable=True),
        sa.Column("batch_member_id", _ID, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'dispatched', 'succeeded', 'failed', 'polling', 'poll_timeout', 'cancelled')",
            name=op.f("ck_removal_executions_status"),
        ),
        sa.ForeignKeyConstraint(
            ["batch_member_id"], ["batch_members.id"], name=op.f("fk_removal_executions_batch_member_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_removal_executions")),
        sa.UniqueConstraint(
            "batch_member_id",
            "generation",
            "step_index",
            name=op.f("uq_removal_executions_batch_member_id_generation_step_index"),
        ),
    )
    op.create_index("ix_removal_executions_batch", "removal_executions", ["batch_id", "id"], unique=False)
    op.create_index(
        "ix_removal_executions_open",
        "removal_executions",
        ["batch_member_id"],
        unique=False,
        **_where("status IN ('pending', 'dispatched', 'polling')"),
    )
    op.create_index(
        "ix_removal_executions_out", "removal_executions", ["job_not_after"], unique=False, **_where("job_out = true")
    )
    op.create_index(
        "ix_removal_executions_poll",
        "removal_executions",
        ["poll_check_at"],
        unique=False,
        **_where("status = 'polling'"),
    )
    op.create_table(
        "step_executions",
        sa.Column("id", _ID, nullable=False),
        sa.Column("batch_id", _ID, nullable=False),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("step_name", _name(256), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("worker_id", _name(256), nullable=False),
        sa.Column("function_name", _name(256), nullable=False),
        sa.Column("params_json", sa.UnicodeText(), nullable=True),
        sa.Column("status", _code(32), server_default="pending", nullable=False),
        sa.Column("job_id", _code(128), nullable=True),
        sa.Column("job_out", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("job_not_after", UtcDateTime(), nullable=True),
        sa.Column("first_dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("completed_at", UtcDateTime(), nullable=True),
        sa.Column("result_json", sa.UnicodeText(), nullable=True),
        sa.Column("error_message", sa.UnicodeText(), nullable=True),
        sa.Column("timeout_sec", sa.Integer(), nullable=False),
        sa.Column("on_failure", _name(256), nullable=True),
        sa.Column("is_poll_step", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("poll_interval_sec", sa.Integer(), nullable=True),
        sa.Column("poll_timeout_sec", sa.Integer(), nullable=True),
        sa.Column("poll_started_at", UtcDateTime(), nullable=True),
        sa.Column("last_polled_at", UtcDateTime(), nullable=True),
        sa.Column("poll_check_at", UtcDateTime(), nullable=True),
        sa.Column("poll_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_retries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_interval_sec", sa.Integer(), nullable=True),
        sa.Column("retry_after", UtcDateTime(), nullable=True),
        sa.Column("phase_execution_id", _ID, nullable=False),
        sa.Column("batch_member_id", _ID, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("rollback_status", _code(32), nullable=True),
        sa.CheckConstraint(
            "rollback_status IN ('running', 'succeeded', 'failed')", name=op.f("ck_step_executions_rollback_status")
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'dispatched', 'succeeded', 'failed', 'polling', 'poll_timeout', 'cancelled')",
            name=op.f("ck_step_executions_status"),
        ),
        sa.ForeignKeyConstraint(
            ["batch_member_id"], ["batch_members.id"], name=op.f("fk_step_executions_batch_member_id")
        ),
        sa.ForeignKeyConstraint(
            ["phase_execution_id"], ["phase_executions.id"], name=op.f("fk_step_executions_phase_execution_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step_executions")),
    )
    op.create_index("ix_step_executions_batch", "step_executions", ["batch_id", "id"], unique=False)
    op.create_index(
        "ix_step_executions_failed",
        "step_executions",
        ["batch_id", "id"],
        unique=False,
        **_where("status IN ('failed', 'poll_timeout')"),
    )
    op.create_index(
        "ix_step_executions_open",
        "step_executions",
        ["phase_execution_id"],
        unique=False,
        **_where("status IN ('pending', 'dispatched', 'polling')"),
    )
    op.create_index(
        "ix_step_executions_poll", "step_executions", ["poll_check_at"], unique=False, **_where("status = 'polling'")
    )
    op.create_index(
        "ux_step_executions_in_flight", "step_executions", ["batch_member_id"], unique=True, **_where("job_out = true")
    )
    op.create_index(
        "ux_step_executions_place",
        "step_executions",
        ["batch_member_id", "phase_execution_id", "generation", "step_index"],
        unique=True,
    )
    op.create_table(
        "rollback_executions",
        sa.Column("id", _ID, nullable=False),
        sa.Column("batch_id", _ID, nullable=False),
        sa.Column("runbook_version", sa.Integer(), nullable=False),
        sa.Column("step_name", _name(256), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("worker_id", _name(256), nullable=False),
        sa.Column("function_name", _name(256), nullable=False),
        sa.Column("params_json", sa.UnicodeText(), nullable=True),
        sa.Column("status", _code(32), server_default="pending", nullable=False),
        sa.Column("job_id", _code(128), nullable=True),
        sa.Column("job_out", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("job_not_after", UtcDateTime(), nullable=True),
        sa.Column("first_dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("dispatched_at", UtcDateTime(), nullable=True),
        sa.Column("completed_at", UtcDateTime(), nullable=True),
        sa.Column("result_json", sa.UnicodeText(), nullable=True),
        sa.Column("error_message", sa.UnicodeText(), nullable=True),
        sa.Column("timeout_sec", sa.Integer(), nullable=False),
        sa.Column("on_failure", _name(256), nullable=True),
        sa.Column("is_poll_step", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("poll_interval_sec", sa.Integer(), nullable=True),
        sa.Column("poll_timeout_sec", sa.Integer(), nullable=True),
        sa.Column("poll_started_at", UtcDateTime(), nullable=True),
        sa.Column("last_polled_at", UtcDateTime(), nullable=True),
        sa.Column("poll_check_at", UtcDateTime(), nullable=True),
        sa.Column("poll_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_retries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_interval_sec", sa.Integer(), nullable=True),
        sa.Column("retry_after", UtcDateTime(), nullable=True),
        sa.Column("rollback_name", _name(256), nullable=False),
        sa.Column("step_execution_id", _ID, nullable=True),
        sa.Column("init_execution_id", _ID, nullable=True),
        sa.Column("batch_member_id", _ID, nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'dispatched', 'succeeded', 'failed', 'polling', 'poll_timeout', 'cancelled')",
            name=op.f("ck_rollback_executions_status"),
        ),
        sa.CheckConstraint(
            "(step_execution_id IS NULL AND init_execution_id IS NOT NULL) OR "
            "(step_execution_id IS NOT NULL AND init_execution_id IS NULL)",
            name=op.f("ck_rollback_executions_one_parent"),
        ),
        sa.ForeignKeyConstraint(
            ["batch_member_id"], ["batch_members.id"], name=op.f("fk_rollback_executions_batch_member_id")
        ),
        sa.ForeignKeyConstraint(
            ["init_execution_id"], ["init_executions.id"], name=op.f("fk_rollback_executions_init_execution_id")
        ),
        sa.ForeignKeyConstraint(
            ["step_execution_id"], ["step_executions.id"], name=op.f("fk_rollback_executions_step_execution_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollback_executions")),
    )
    op.create_index("ix_rollback_executions_batch", "rollback_executions", ["batch_id", "id"], unique=False)
    op.create_index(
        "ix_rollback_executions_open",
        "rollback_executions",
        ["batch_member_id"],
        unique=False,
        **_where("status IN ('pending', 'dispatched', 'polling')"),
    )
    op.create_index(
        "ix_rollback_executions_out", "rollback_executions", ["job_not_after"], unique=False, **_where("job_out = true")
    )
    op.create_index(
        "ix_rollback_executions_poll",
        "rollback_executions",
        ["poll_check_at"],
        unique=False,
        **_where("status = 'polling'"),
    )
    op.create_index(
        "ux_rollback_executions_init",
        "rollback_executions",
        ["init_execution_id", "step_index"],
        unique=True,
        **_where("init_execution_id IS NOT NULL"),
    )
    op.create_index(
        "ux_rollback_executions_step",
        "rollback_executions",
        ["step_execution_id", "step_index"],
        unique=True,
        **_where("step_execution_id IS NOT NULL"),
    )
    if op.get_context().dialect.name == "mssql":
        # Of a set of some thousand rows, a lock on the whole table would come otherwise.
        for table in ("batch_members", "step_executions", "rollback_executions", "removal_executions", "outbox"):
            op.execute(f"ALTER TABLE {table} SET (LOCK_ESCALATION = DISABLE)")
