-- PHASES_DUE
SELECT phase_executions.id, phase_executions.batch_id
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id
WHERE phase_executions.status = 'pending' AND phase_executions.due_at <= :now AND batches.status = 'active' AND batches.loaded_at IS NOT NULL AND batches.rerunning_init_version IS NULL ORDER BY phase_executions.batch_id, phase_executions.id;

-- START_PHASES
UPDATE phase_executions SET status=:status, dispatched_at=:now, expansion_moved_at=:now FROM phase_executions, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE phase_executions.id = given.id AND phase_executions.status = 'pending';

-- POLLS_DUE
SELECT :param_1 AS kind, step_executions.id AS execution_id, step_executions.batch_id, step_executions.runbook_version, step_executions.step_name, step_executions.poll_count, runbooks.name
FROM step_executions JOIN batches ON batches.id = step_executions.batch_id JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE step_executions.status = 'polling' AND step_executions.job_out = 0 AND step_executions.poll_check_at <= :now UNION ALL SELECT :param_2 AS kind, init_executions.id AS execution_id, init_executions.batch_id, init_executions.runbook_version, init_executions.step_name, init_executions.poll_count, runbooks.name
FROM init_executions JOIN batches ON batches.id = init_executions.batch_id JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE init_executions.status = 'polling' AND init_executions.job_out = 0 AND init_executions.poll_check_at <= :now UNION ALL SELECT :param_3 AS kind, rollback_executions.id AS execution_id, rollback_executions.batch_id, rollback_executions.runbook_version, rollback_executions.step_name, rollback_executions.poll_count, runbooks.name
FROM rollback_executions JOIN batches ON batches.id = rollback_executions.batch_id JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE rollback_executions.status = 'polling' AND rollback_executions.job_out = 0 AND rollback_executions.poll_check_at <= :now UNION ALL SELECT :param_4 AS kind, removal_executions.id AS execution_id, removal_executions.batch_id, removal_executions.runbook_version, removal_executions.step_name, removal_executions.poll_count, runbooks.name
FROM removal_executions JOIN batches ON batches.id = removal_executions.batch_id JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE removal_executions.status = 'polling' AND removal_executions.job_out = 0 AND removal_executions.poll_check_at <= :now ORDER BY kind, execution_id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- CHECK_AGAIN[step]
UPDATE step_executions SET poll_check_at=:again FROM step_executions, (SELECT id, poll_count FROM OPENJSON(:given) WITH (id BIGINT '$[0]', poll_count INT '$[1]')) AS given WHERE step_executions.id = given.id AND step_executions.status = 'polling' AND step_executions.job_out = 0 AND step_executions.poll_count = given.poll_count;

-- CHECK_AGAIN[init]
UPDATE init_executions SET poll_check_at=:again FROM init_executions, (SELECT id, poll_count FROM OPENJSON(:given) WITH (id BIGINT '$[0]', poll_count INT '$[1]')) AS given WHERE init_executions.id = given.id AND init_executions.status = 'polling' AND init_executions.job_out = 0 AND init_executions.poll_count = given.poll_count;

-- CHECK_AGAIN[rollback]
UPDATE rollback_executions SET poll_check_at=:again FROM rollback_executions, (SELECT id, poll_count FROM OPENJSON(:given) WITH (id BIGINT '$[0]', poll_count INT '$[1]')) AS given WHERE rollback_executions.id = given.id AND rollback_executions.status = 'polling' AND rollback_executions.job_out = 0 AND rollback_executions.poll_count = given.poll_count;

-- CHECK_AGAIN[removal]
UPDATE removal_executions SET poll_check_at=:again FROM removal_executions, (SELECT id, poll_count FROM OPENJSON(:given) WITH (id BIGINT '$[0]', poll_count INT '$[1]')) AS given WHERE removal_executions.id = given.id AND removal_executions.status = 'polling' AND removal_executions.job_out = 0 AND removal_executions.poll_count = given.poll_count;
