-- MEMBERS
SELECT batch_members.id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.added_at, batch_members.removed_at, batch_members.removed_by, batch_members.failed_at, batch_members.completed_at, batch_members.removal_held_at, batch_members.catch_up_due, batch_members.removal_due, batch_members.data_json, batch_members.worker_data_json
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.id > :after ORDER BY batch_members.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- MEMBERS_IN[active]
SELECT batch_members.id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.added_at, batch_members.removed_at, batch_members.removed_by, batch_members.failed_at, batch_members.completed_at, batch_members.removal_held_at, batch_members.catch_up_due, batch_members.removal_due, batch_members.data_json, batch_members.worker_data_json
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.status = 'active' AND batch_members.id > :after ORDER BY batch_members.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- MEMBERS_IN[completed]
SELECT batch_members.id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.added_at, batch_members.removed_at, batch_members.removed_by, batch_members.failed_at, batch_members.completed_at, batch_members.removal_held_at, batch_members.catch_up_due, batch_members.removal_due, batch_members.data_json, batch_members.worker_data_json
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.status = 'completed' AND batch_members.id > :after ORDER BY batch_members.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- MEMBERS_IN[removed]
SELECT batch_members.id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.added_at, batch_members.removed_at, batch_members.removed_by, batch_members.failed_at, batch_members.completed_at, batch_members.removal_held_at, batch_members.catch_up_due, batch_members.removal_due, batch_members.data_json, batch_members.worker_data_json
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.status = 'removed' AND batch_members.id > :after ORDER BY batch_members.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- MEMBERS_IN[failed]
SELECT batch_members.id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.added_at, batch_members.removed_at, batch_members.removed_by, batch_members.failed_at, batch_members.completed_at, batch_members.removal_held_at, batch_members.catch_up_due, batch_members.removal_due, batch_members.data_json, batch_members.worker_data_json
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.status = 'failed' AND batch_members.id > :after ORDER BY batch_members.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- MEMBER_IS_THERE
SELECT batch_members.id
FROM batch_members
WHERE batch_members.id = :member AND batch_members.batch_id = :batch;

-- MEMBER_BY_KEY
SELECT batch_members.id
FROM batch_members
WHERE batch_members.member_key_folded = :key AND batch_members.batch_id = :batch;

-- STEPS
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND step_executions.id > :after ORDER BY step_executions.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- STEPS_IN[pending]
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) AND step_executions.status IN ('pending', 'dispatched', 'polling') AND step_executions.status = 'pending' AND step_executions.id > :after ORDER BY step_executions.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- STEPS_IN[dispatched]
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) AND step_executions.status IN ('pending', 'dispatched', 'polling') AND step_executions.status = 'dispatched' AND step_executions.id > :after ORDER BY step_executions.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- STEPS_IN[succeeded]
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND step_executions.status = 'succeeded' AND step_executions.id > :after ORDER BY step_executions.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- STEPS_IN[failed]
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND step_executions.status IN ('failed', 'poll_timeout') AND step_executions.status = 'failed' AND step_executions.id > :after ORDER BY step_executions.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- STEPS_IN[polling]
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) AND step_executions.status IN ('pending', 'dispatched', 'polling') AND step_executions.status = 'polling' AND step_executions.id > :after ORDER BY step_executions.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- STEPS_IN[poll_timeout]
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND step_executions.status IN ('failed', 'poll_timeout') AND step_executions.status = 'poll_timeout' AND step_executions.id > :after ORDER BY step_executions.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- STEPS_IN[cancelled]
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND step_executions.status = 'cancelled' AND step_executions.id > :after ORDER BY step_executions.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- STEPS_OF_MEMBER
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE step_executions.batch_member_id = :member AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND (:state IS NULL OR coalesce(step_executions.status, :coalesce_1) = :state) AND step_executions.id > :after ORDER BY step_executions.id
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- COUNT_STEPS
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given));

-- COUNT_STEPS_IN[pending]
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) AND step_executions.status IN ('pending', 'dispatched', 'polling') AND step_executions.status = 'pending';

-- COUNT_STEPS_IN[dispatched]
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) AND step_executions.status IN ('pending', 'dispatched', 'polling') AND step_executions.status = 'dispatched';

-- COUNT_STEPS_IN[succeeded]
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND step_executions.status = 'succeeded';

-- COUNT_STEPS_IN[failed]
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND step_executions.status IN ('failed', 'poll_timeout') AND step_executions.status = 'failed';

-- COUNT_STEPS_IN[polling]
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) AND step_executions.status IN ('pending', 'dispatched', 'polling') AND step_executions.status = 'polling';

-- COUNT_STEPS_IN[poll_timeout]
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND step_executions.status IN ('failed', 'poll_timeout') AND step_executions.status = 'poll_timeout';

-- COUNT_STEPS_IN[cancelled]
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.batch_id = :batch AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND step_executions.status = 'cancelled';

-- COUNT_STEPS_OF_MEMBER
SELECT count(*) AS count_1
FROM step_executions
WHERE step_executions.batch_member_id = :member AND (:phases_given = :param_1 OR step_executions.phase_execution_id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given)) AND (:state IS NULL OR coalesce(step_executions.status, :coalesce_1) = :state);

-- FIRST_OPEN
SELECT step_executions.id, phase_executions.id AS id_1, phase_executions.phase_name, batch_members.id AS id_2, batch_members.member_key, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.status, step_executions.job_id, step_executions.job_out, step_executions.is_poll_step, step_executions.poll_count, step_executions.poll_check_at, step_executions.retry_count, step_executions.retry_after, step_executions.dispatched_at, step_executions.completed_at, step_executions.error_message, step_executions.on_failure, step_executions.rollback_status, step_executions.runbook_version
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON step_executions.id = (SELECT TOP 1 other.id
FROM step_executions AS other
WHERE other.batch_member_id = given.id AND other.status IN ('pending', 'dispatched', 'polling') ORDER BY other.phase_execution_id, other.step_index);

-- INIT_STEPS
SELECT init_executions.id, :param_1 AS anon_1, :param_2 AS anon_2, :param_3 AS anon_3, :param_4 AS anon_4, init_executions.step_name, init_executions.step_index, init_executions.worker_id, init_executions.function_name, init_executions.status, init_executions.job_id, init_executions.job_out, init_executions.is_poll_step, init_executions.poll_count, init_executions.poll_check_at, init_executions.retry_count, init_executions.retry_after, init_executions.dispatched_at, init_executions.completed_at, init_executions.error_message, init_executions.on_failure, init_executions.rollback_status, init_executions.runbook_version
FROM init_executions
WHERE init_executions.batch_id = :batch ORDER BY init_executions.runbook_version, init_executions.step_index;

-- OPEN_ROLLBACKS
SELECT rollback_executions.batch_member_id, rollback_executions.step_name
FROM rollback_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = rollback_executions.batch_member_id
WHERE rollback_executions.status IN ('pending', 'dispatched', 'polling') ORDER BY rollback_executions.batch_member_id, rollback_executions.id;

-- OPEN_REMOVALS
SELECT removal_executions.batch_member_id, removal_executions.step_name
FROM removal_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = removal_executions.batch_member_id
WHERE removal_executions.status IN ('pending', 'dispatched', 'polling') ORDER BY removal_executions.batch_member_id, removal_executions.id;
