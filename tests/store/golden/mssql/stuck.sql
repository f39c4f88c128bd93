-- IDLE
SELECT looked_at.id, looked_at.batch_id
FROM (SELECT batch_members.id AS id, batch_members.batch_id AS batch_id
FROM batch_members
WHERE batch_members.status = 'active' AND batch_members.id > :after ORDER BY batch_members.id
 OFFSET :param_1 ROWS
 FETCH FIRST :size ROWS ONLY) AS looked_at
WHERE (EXISTS (SELECT *
FROM step_executions
WHERE step_executions.batch_member_id = looked_at.id AND step_executions.status = 'pending' AND (step_executions.retry_after IS NULL OR step_executions.retry_after < :before))) AND NOT (EXISTS (SELECT *
FROM step_executions AS other
WHERE other.batch_member_id = looked_at.id AND (other.job_out = 1 OR other.status = 'polling' OR other.status = 'pending' AND other.retry_after >= :before))) ORDER BY looked_at.id;

-- LAST_LOOKED_AT
SELECT TOP 1 looked_at.id
FROM (SELECT batch_members.id AS id, batch_members.batch_id AS batch_id
FROM batch_members
WHERE batch_members.status = 'active' AND batch_members.id > :after ORDER BY batch_members.id
 OFFSET :param_2 ROWS
 FETCH FIRST :size ROWS ONLY) AS looked_at ORDER BY looked_at.id DESC;

-- LOST_JOBS[step]
SELECT step_executions.id, step_executions.batch_id, step_executions.runbook_version, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.params_json, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.first_dispatched_at, step_executions.timeout_sec, step_executions.on_failure, step_executions.is_poll_step, step_executions.poll_interval_sec, step_executions.poll_timeout_sec, step_executions.poll_started_at, step_executions.poll_count, step_executions.retry_count, step_executions.max_retries, step_executions.retry_interval_sec, step_executions.retry_after, phase_executions.phase_name AS group_name, step_executions.batch_member_id, step_executions.phase_execution_id, step_executions.generation, NULL AS step_execution_id, NULL AS init_execution_id
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id
WHERE step_executions.job_out = 1 AND step_executions.job_not_after < :before ORDER BY step_executions.job_not_after, step_executions.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- LOST_JOBS[init]
SELECT init_executions.id, init_executions.batch_id, init_executions.runbook_version, init_executions.step_name, init_executions.step_index, init_executions.worker_id, init_executions.function_name, init_executions.params_json, init_executions.status, init_executions.job_id, init_executions.job_out, init_executions.first_dispatched_at, init_executions.timeout_sec, init_executions.on_failure, init_executions.is_poll_step, init_executions.poll_interval_sec, init_executions.poll_timeout_sec, init_executions.poll_started_at, init_executions.poll_count, init_executions.retry_count, init_executions.max_retries, init_executions.retry_interval_sec, init_executions.retry_after, NULL AS group_name, NULL AS batch_member_id, NULL AS phase_execution_id, NULL AS generation, NULL AS step_execution_id, NULL AS init_execution_id
FROM init_executions
WHERE init_executions.job_out = 1 AND init_executions.job_not_after < :before ORDER BY init_executions.job_not_after, init_executions.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- LOST_JOBS[rollback]
SELECT rollback_executions.id, rollback_executions.batch_id, rollback_executions.runbook_version, rollback_executions.step_name, rollback_executions.step_index, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.params_json, rollback_executions.status, rollback_executions.job_id, rollback_executions.job_out, rollback_executions.first_dispatched_at, rollback_executions.timeout_sec, rollback_executions.on_failure, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.poll_count, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.rollback_name AS group_name, rollback_executions.batch_member_id, NULL AS phase_execution_id, NULL AS generation, rollback_executions.step_execution_id, rollback_executions.init_execution_id
FROM rollback_executions
WHERE rollback_executions.job_out = 1 AND rollback_executions.job_not_after < :before ORDER BY rollback_executions.job_not_after, rollback_executions.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- LOST_JOBS[removal]
SELECT removal_executions.id, removal_executions.batch_id, removal_executions.runbook_version, removal_executions.step_name, removal_executions.step_index, removal_executions.worker_id, removal_executions.function_name, removal_executions.params_json, removal_executions.status, removal_executions.job_id, removal_executions.job_out, removal_executions.first_dispatched_at, removal_executions.timeout_sec, removal_executions.on_failure, removal_executions.is_poll_step, removal_executions.poll_interval_sec, removal_executions.poll_timeout_sec, removal_executions.poll_started_at, removal_executions.poll_count, removal_executions.retry_count, removal_executions.max_retries, removal_executions.retry_interval_sec, removal_executions.retry_after, NULL AS group_name, removal_executions.batch_member_id, NULL AS phase_execution_id, removal_executions.generation, NULL AS step_execution_id, NULL AS init_execution_id
FROM removal_executions
WHERE removal_executions.job_out = 1 AND removal_executions.job_not_after < :before ORDER BY removal_executions.job_not_after, removal_executions.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- WAITING_FOR_INIT
SELECT batches.id
FROM batches
WHERE batches.loaded_at IS NOT NULL AND (batches.status = 'init_dispatched' OR batches.status = 'active' AND batches.rerunning_init_version IS NOT NULL) ORDER BY batches.id;
