-- READ_ALL
SELECT batches.id, runbooks.name, runbooks.version, batches.status, batches.batch_start_time, batches.loaded_at, batches.started_at, batches.is_manual, batches.rerunning_init_version
FROM batches JOIN runbooks ON runbooks.id = batches.runbook_id;

-- READ
SELECT batches.id, runbooks.name, runbooks.version, batches.status, batches.batch_start_time, batches.loaded_at, batches.started_at, batches.is_manual, batches.rerunning_init_version
FROM batches JOIN runbooks ON runbooks.id = batches.runbook_id JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = batches.id;

-- START_INIT
UPDATE batches SET status=:status, init_dispatched_at=:now WHERE batches.id = :batch AND batches.status = 'detected';

-- ACTIVATE
UPDATE batches SET status=:status WHERE batches.id = :batch AND batches.status IN ('detected', 'init_dispatched');

-- INIT_RERUN_OVER
UPDATE batches SET rerunning_init_version=NULL WHERE batches.id = :batch AND batches.rerunning_init_version = :version;

-- END
UPDATE batches SET status=:outcome, completed_at=:now, cancelled_by=:by, rerunning_init_version=NULL, winding_up=:winding_up WHERE batches.id = :batch AND batches.status IN ('detected', 'init_dispatched', 'active');

-- DONE_AMONG
SELECT batches.id, CASE WHEN (EXISTS (SELECT *
FROM phase_executions
WHERE phase_executions.batch_id = batches.id AND phase_executions.status = 'completed')) THEN 1 ELSE 0 END AS any_completed, CASE WHEN (EXISTS (SELECT *
FROM phase_executions
WHERE phase_executions.batch_id = batches.id AND phase_executions.status = 'failed')) THEN 1 ELSE 0 END AS any_failed
FROM batches JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = batches.id
WHERE batches.status = 'active' AND batches.loaded_at IS NOT NULL AND batches.rerunning_init_version IS NULL AND NOT (EXISTS (SELECT *
FROM phase_executions
WHERE phase_executions.batch_id = batches.id AND phase_executions.status IN ('pending', 'dispatched'))) AND NOT (EXISTS (SELECT *
FROM phase_executions, step_executions
WHERE phase_executions.batch_id = batches.id AND step_executions.phase_execution_id = phase_executions.id AND step_executions.status IN ('pending', 'dispatched', 'polling'))) AND NOT (EXISTS (SELECT *
FROM batch_members
WHERE batch_members.batch_id = batches.id AND batch_members.status = 'active' AND batch_members.catch_up_due = 1)) ORDER BY batches.id;

-- DONE
SELECT batches.id
FROM batches
WHERE batches.status = 'active' AND batches.loaded_at IS NOT NULL AND batches.rerunning_init_version IS NULL AND NOT (EXISTS (SELECT *
FROM phase_executions
WHERE phase_executions.batch_id = batches.id AND phase_executions.status IN ('pending', 'dispatched'))) AND NOT (EXISTS (SELECT *
FROM phase_executions, step_executions
WHERE phase_executions.batch_id = batches.id AND step_executions.phase_execution_id = phase_executions.id AND step_executions.status IN ('pending', 'dispatched', 'polling'))) AND NOT (EXISTS (SELECT *
FROM batch_members
WHERE batch_members.batch_id = batches.id AND batch_members.status = 'active' AND batch_members.catch_up_due = 1)) ORDER BY batches.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- WITH_PHASES_TO_COME
SELECT DISTINCT phase_executions.batch_id
FROM phase_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = phase_executions.batch_id
WHERE phase_executions.status = 'pending' OR phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL;

-- OPEN
SELECT batches.id, runbooks.name, runbooks.version, batches.status, batches.batch_start_time, batches.loaded_at, batches.started_at, batches.is_manual, batches.rerunning_init_version
FROM batches JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE batches.status IN ('detected', 'init_dispatched', 'active') ORDER BY batches.id;

-- MEMBER_COUNT
SELECT count(*) AS count_1
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.status = 'active';
