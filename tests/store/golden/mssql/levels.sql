-- OPEN_BATCHES
SELECT batches.id, batches.status
FROM batches
WHERE batches.status = 'detected' OR batches.status = 'init_dispatched' OR batches.status = 'active';

-- ACTIVE
SELECT count(*) AS count_1
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.status = 'active';

-- IDLE
SELECT count(*) AS count_1
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.status = 'active' AND (EXISTS (SELECT *
FROM step_executions, phase_executions
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status = 'pending' AND (step_executions.retry_after < :before OR step_executions.retry_after IS NULL AND phase_executions.dispatched_at < :before) AND phase_executions.id = step_executions.phase_execution_id)) AND NOT (EXISTS (SELECT *
FROM step_executions AS other
WHERE other.batch_member_id = batch_members.id AND (other.job_out = 1 OR other.status = 'polling' OR other.status = 'pending' AND other.retry_after >= :before)));

-- SILENT
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.job_out = 1 AND step_executions.dispatched_at < :before;

-- HELD
SELECT count(*) AS count_1
FROM batch_members
WHERE batch_members.removal_held_at IS NOT NULL AND batch_members.status = 'active';

-- OVERDUE
SELECT count(*) AS count_1
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id
WHERE phase_executions.status = 'pending' AND phase_executions.due_at < :before AND (batches.status = 'detected' OR batches.status = 'init_dispatched' OR batches.status = 'active');

-- FAULTY
SELECT count(*) AS count_1
FROM runbooks
WHERE runbooks.is_active = 1 AND runbooks.last_error IS NOT NULL;

-- DEAD
SELECT count(*) AS count_1
FROM dead_messages
WHERE dead_messages.resubmitted_at IS NULL;
