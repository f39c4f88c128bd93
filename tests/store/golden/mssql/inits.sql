-- NEXT_OPEN
SELECT TOP 1 init_executions.id, init_executions.batch_id, init_executions.runbook_version, init_executions.step_name, init_executions.step_index, init_executions.worker_id, init_executions.function_name, init_executions.params_json, init_executions.status, init_executions.job_id, init_executions.job_out, init_executions.first_dispatched_at, init_executions.timeout_sec, init_executions.on_failure, init_executions.is_poll_step, init_executions.poll_interval_sec, init_executions.poll_timeout_sec, init_executions.poll_started_at, init_executions.poll_count, init_executions.retry_count, init_executions.max_retries, init_executions.retry_interval_sec, init_executions.retry_after, NULL AS group_name, NULL AS batch_member_id, NULL AS phase_execution_id, NULL AS generation, NULL AS step_execution_id, NULL AS init_execution_id
FROM init_executions
WHERE init_executions.batch_id = :batch AND init_executions.runbook_version = :version AND init_executions.status IN ('pending', 'dispatched', 'polling') ORDER BY init_executions.step_index;

-- CANCEL_OPEN
UPDATE init_executions SET status=:status, completed_at=:now, poll_check_at=NULL, retry_after=NULL WHERE init_executions.batch_id = :batch AND init_executions.runbook_version = :version AND init_executions.status IN ('pending', 'dispatched', 'polling');

-- CANCEL_ALL
UPDATE init_executions SET status=:status, completed_at=:now, poll_check_at=NULL, retry_after=NULL WHERE init_executions.batch_id = :batch AND init_executions.status IN ('pending', 'dispatched', 'polling');
