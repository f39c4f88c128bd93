-- OPEN_OF_NAME
SELECT batches.id, runbooks.name, runbooks.version, batches.status, batches.batch_start_time, batches.loaded_at, batches.started_at, batches.is_manual, batches.rerunning_init_version
FROM batches JOIN runbooks ON runbooks.id = batches.runbook_id
WHERE batches.status IN ('detected', 'init_dispatched', 'active') AND batches.runbook_name_folded = :named ORDER BY batches.id;

-- BATCHES_AT
SELECT batches.id, batches.batch_start_time, CASE WHEN (batches.status IN ('detected', 'init_dispatched', 'active')) THEN 1 ELSE 0 END AS is_open
FROM batches JOIN (SELECT start FROM OPENJSON(:given) WITH (start DATETIME2(6) '$[0]')) AS given ON given.start = batches.batch_start_time
WHERE batches.runbook_name_folded = :named AND batches.is_manual = 0 ORDER BY batches.id;

-- LISTED
SELECT batch_members.id, batch_members.member_key_folded, batch_members.status, CASE WHEN (batch_members.status = 'active') THEN batch_members.data_json END AS data_json, CASE WHEN (batch_members.removal_held_at IS NOT NULL) THEN 1 ELSE 0 END AS held
FROM batch_members
WHERE batch_members.batch_id = :batch ORDER BY batch_members.id;

-- KEYS_OF
SELECT batch_members.member_key_folded
FROM batch_members
WHERE batch_members.batch_id = :batch;

-- ELSEWHERE
SELECT batch_members.member_key_folded, batch_members.id, batch_members.batch_id, CASE WHEN (batch_members.status = 'active') THEN 1 ELSE 0 END AS is_active, batch_members.removal_due
FROM batch_members JOIN (SELECT member_key_folded COLLATE Latin1_General_100_BIN2 AS member_key_folded FROM OPENJSON(:given) WITH (member_key_folded NVARCHAR(513) '$[0]')) AS given ON given.member_key_folded = batch_members.member_key_folded JOIN batches ON batches.id = batch_members.batch_id
WHERE batches.runbook_name_folded = :named AND batch_members.status IN ('active', 'removed', 'failed') ORDER BY batch_members.id;

-- FAILED_INIT_RERUNS
SELECT init_executions.batch_id, init_executions.step_name, init_executions.error_message
FROM init_executions JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = init_executions.batch_id JOIN batches ON batches.id = init_executions.batch_id
WHERE batches.status = 'active' AND init_executions.runbook_version = :runbook_version AND init_executions.status IN ('failed', 'poll_timeout') ORDER BY init_executions.id;
