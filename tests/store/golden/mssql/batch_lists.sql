-- ONE
SELECT batches.id, runbooks.name, runbooks.version, coalesce(batches.batch_start_time, batches.started_at) AS coalesce_1, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.loaded_at, batches.init_dispatched_at, batches.started_at, batches.completed_at, batches.cancelled_by, batches.rerunning_init_version
FROM batches JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE batches.id = :batch;

-- LIST
SELECT batches.id, runbooks.name, runbooks.version, coalesce(batches.batch_start_time, batches.started_at) AS coalesce_1, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.loaded_at, batches.init_dispatched_at, batches.started_at, batches.completed_at, batches.cancelled_by, batches.rerunning_init_version
FROM batches JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE (:named IS NULL OR batches.runbook_name_folded = :named) AND (:state IS NULL OR coalesce(batches.status, :coalesce_2) = :state) AND (CAST(:manual AS BIT) IS NULL OR batches.is_manual = CAST(:manual AS BIT)) AND batches.id < :before ORDER BY batches.id DESC
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- STILL_OPEN
SELECT batches.id, runbooks.name, runbooks.version, coalesce(batches.batch_start_time, batches.started_at) AS coalesce_1, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.loaded_at, batches.init_dispatched_at, batches.started_at, batches.completed_at, batches.cancelled_by, batches.rerunning_init_version
FROM batches JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE batches.status IN ('detected', 'init_dispatched', 'active') ORDER BY batches.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- COUNT
SELECT count(*) AS count_1
FROM batches
WHERE (:named IS NULL OR batches.runbook_name_folded = :named) AND (:state IS NULL OR coalesce(batches.status, :coalesce_1) = :state) AND (CAST(:manual AS BIT) IS NULL OR batches.is_manual = CAST(:manual AS BIT));

-- MEMBERS_BY_STATUS
SELECT given.id, (SELECT count(*) AS count_1
FROM batch_members
WHERE batch_members.batch_id = given.id AND batch_members.status = 'active') AS active, (SELECT count(*) AS count_2
FROM batch_members
WHERE batch_members.batch_id = given.id AND batch_members.status = 'completed') AS completed, (SELECT count(*) AS count_3
FROM batch_members
WHERE batch_members.batch_id = given.id AND batch_members.status = 'removed') AS removed, (SELECT count(*) AS count_4
FROM batch_members
WHERE batch_members.batch_id = given.id AND batch_members.status = 'failed') AS failed
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given;

-- HELD
SELECT count(*) AS count_1
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.removal_held_at IS NOT NULL AND batch_members.status = 'active';

-- PHASES
SELECT phase_executions.id, phase_executions.phase_name, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.skip_reason, phase_executions.runbook_version, phase_executions.dispatched_at, phase_executions.completed_at, phase_executions.expanded_at
FROM phase_executions
WHERE phase_executions.batch_id = :batch ORDER BY phase_executions.id;

-- STEPS_BY_STATUS
SELECT step_executions.phase_execution_id, step_executions.status, count(*) AS count_1
FROM step_executions
WHERE step_executions.batch_id = :batch GROUP BY step_executions.phase_execution_id, step_executions.status;
