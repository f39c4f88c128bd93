-- READ
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.phase_name, phase_executions.runbook_version, phase_executions.status, phase_executions.skip_reason, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.expanded_to_member_id, phase_executions.expanded_at
FROM phase_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = phase_executions.id;

-- OF_BATCHES
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.phase_name, phase_executions.runbook_version, phase_executions.status, phase_executions.skip_reason, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.expanded_to_member_id, phase_executions.expanded_at
FROM phase_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = phase_executions.batch_id ORDER BY phase_executions.id;

-- EXPANDED_TO
UPDATE phase_executions SET expanded_to_member_id=:through, expansion_moved_at=:now, expanded_at=:expanded_at WHERE phase_executions.id = :phase AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL AND phase_executions.expanded_to_member_id = :after;

-- CLOSE
UPDATE phase_executions SET status=:outcome, skip_reason=:reason, completed_at=:now WHERE phase_executions.id = :phase AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NOT NULL;

-- END_OPEN
UPDATE phase_executions SET status=:outcome, skip_reason=:reason, completed_at=:now WHERE phase_executions.batch_id = :batch AND phase_executions.status IN ('pending', 'dispatched');

-- CLOSABLE_AMONG
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.phase_name, phase_executions.runbook_version, phase_executions.status, phase_executions.skip_reason, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.expanded_to_member_id, phase_executions.expanded_at
FROM phase_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = phase_executions.id
WHERE phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NOT NULL AND NOT (EXISTS (SELECT *
FROM step_executions
WHERE step_executions.phase_execution_id = phase_executions.id AND step_executions.status IN ('pending', 'dispatched', 'polling'))) ORDER BY phase_executions.id;

-- CLOSABLE
SELECT phase_executions.id, phase_executions.batch_id
FROM phase_executions
WHERE phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NOT NULL AND NOT (EXISTS (SELECT *
FROM step_executions
WHERE step_executions.phase_execution_id = phase_executions.id AND step_executions.status IN ('pending', 'dispatched', 'polling'))) ORDER BY phase_executions.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- OUTCOME
SELECT CASE WHEN (EXISTS (SELECT *
FROM step_executions AS other
WHERE other.batch_id = phase_executions.batch_id AND other.phase_execution_id = phase_executions.id AND other.status = 'succeeded' AND other.step_index = :last_step)) THEN 1 ELSE 0 END AS any_through, CASE WHEN (EXISTS (SELECT *
FROM batch_members
WHERE batch_members.batch_id = phase_executions.batch_id AND batch_members.status = 'failed')) THEN 1 ELSE 0 END AS any_failed
FROM phase_executions
WHERE phase_executions.id = :phase;

-- UNEXPANDED_BEFORE
SELECT TOP 1 phase_executions.id
FROM phase_executions
WHERE phase_executions.batch_id = :batch AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL AND phase_executions.id < :phase;

-- NEXT_UNEXPANDED
SELECT TOP 1 phase_executions.id, phase_executions.batch_id, phase_executions.phase_name, phase_executions.runbook_version, phase_executions.status, phase_executions.skip_reason, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.expanded_to_member_id, phase_executions.expanded_at
FROM phase_executions
WHERE phase_executions.batch_id = :batch AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL ORDER BY phase_executions.id;

-- STALLED
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.phase_name, phase_executions.runbook_version, phase_executions.status, phase_executions.skip_reason, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.expanded_to_member_id, phase_executions.expanded_at
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id
WHERE phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL AND batches.status = 'active' AND (phase_executions.expansion_moved_at IS NULL OR phase_executions.expansion_moved_at < :before) AND phase_executions.dispatched_at < :before ORDER BY phase_executions.id;

-- WRITE_CHUNK
INSERT INTO step_executions (batch_id, runbook_version, step_name, step_index, worker_id, function_name, timeout_sec, on_failure, is_poll_step, poll_interval_sec, poll_timeout_sec, max_retries, retry_interval_sec, phase_execution_id, batch_member_id, generation) SELECT given.batch_id, given.runbook_version, given.step_name, given.step_index, given.worker_id, given.function_name, given.timeout_sec, given.on_failure, given.is_poll_step, given.poll_interval_sec, given.poll_timeout_sec, given.max_retries, given.retry_interval_sec, given.parent_id, batch_members.id, batch_members.generation
FROM batch_members JOIN (SELECT parent_id, member_id, generation, batch_id, runbook_version, group_name COLLATE Latin1_General_100_BIN2 AS group_name, step_name COLLATE Latin1_General_100_BIN2 AS step_name, step_index, worker_id COLLATE Latin1_General_100_BIN2 AS worker_id, function_name COLLATE Latin1_General_100_BIN2 AS function_name, timeout_sec, on_failure COLLATE Latin1_General_100_BIN2 AS on_failure, is_poll_step, poll_interval_sec, poll_timeout_sec, max_retries, retry_interval_sec FROM OPENJSON(:given) WITH (parent_id BIGINT '$[0]', member_id BIGINT '$[1]', generation INT '$[2]', batch_id BIGINT '$[3]', runbook_version INT '$[4]', group_name NVARCHAR(MAX) '$[5]', step_name NVARCHAR(MAX) '$[6]', step_index INT '$[7]', worker_id NVARCHAR(MAX) '$[8]', function_name NVARCHAR(MAX) '$[9]', timeout_sec INT '$[10]', on_failure NVARCHAR(MAX) '$[11]', is_poll_step BIT '$[12]', poll_interval_sec INT '$[13]', poll_timeout_sec INT '$[14]', max_retries INT '$[15]', retry_interval_sec INT '$[16]')) AS given ON :param_1 = :param_2
WHERE batch_members.batch_id = :batch AND batch_members.id > :after AND batch_members.id <= :through AND batch_members.catch_up_due = 0 AND batch_members.status = 'active' AND (SELECT other.id
FROM step_executions AS other
WHERE other.batch_member_id = batch_members.id AND other.phase_execution_id = given.parent_id AND other.generation = batch_members.generation AND other.step_index = given.step_index) IS NULL;

-- WRITE_CATCH_UP
INSERT INTO step_executions (batch_id, runbook_version, step_name, step_index, worker_id, function_name, timeout_sec, on_failure, is_poll_step, poll_interval_sec, poll_timeout_sec, max_retries, retry_interval_sec, phase_execution_id, batch_member_id, generation) SELECT given.batch_id, given.runbook_version, given.step_name, given.step_index, given.worker_id, given.function_name, given.timeout_sec, given.on_failure, given.is_poll_step, given.poll_interval_sec, given.poll_timeout_sec, given.max_retries, given.retry_interval_sec, given.parent_id, batch_members.id, batch_members.generation
FROM batch_members JOIN (SELECT parent_id, member_id, generation, batch_id, runbook_version, group_name COLLATE Latin1_General_100_BIN2 AS group_name, step_name COLLATE Latin1_General_100_BIN2 AS step_name, step_index, worker_id COLLATE Latin1_General_100_BIN2 AS worker_id, function_name COLLATE Latin1_General_100_BIN2 AS function_name, timeout_sec, on_failure COLLATE Latin1_General_100_BIN2 AS on_failure, is_poll_step, poll_interval_sec, poll_timeout_sec, max_retries, retry_interval_sec FROM OPENJSON(:given) WITH (parent_id BIGINT '$[0]', member_id BIGINT '$[1]', generation INT '$[2]', batch_id BIGINT '$[3]', runbook_version INT '$[4]', group_name NVARCHAR(MAX) '$[5]', step_name NVARCHAR(MAX) '$[6]', step_index INT '$[7]', worker_id NVARCHAR(MAX) '$[8]', function_name NVARCHAR(MAX) '$[9]', timeout_sec INT '$[10]', on_failure NVARCHAR(MAX) '$[11]', is_poll_step BIT '$[12]', poll_interval_sec INT '$[13]', poll_timeout_sec INT '$[14]', max_retries INT '$[15]', retry_interval_sec INT '$[16]')) AS given ON :param_1 = :param_2
WHERE batch_members.id = :member AND batch_members.batch_id = given.batch_id AND batch_members.catch_up_due = 1 AND batch_members.status = 'active' AND (SELECT other.id
FROM step_executions AS other
WHERE other.batch_member_id = batch_members.id AND other.phase_execution_id = given.parent_id AND other.generation = batch_members.generation AND other.step_index = given.step_index) IS NULL;

-- CANCEL_STEPS
UPDATE step_executions SET status=:status, completed_at=:now, poll_check_at=:poll_check_at, retry_after=:retry_after OUTPUT inserted.phase_execution_id FROM step_executions, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE step_executions.batch_member_id = given.id AND step_executions.status IN ('pending', 'dispatched', 'polling');
