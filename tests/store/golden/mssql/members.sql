-- READ
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.data_json, batch_members.worker_data_json, batch_members.catch_up_due, batch_members.removal_due
FROM batch_members JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = batch_members.id;

-- READ_CHUNK
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.data_json, batch_members.worker_data_json, batch_members.catch_up_due, batch_members.removal_due
FROM batch_members WITH (UPDLOCK, ROWLOCK, INDEX(ix_batch_members_status), FORCESEEK)
WHERE batch_members.batch_id = :batch AND batch_members.status = 'active' AND batch_members.id > :after ORDER BY batch_members.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- FAIL
UPDATE batch_members SET status=:status, failed_at=:now FROM batch_members, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE batch_members.id = given.id AND batch_members.status = 'active';

-- COMPLETE
UPDATE batch_members SET status=:status, completed_at=:now FROM batch_members, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE batch_members.id = given.id AND batch_members.status = 'active';

-- COMPLETE_BATCH
UPDATE batch_members SET status=:status, completed_at=:now WHERE batch_members.batch_id = :batch AND batch_members.status = 'active';

-- REMEMBER_OUTPUTS
UPDATE batch_members SET worker_data_json=given.worker_data_json FROM batch_members, (SELECT id, worker_data_json COLLATE Latin1_General_100_BIN2 AS worker_data_json FROM OPENJSON(:given) WITH (id BIGINT '$[0]', worker_data_json NVARCHAR(MAX) '$[1]')) AS given WHERE batch_members.id = given.id;

-- CAUGHT_UP
UPDATE batch_members SET catch_up_due=0 FROM batch_members, (SELECT id, generation FROM OPENJSON(:given) WITH (id BIGINT '$[0]', generation INT '$[1]')) AS given WHERE batch_members.id = given.id AND batch_members.generation = given.generation AND batch_members.catch_up_due = 1;

-- REMOVAL_STARTED
UPDATE batch_members SET removal_due=0 FROM batch_members, (SELECT id, generation FROM OPENJSON(:given) WITH (id BIGINT '$[0]', generation INT '$[1]')) AS given WHERE batch_members.id = given.id AND batch_members.generation = given.generation AND batch_members.removal_due = 1;

-- COMPLETED
SELECT batch_members.member_key_folded, batch_members.id
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.status = 'completed' ORDER BY batch_members.id;

-- REACTIVATE_COMPLETED
UPDATE batch_members SET status=:status, completed_at=:completed_at FROM batch_members, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE batch_members.id = given.id AND batch_members.status = 'completed';

-- OWED_CATCH_UP
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.data_json, batch_members.worker_data_json, batch_members.catch_up_due, batch_members.removal_due
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id
WHERE batch_members.catch_up_due = 1 AND batches.status = 'active' ORDER BY batch_members.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- CLEAR_CATCH_UP
UPDATE batch_members SET catch_up_due=0 WHERE batch_members.batch_id = :batch AND batch_members.catch_up_due = 1 AND batch_members.generation = :generation_1;

-- OWED_REMOVAL
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.generation, batch_members.data_json, batch_members.worker_data_json, batch_members.catch_up_due, batch_members.removal_due
FROM batch_members
WHERE batch_members.removal_due = 1 ORDER BY batch_members.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- COUNT_BY_STATUS
SELECT batch_members.status, count(*) AS count_1
FROM batch_members
WHERE batch_members.batch_id = :batch GROUP BY batch_members.status ORDER BY batch_members.status;
