-- PLACES
SELECT batches.id, runbooks.name, runbooks.version, coalesce(batches.batch_start_time, batches.started_at) AS coalesce_1, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.loaded_at, batches.init_dispatched_at, batches.started_at, batches.completed_at, batches.cancelled_by, batches.rerunning_init_version, batch_members.id AS id_1, batch_members.member_key, batch_members.status AS status_1, batch_members.generation, batch_members.added_at, batch_members.removed_at, batch_members.removed_by, batch_members.failed_at, batch_members.completed_at AS completed_at_1, batch_members.removal_held_at, batch_members.catch_up_due, batch_members.removal_due, batch_members.data_json, batch_members.worker_data_json
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE batch_members.member_key_folded = :key AND batch_members.id < :before ORDER BY batch_members.id DESC
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- MEMBER
SELECT batch_members.id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.added_at, batch_members.removed_at, batch_members.removed_by, batch_members.failed_at, batch_members.completed_at, batch_members.removal_held_at, batch_members.catch_up_due, batch_members.removal_due, batch_members.data_json, batch_members.worker_data_json
FROM batch_members
WHERE batch_members.id = :member AND batch_members.batch_id = :batch;

-- STEPS
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version, step_executions.generation, :param_1 AS anon_1, :param_2 AS anon_2, step_executions.params_json, step_executions.result_json
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id
WHERE step_executions.batch_member_id = :member ORDER BY step_executions.generation, step_executions.phase_execution_id, step_executions.step_index;

-- ROLLBACKS
SELECT rollback_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, rollback_executions.step_name, rollback_executions.step_index, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.status, rollback_executions.job_id, rollback_executions.job_out, rollback_executions.is_poll_step, rollback_executions.poll_count, rollback_executions.poll_check_at, rollback_executions.retry_count, rollback_executions.retry_after, rollback_executions.dispatched_at, rollback_executions.completed_at, rollback_executions.error_message, rollback_executions.on_failure, NULL AS anon_1, rollback_executions.runbook_version, step_executions.generation, rollback_executions.step_execution_id, rollback_executions.rollback_name, rollback_executions.params_json, rollback_executions.result_json
FROM rollback_executions JOIN batch_members ON batch_members.id = rollback_executions.batch_member_id JOIN step_executions ON step_executions.id = rollback_executions.step_execution_id JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id
WHERE rollback_executions.batch_member_id = :member AND step_executions.batch_member_id = :member AND rollback_executions.step_execution_id IS NOT NULL ORDER BY rollback_executions.step_execution_id, rollback_executions.step_index;

-- REMOVALS
SELECT removal_executions.id, :param_1 AS anon_1, :param_2 AS anon_2, batch_members.id AS id_1, batch_members.member_key, removal_executions.step_name, removal_executions.step_index, removal_executions.worker_id, removal_executions.function_name, removal_executions.status, removal_executions.job_id, removal_executions.job_out, removal_executions.is_poll_step, removal_executions.poll_count, removal_executions.poll_check_at, removal_executions.retry_count, removal_executions.retry_after, removal_executions.dispatched_at, removal_executions.completed_at, removal_executions.error_message, removal_executions.on_failure, NULL AS anon_3, removal_executions.runbook_version, removal_executions.generation, :param_3 AS anon_4, :param_4 AS anon_5, removal_executions.params_json, removal_executions.result_json
FROM removal_executions JOIN batch_members ON batch_members.id = removal_executions.batch_member_id
WHERE removal_executions.batch_member_id = :member ORDER BY removal_executions.generation, removal_executions.step_index;
