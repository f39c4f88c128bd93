-- BATCHES_BY_STATUS
SELECT batches.status, count(*) AS count_1
FROM batches GROUP BY batches.status;

-- NEXT_PHASES
SELECT batches.id, runbooks.name, batches.status, batches.batch_start_time, phase_executions.phase_name, phase_executions.due_at
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE phase_executions.status = 'pending' AND phase_executions.due_at IS NOT NULL AND batches.status IN ('detected', 'init_dispatched', 'active') AND batches.loaded_at IS NOT NULL ORDER BY phase_executions.due_at, phase_executions.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- HELD
SELECT batches.id, runbooks.name, count(*) AS count_1, min(batch_members.removal_held_at) AS min_1
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE batch_members.removal_held_at IS NOT NULL AND batch_members.status = 'active' AND batches.status IN ('detected', 'init_dispatched', 'active') GROUP BY batches.id, runbooks.name ORDER BY batches.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- DEAD
SELECT count(*) AS count_1
FROM dead_messages
WHERE dead_messages.resubmitted_at IS NULL;

-- TROUBLES
SELECT runbooks.name, runbooks.version, runbooks.last_error, runbooks.last_error_at
FROM runbooks
WHERE runbooks.is_active = 1 AND runbooks.last_error IS NOT NULL ORDER BY runbooks.name_folded
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- AUTOMATIC
SELECT TOP 1 runbooks.id
FROM runbooks
WHERE runbooks.is_active = 1 AND NOT (EXISTS (SELECT *
FROM runbook_automation_settings
WHERE runbook_automation_settings.runbook_name = runbooks.name_folded AND runbook_automation_settings.automation_enabled = 0));

-- OPEN_AUTOMATIC
SELECT TOP 1 batches.id
FROM batches
WHERE batches.status IN ('detected', 'init_dispatched', 'active') AND batches.is_manual = 0;

-- WAITED_FOR
SELECT step_executions.worker_id, count(*) AS count_1
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id
WHERE phase_executions.status = 'dispatched' AND step_executions.status IN ('pending', 'dispatched', 'polling') GROUP BY step_executions.worker_id ORDER BY step_executions.worker_id;

-- FAILURES[step]
SELECT :param_1 AS anon_1, phase_executions.phase_name, step_executions.step_name, step_executions.worker_id, step_executions.function_name, step_executions.error_message, count(*) AS number, max(step_executions.completed_at) AS max_1
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id
WHERE step_executions.batch_id = :batch AND step_executions.status IN ('failed', 'poll_timeout') GROUP BY phase_executions.phase_name, step_executions.step_name, step_executions.worker_id, step_executions.function_name, step_executions.error_message ORDER BY number DESC, step_executions.step_name
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- FAILURES[init]
SELECT :param_1 AS anon_1, :param_2 AS anon_2, init_executions.step_name, init_executions.worker_id, init_executions.function_name, init_executions.error_message, count(*) AS number, max(init_executions.completed_at) AS max_1
FROM init_executions
WHERE init_executions.batch_id = :batch AND init_executions.status IN ('failed', 'poll_timeout') GROUP BY init_executions.step_name, init_executions.worker_id, init_executions.function_name, init_executions.error_message ORDER BY number DESC, init_executions.step_name
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- FAILURES[rollback]
SELECT :param_1 AS anon_1, :param_2 AS anon_2, rollback_executions.step_name, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.error_message, count(*) AS number, max(rollback_executions.completed_at) AS max_1
FROM rollback_executions
WHERE rollback_executions.batch_id = :batch AND rollback_executions.status IN ('failed', 'poll_timeout') GROUP BY rollback_executions.step_name, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.error_message ORDER BY number DESC, rollback_executions.step_name
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- FAILURES[removal]
SELECT :param_1 AS anon_1, :param_2 AS anon_2, removal_executions.step_name, removal_executions.worker_id, removal_executions.function_name, removal_executions.error_message, count(*) AS number, max(removal_executions.completed_at) AS max_1
FROM removal_executions
WHERE removal_executions.batch_id = :batch AND removal_executions.status IN ('failed', 'poll_timeout') GROUP BY removal_executions.step_name, removal_executions.worker_id, removal_executions.function_name, removal_executions.error_message ORDER BY number DESC, removal_executions.step_name
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;
