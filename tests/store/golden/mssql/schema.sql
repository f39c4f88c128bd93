SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;

GO

BEGIN TRANSACTION;

CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

GO

-- Running upgrade  -> 0001

CREATE TABLE audit (
    id BIGINT NOT NULL IDENTITY, 
    at DATETIME2(6) NOT NULL, 
    actor NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    action VARCHAR(64) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    target NVARCHAR(512) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    batch_id BIGINT NULL, 
    detail_json NVARCHAR(max) NULL, 
    CONSTRAINT pk_audit PRIMARY KEY (id)
);

GO

CREATE INDEX ix_audit_batch ON audit (batch_id, id);

GO

CREATE TABLE bus_message_ids (
    topic_id BIGINT NOT NULL, 
    message_id VARCHAR(128) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    until BIGINT NOT NULL, 
    CONSTRAINT pk_bus_message_ids PRIMARY KEY (topic_id, message_id)
);

GO

CREATE INDEX ix_bus_message_ids_until ON bus_message_ids (until);

GO

CREATE TABLE bus_messages (
    id BIGINT NOT NULL IDENTITY, 
    subscription_id BIGINT NOT NULL, 
    available_at BIGINT NOT NULL, 
    delivery_count INTEGER NOT NULL DEFAULT '0', 
    enqueued_at BIGINT NOT NULL, 
    expires_at BIGINT NOT NULL, 
    dead_at BIGINT NULL, 
    dead_reason VARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    dead_description NVARCHAR(max) NULL, 
    message_id VARCHAR(128) COLLATE Latin1_General_100_BIN2 NULL, 
    properties NVARCHAR(max) NOT NULL, 
    body NVARCHAR(max) NOT NULL, 
    CONSTRAINT pk_bus_messages PRIMARY KEY (id)
);

GO

CREATE INDEX ix_bus_messages_available ON bus_messages (subscription_id, available_at, id) WHERE dead_at IS NULL;

GO

CREATE INDEX ix_bus_messages_dead ON bus_messages (subscription_id, id) WHERE dead_at IS NOT NULL;

GO

CREATE INDEX ix_bus_messages_expires ON bus_messages (expires_at) WHERE dead_at IS NULL;

GO

CREATE TABLE bus_subscriptions (
    id BIGINT NOT NULL IDENTITY, 
    topic_id BIGINT NOT NULL, 
    name VARCHAR(128) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    filter_property VARCHAR(64) COLLATE Latin1_General_100_BIN2 NULL, 
    filter_value VARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    lock_ms BIGINT NOT NULL, 
    max_delivery_count INTEGER NOT NULL, 
    CONSTRAINT pk_bus_subscriptions PRIMARY KEY (id), 
    CONSTRAINT uq_bus_subscriptions_topic_id_name UNIQUE (topic_id, name)
);

GO

CREATE TABLE bus_topics (
    id BIGINT NOT NULL IDENTITY, 
    name VARCHAR(128) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    time_to_live_ms BIGINT NOT NULL, 
    duplicate_window_ms BIGINT NOT NULL, 
    CONSTRAINT pk_bus_topics PRIMARY KEY (id), 
    CONSTRAINT uq_bus_topics_name UNIQUE (name)
);

GO

CREATE TABLE dead_messages (
    id BIGINT NOT NULL IDENTITY, 
    at DATETIME2(6) NOT NULL, 
    topic VARCHAR(128) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    message_id VARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    message_type VARCHAR(64) COLLATE Latin1_General_100_BIN2 NULL, 
    reason NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    error NVARCHAR(max) NULL, 
    properties_json NVARCHAR(max) NOT NULL, 
    body NVARCHAR(max) NOT NULL, 
    resubmitted_at DATETIME2(6) NULL, 
    resubmitted_by NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    CONSTRAINT pk_dead_messages PRIMARY KEY (id)
);

GO

CREATE TABLE idempotent_answers (
    id BIGINT NOT NULL IDENTITY, 
    actor NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    idempotency_key NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    request_hash VARCHAR(64) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    status_code INTEGER NOT NULL, 
    body NVARCHAR(max) NOT NULL, 
    created_at DATETIME2(6) NOT NULL, 
    CONSTRAINT pk_idempotent_answers PRIMARY KEY (id), 
    CONSTRAINT uq_idempotent_answers_actor_idempotency_key UNIQUE (actor, idempotency_key)
);

GO

CREATE INDEX ix_idempotent_answers_age ON idempotent_answers (created_at);

GO

CREATE TABLE init_executions (
    id BIGINT NOT NULL IDENTITY, 
    batch_id BIGINT NOT NULL, 
    runbook_version INTEGER NOT NULL, 
    step_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    step_index INTEGER NOT NULL, 
    worker_id NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    function_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    params_json NVARCHAR(max) NULL, 
    status VARCHAR(32) COLLATE Latin1_General_100_BIN2 NOT NULL DEFAULT 'pending', 
    job_id VARCHAR(128) COLLATE Latin1_General_100_BIN2 NULL, 
    job_out BIT NOT NULL DEFAULT 0, 
    job_not_after DATETIME2(6) NULL, 
    first_dispatched_at DATETIME2(6) NULL, 
    dispatched_at DATETIME2(6) NULL, 
    completed_at DATETIME2(6) NULL, 
    result_json NVARCHAR(max) NULL, 
    error_message NVARCHAR(max) NULL, 
    timeout_sec INTEGER NOT NULL, 
    on_failure NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    is_poll_step BIT NOT NULL DEFAULT 0, 
    poll_interval_sec INTEGER NULL, 
    poll_timeout_sec INTEGER NULL, 
    poll_started_at DATETIME2(6) NULL, 
    last_polled_at DATETIME2(6) NULL, 
    poll_check_at DATETIME2(6) NULL, 
    poll_count INTEGER NOT NULL DEFAULT '0', 
    retry_count INTEGER NOT NULL DEFAULT '0', 
    max_retries INTEGER NOT NULL DEFAULT '0', 
    retry_interval_sec INTEGER NULL, 
    retry_after DATETIME2(6) NULL, 
    rollback_status VARCHAR(32) COLLATE Latin1_General_100_BIN2 NULL, 
    CONSTRAINT pk_init_executions PRIMARY KEY (id), 
    CONSTRAINT ck_init_executions_rollback_status CHECK (rollback_status IN ('running', 'succeeded', 'failed')), 
    CONSTRAINT ck_init_executions_status CHECK (status IN ('pending', 'dispatched', 'succeeded', 'failed', 'polling', 'poll_timeout', 'cancelled')), 
    CONSTRAINT uq_init_executions_batch_id_runbook_version_step_index UNIQUE (batch_id, runbook_version, step_index)
);

GO

CREATE INDEX ix_init_executions_out ON init_executions (job_not_after) WHERE job_out = 1;

GO

CREATE INDEX ix_init_executions_poll ON init_executions (poll_check_at) WHERE status = 'polling';

GO

CREATE TABLE leases (
    name VARCHAR(64) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    holder NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    expires_at DATETIME2(6) NOT NULL, 
    CONSTRAINT pk_leases PRIMARY KEY (name)
);

GO

CREATE TABLE outbox (
    id BIGINT NOT NULL IDENTITY, 
    topic VARCHAR(128) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    message_id VARCHAR(128) COLLATE Latin1_General_100_BIN2 NULL, 
    properties NVARCHAR(max) NOT NULL, 
    body NVARCHAR(max) NOT NULL, 
    deliver_at BIGINT NULL, 
    time_to_live_ms BIGINT NULL, 
    taken_until BIGINT NOT NULL DEFAULT '0', 
    written_at BIGINT NOT NULL, 
    sequence BIGINT NULL, 
    CONSTRAINT pk_outbox PRIMARY KEY (id)
);

GO

CREATE INDEX ix_outbox_unsent ON outbox (id) WHERE sequence IS NULL;

GO

CREATE TABLE runbook_automation_settings (
    runbook_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    automation_enabled BIT NOT NULL, 
    enabled_at DATETIME2(6) NULL, 
    enabled_by NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    disabled_at DATETIME2(6) NULL, 
    disabled_by NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    CONSTRAINT pk_runbook_automation_settings PRIMARY KEY (runbook_name)
);

GO

CREATE TABLE runbooks (
    id BIGINT NOT NULL IDENTITY, 
    name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    name_folded NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    version INTEGER NOT NULL, 
    yaml_content NVARCHAR(max) NOT NULL, 
    data_table_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    is_active BIT NOT NULL, 
    overdue_behavior VARCHAR(16) COLLATE Latin1_General_100_BIN2 NOT NULL DEFAULT 'rerun', 
    ignore_overdue_applied BIT NOT NULL DEFAULT 0, 
    rerun_init BIT NOT NULL DEFAULT 0, 
    created_at DATETIME2(6) NOT NULL, 
    published_by NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    last_error NVARCHAR(max) NULL, 
    last_error_at DATETIME2(6) NULL, 
    CONSTRAINT pk_runbooks PRIMARY KEY (id), 
    CONSTRAINT ck_runbooks_overdue_behavior CHECK (overdue_behavior IN ('rerun', 'ignore')), 
    CONSTRAINT uq_runbooks_name_folded_version UNIQUE (name_folded, version)
);

GO

CREATE UNIQUE INDEX ux_runbooks_active ON runbooks (name_folded) WHERE is_active = 1;

GO

CREATE TABLE batches (
    id BIGINT NOT NULL IDENTITY, 
    runbook_id BIGINT NOT NULL, 
    runbook_name_folded NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    batch_start_time DATETIME2(6) NULL, 
    status VARCHAR(32) COLLATE Latin1_General_100_BIN2 NOT NULL DEFAULT 'detected', 
    detected_at DATETIME2(6) NOT NULL, 
    loaded_at DATETIME2(6) NULL, 
    init_dispatched_at DATETIME2(6) NULL, 
    started_at DATETIME2(6) NULL, 
    completed_at DATETIME2(6) NULL, 
    is_manual BIT NOT NULL, 
    created_by NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    cancelled_by NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    current_phase NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    rerunning_init_version INTEGER NULL, 
    winding_up BIT NOT NULL DEFAULT 0, 
    CONSTRAINT pk_batches PRIMARY KEY (id), 
    CONSTRAINT ck_batches_status CHECK (status IN ('detected', 'init_dispatched', 'active', 'completed', 'failed', 'cancelled')), 
    CONSTRAINT fk_batches_runbook_id FOREIGN KEY(runbook_id) REFERENCES runbooks (id)
);

GO

CREATE INDEX ix_batches_open ON batches (status) WHERE status IN ('detected', 'init_dispatched', 'active');

GO

CREATE UNIQUE INDEX ux_batches_start ON batches (runbook_name_folded, batch_start_time) WHERE is_manual = 0;

GO

CREATE TABLE batch_members (
    id BIGINT NOT NULL IDENTITY, 
    batch_id BIGINT NOT NULL, 
    member_key NVARCHAR(512) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    member_key_folded NVARCHAR(512) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    data_json NVARCHAR(max) NOT NULL, 
    worker_data_json NVARCHAR(max) NULL, 
    status VARCHAR(32) COLLATE Latin1_General_100_BIN2 NOT NULL DEFAULT 'active', 
    generation INTEGER NOT NULL DEFAULT '1', 
    added_at DATETIME2(6) NOT NULL, 
    removed_at DATETIME2(6) NULL, 
    removed_by NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    failed_at DATETIME2(6) NULL, 
    completed_at DATETIME2(6) NULL, 
    add_dispatched_at DATETIME2(6) NULL, 
    remove_dispatched_at DATETIME2(6) NULL, 
    catch_up_due BIT NOT NULL DEFAULT 0, 
    removal_due BIT NOT NULL DEFAULT 0, 
    removal_held_at DATETIME2(6) NULL, 
    CONSTRAINT pk_batch_members PRIMARY KEY (id), 
    CONSTRAINT ck_batch_members_status CHECK (status IN ('active', 'completed', 'removed', 'failed')), 
    CONSTRAINT fk_batch_members_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id), 
    CONSTRAINT uq_batch_members_batch_id_member_key_folded UNIQUE (batch_id, member_key_folded)
);

GO

CREATE INDEX ix_batch_members_batch ON batch_members (batch_id, id);

GO

CREATE INDEX ix_batch_members_held ON batch_members (batch_id) WHERE removal_held_at IS NOT NULL;

GO

CREATE INDEX ix_batch_members_key ON batch_members (member_key_folded);

GO

CREATE INDEX ix_batch_members_leaving ON batch_members (id) WHERE removal_due = 1;

GO

CREATE INDEX ix_batch_members_owed ON batch_members (id) WHERE catch_up_due = 1;

GO

CREATE INDEX ix_batch_members_status ON batch_members (batch_id, status, id);

GO

CREATE TABLE phase_executions (
    id BIGINT NOT NULL IDENTITY, 
    batch_id BIGINT NOT NULL, 
    phase_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    offset_minutes INTEGER NOT NULL, 
    due_at DATETIME2(6) NULL, 
    runbook_version INTEGER NOT NULL, 
    status VARCHAR(32) COLLATE Latin1_General_100_BIN2 NOT NULL DEFAULT 'pending', 
    skip_reason VARCHAR(32) COLLATE Latin1_General_100_BIN2 NULL, 
    dispatched_at DATETIME2(6) NULL, 
    completed_at DATETIME2(6) NULL, 
    expanded_to_member_id BIGINT NOT NULL DEFAULT '0', 
    expansion_moved_at DATETIME2(6) NULL, 
    expanded_at DATETIME2(6) NULL, 
    CONSTRAINT pk_phase_executions PRIMARY KEY (id), 
    CONSTRAINT ck_phase_executions_skip_reason CHECK (skip_reason IN ('empty', 'overdue', 'repeated', 'init_failed')), 
    CONSTRAINT ck_phase_executions_status CHECK (status IN ('pending', 'dispatched', 'completed', 'failed', 'skipped', 'superseded', 'cancelled')), 
    CONSTRAINT fk_phase_executions_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id), 
    CONSTRAINT uq_phase_executions_batch_id_runbook_version_phase_name UNIQUE (batch_id, runbook_version, phase_name)
);

GO

CREATE INDEX ix_phase_executions_due ON phase_executions (due_at) WHERE status = 'pending';

GO

CREATE INDEX ix_phase_executions_running ON phase_executions (batch_id) WHERE status = 'dispatched';

GO

CREATE TABLE removal_executions (
    id BIGINT NOT NULL IDENTITY, 
    batch_id BIGINT NOT NULL, 
    runbook_version INTEGER NOT NULL, 
    step_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    step_index INTEGER NOT NULL, 
    worker_id NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    function_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    params_json NVARCHAR(max) NULL, 
    status VARCHAR(32) COLLATE Latin1_General_100_BIN2 NOT NULL DEFAULT 'pending', 
    job_id VARCHAR(128) COLLATE Latin1_General_100_BIN2 NULL, 
    job_out BIT NOT NULL DEFAULT 0, 
    job_not_after DATETIME2(6) NULL, 
    first_dispatched_at DATETIME2(6) NULL, 
    dispatched_at DATETIME2(6) NULL, 
    completed_at DATETIME2(6) NULL, 
    result_json NVARCHAR(max) NULL, 
    error_message NVARCHAR(max) NULL, 
    timeout_sec INTEGER NOT NULL, 
    on_failure NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    is_poll_step BIT NOT NULL DEFAULT 0, 
    poll_interval_sec INTEGER NULL, 
    poll_timeout_sec INTEGER NULL, 
    poll_started_at DATETIME2(6) NULL, 
    last_polled_at DATETIME2(6) NULL, 
    poll_check_at DATETIME2(6) NULL, 
    poll_count INTEGER NOT NULL DEFAULT '0', 
    retry_count INTEGER NOT NULL DEFAULT '0', 
    max_retries INTEGER NOT NULL DEFAULT '0', 
    retry_interval_sec INTEGER NULL, 
    retry_after DATETIME2(6) NULL, 
    batch_member_id BIGINT NOT NULL, 
    generation INTEGER NOT NULL, 
    CONSTRAINT pk_removal_executions PRIMARY KEY (id), 
    CONSTRAINT ck_removal_executions_status CHECK (status IN ('pending', 'dispatched', 'succeeded', 'failed', 'polling', 'poll_timeout', 'cancelled')), 
    CONSTRAINT fk_removal_executions_batch_member_id FOREIGN KEY(batch_member_id) REFERENCES batch_members (id), 
    CONSTRAINT uq_removal_executions_batch_member_id_generation_step_index UNIQUE (batch_member_id, generation, step_index)
);

GO

CREATE INDEX ix_removal_executions_batch ON removal_executions (batch_id, id);

GO

CREATE INDEX ix_removal_executions_open ON removal_executions (batch_member_id) WHERE status IN ('pending', 'dispatched', 'polling');

GO

CREATE INDEX ix_removal_executions_out ON removal_executions (job_not_after) WHERE job_out = 1;

GO

CREATE INDEX ix_removal_executions_poll ON removal_executions (poll_check_at) WHERE status = 'polling';

GO

CREATE TABLE step_executions (
    id BIGINT NOT NULL IDENTITY, 
    batch_id BIGINT NOT NULL, 
    runbook_version INTEGER NOT NULL, 
    step_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    step_index INTEGER NOT NULL, 
    worker_id NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    function_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    params_json NVARCHAR(max) NULL, 
    status VARCHAR(32) COLLATE Latin1_General_100_BIN2 NOT NULL DEFAULT 'pending', 
    job_id VARCHAR(128) COLLATE Latin1_General_100_BIN2 NULL, 
    job_out BIT NOT NULL DEFAULT 0, 
    job_not_after DATETIME2(6) NULL, 
    first_dispatched_at DATETIME2(6) NULL, 
    dispatched_at DATETIME2(6) NULL, 
    completed_at DATETIME2(6) NULL, 
    result_json NVARCHAR(max) NULL, 
    error_message NVARCHAR(max) NULL, 
    timeout_sec INTEGER NOT NULL, 
    on_failure NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    is_poll_step BIT NOT NULL DEFAULT 0, 
    poll_interval_sec INTEGER NULL, 
    poll_timeout_sec INTEGER NULL, 
    poll_started_at DATETIME2(6) NULL, 
    last_polled_at DATETIME2(6) NULL, 
    poll_check_at DATETIME2(6) NULL, 
    poll_count INTEGER NOT NULL DEFAULT '0', 
    retry_count INTEGER NOT NULL DEFAULT '0', 
    max_retries INTEGER NOT NULL DEFAULT '0', 
    retry_interval_sec INTEGER NULL, 
    retry_after DATETIME2(6) NULL, 
    phase_execution_id BIGINT NOT NULL, 
    batch_member_id BIGINT NOT NULL, 
    generation INTEGER NOT NULL, 
    rollback_status VARCHAR(32) COLLATE Latin1_General_100_BIN2 NULL, 
    CONSTRAINT pk_step_executions PRIMARY KEY (id), 
    CONSTRAINT ck_step_executions_rollback_status CHECK (rollback_status IN ('running', 'succeeded', 'failed')), 
    CONSTRAINT ck_step_executions_status CHECK (status IN ('pending', 'dispatched', 'succeeded', 'failed', 'polling', 'poll_timeout', 'cancelled')), 
    CONSTRAINT fk_step_executions_batch_member_id FOREIGN KEY(batch_member_id) REFERENCES batch_members (id), 
    CONSTRAINT fk_step_executions_phase_execution_id FOREIGN KEY(phase_execution_id) REFERENCES phase_executions (id)
);

GO

CREATE INDEX ix_step_executions_batch ON step_executions (batch_id, id);

GO

CREATE INDEX ix_step_executions_failed ON step_executions (batch_id, id) WHERE status IN ('failed', 'poll_timeout');

GO

CREATE INDEX ix_step_executions_open ON step_executions (phase_execution_id) WHERE status IN ('pending', 'dispatched', 'polling');

GO

CREATE INDEX ix_step_executions_poll ON step_executions (poll_check_at) WHERE status = 'polling';

GO

CREATE UNIQUE INDEX ux_step_executions_in_flight ON step_executions (batch_member_id) WHERE job_out = 1;

GO

CREATE UNIQUE INDEX ux_step_executions_place ON step_executions (batch_member_id, phase_execution_id, generation, step_index);

GO

CREATE TABLE rollback_executions (
    id BIGINT NOT NULL IDENTITY, 
    batch_id BIGINT NOT NULL, 
    runbook_version INTEGER NOT NULL, 
    step_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    step_index INTEGER NOT NULL, 
    worker_id NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    function_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    params_json NVARCHAR(max) NULL, 
    status VARCHAR(32) COLLATE Latin1_General_100_BIN2 NOT NULL DEFAULT 'pending', 
    job_id VARCHAR(128) COLLATE Latin1_General_100_BIN2 NULL, 
    job_out BIT NOT NULL DEFAULT 0, 
    job_not_after DATETIME2(6) NULL, 
    first_dispatched_at DATETIME2(6) NULL, 
    dispatched_at DATETIME2(6) NULL, 
    completed_at DATETIME2(6) NULL, 
    result_json NVARCHAR(max) NULL, 
    error_message NVARCHAR(max) NULL, 
    timeout_sec INTEGER NOT NULL, 
    on_failure NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NULL, 
    is_poll_step BIT NOT NULL DEFAULT 0, 
    poll_interval_sec INTEGER NULL, 
    poll_timeout_sec INTEGER NULL, 
    poll_started_at DATETIME2(6) NULL, 
    last_polled_at DATETIME2(6) NULL, 
    poll_check_at DATETIME2(6) NULL, 
    poll_count INTEGER NOT NULL DEFAULT '0', 
    retry_count INTEGER NOT NULL DEFAULT '0', 
    max_retries INTEGER NOT NULL DEFAULT '0', 
    retry_interval_sec INTEGER NULL, 
    retry_after DATETIME2(6) NULL, 
    rollback_name NVARCHAR(256) COLLATE Latin1_General_100_BIN2 NOT NULL, 
    step_execution_id BIGINT NULL, 
    init_execution_id BIGINT NULL, 
    batch_member_id BIGINT NULL, 
    CONSTRAINT pk_rollback_executions PRIMARY KEY (id), 
    CONSTRAINT ck_rollback_executions_status CHECK (status IN ('pending', 'dispatched', 'succeeded', 'failed', 'polling', 'poll_timeout', 'cancelled')), 
    CONSTRAINT ck_rollback_executions_one_parent CHECK ((step_execution_id IS NULL AND init_execution_id IS NOT NULL) OR (step_execution_id IS NOT NULL AND init_execution_id IS NULL)), 
    CONSTRAINT fk_rollback_executions_batch_member_id FOREIGN KEY(batch_member_id) REFERENCES batch_members (id), 
    CONSTRAINT fk_rollback_executions_init_execution_id FOREIGN KEY(init_execution_id) REFERENCES init_executions (id), 
    CONSTRAINT fk_rollback_executions_step_execution_id FOREIGN KEY(step_execution_id) REFERENCES step_executions (id)
);

GO

CREATE INDEX ix_rollback_executions_batch ON rollback_executions (batch_id, id);

GO

CREATE INDEX ix_rollback_executions_open ON rollback_executions (batch_member_id) WHERE status IN ('pending', 'dispatched', 'polling');

GO

CREATE INDEX ix_rollback_executions_out ON rollback_executions (job_not_after) WHERE job_out = 1;

GO

CREATE INDEX ix_rollback_executions_poll ON rollback_executions (poll_check_at) WHERE status = 'polling';

GO

CREATE UNIQUE INDEX ux_rollback_executions_init ON rollback_executions (init_execution_id, step_index) WHERE init_execution_id IS NOT NULL;

GO

CREATE UNIQUE INDEX ux_rollback_executions_step ON rollback_executions (step_execution_id, step_index) WHERE step_execution_id IS NOT NULL;

GO

ALTER TABLE batch_members SET (LOCK_ESCALATION = DISABLE);

GO

ALTER TABLE step_executions SET (LOCK_ESCALATION = DISABLE);

GO

ALTER TABLE rollback_executions SET (LOCK_ESCALATION = DISABLE);

GO

ALTER TABLE removal_executions SET (LOCK_ESCALATION = DISABLE);

GO

ALTER TABLE outbox SET (LOCK_ESCALATION = DISABLE);

GO

INSERT INTO alembic_version (version_num) OUTPUT inserted.version_num VALUES ('0001');

GO

COMMIT;

GO

