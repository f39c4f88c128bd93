-- SET_ROLLBACK_STATUS[failed_step]
UPDATE step_executions SET rollback_status=:sequence_status FROM step_executions, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE step_executions.id = given.id;

-- SET_ROLLBACK_STATUS[failed_init]
UPDATE init_executions SET rollback_status=:sequence_status FROM init_executions, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE init_executions.id = given.id;

-- CANCEL_ROLLBACKS[failed_step]
UPDATE rollback_executions SET status=:status, completed_at=:now, retry_after=NULL FROM rollback_executions, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE rollback_executions.step_execution_id = given.id AND rollback_executions.status = 'pending';

-- CANCEL_ROLLBACKS[failed_init]
UPDATE rollback_executions SET status=:status, completed_at=:now, retry_after=NULL FROM rollback_executions, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE rollback_executions.init_execution_id = given.id AND rollback_executions.status = 'pending';

-- CANCEL_REMOVALS
UPDATE removal_executions SET status=:status, completed_at=:now, retry_after=NULL FROM removal_executions, (SELECT id, generation FROM OPENJSON(:given) WITH (id BIGINT '$[0]', generation INT '$[1]')) AS given WHERE removal_executions.batch_member_id = given.id AND removal_executions.generation = given.generation AND removal_executions.status = 'pending';

-- MEMBERS_OF_FAILED_STEPS
SELECT step_executions.batch_member_id
FROM step_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = step_executions.id;

-- BUSY
SELECT step_executions.batch_member_id
FROM step_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = step_executions.batch_member_id
WHERE step_executions.job_out = 1 UNION ALL SELECT rollback_executions.batch_member_id
FROM rollback_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = rollback_executions.batch_member_id
WHERE rollback_executions.status IN ('pending', 'dispatched', 'polling');

-- BUSY_OR_LEAVING
SELECT step_executions.batch_member_id
FROM step_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = step_executions.batch_member_id
WHERE step_executions.job_out = 1 UNION ALL SELECT rollback_executions.batch_member_id
FROM rollback_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = rollback_executions.batch_member_id
WHERE rollback_executions.status IN ('pending', 'dispatched', 'polling') UNION ALL SELECT removal_executions.batch_member_id
FROM removal_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = removal_executions.batch_member_id
WHERE removal_executions.status IN ('pending', 'dispatched', 'polling');

-- WAITING_ROLLBACKS[failed_step]
SELECT DISTINCT rollback_executions.step_execution_id, rollback_executions.batch_member_id
FROM rollback_executions
WHERE rollback_executions.step_execution_id IS NOT NULL AND rollback_executions.status = 'pending' AND (rollback_executions.retry_after IS NULL OR rollback_executions.retry_after < :before) AND NOT (EXISTS (SELECT *
FROM rollback_executions AS other
WHERE other.step_execution_id = rollback_executions.step_execution_id AND (other.job_out = 1 OR other.status = 'polling' OR other.status = 'pending' AND other.retry_after >= :before))) ORDER BY rollback_executions.step_execution_id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- WAITING_ROLLBACKS[failed_init]
SELECT DISTINCT rollback_executions.init_execution_id, rollback_executions.batch_member_id
FROM rollback_executions
WHERE rollback_executions.init_execution_id IS NOT NULL AND rollback_executions.status = 'pending' AND (rollback_executions.retry_after IS NULL OR rollback_executions.retry_after < :before) AND NOT (EXISTS (SELECT *
FROM rollback_executions AS other
WHERE other.init_execution_id = rollback_executions.init_execution_id AND (other.job_out = 1 OR other.status = 'polling' OR other.status = 'pending' AND other.retry_after >= :before))) ORDER BY rollback_executions.init_execution_id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- WAITING_REMOVALS
SELECT DISTINCT removal_executions.batch_member_id
FROM removal_executions
WHERE removal_executions.batch_member_id IS NOT NULL AND removal_executions.status = 'pending' AND (removal_executions.retry_after IS NULL OR removal_executions.retry_after < :before) AND NOT (EXISTS (SELECT *
FROM removal_executions AS other
WHERE other.batch_member_id = removal_executions.batch_member_id AND (other.job_out = 1 OR other.status = 'polling' OR other.status = 'pending' AND other.retry_after >= :before))) ORDER BY removal_executions.batch_member_id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;
