-- ADD_MEMBERS
INSERT INTO batch_members (batch_id, member_key, member_key_folded, data_json, status, added_at, add_dispatched_at, catch_up_due) SELECT :batch AS anon_1, given.member_key, given.member_key_folded, given.data_json, :member_status AS anon_2, :now AS anon_3, :announced_at AS anon_4, :late AS anon_5
FROM (SELECT member_key COLLATE Latin1_General_100_BIN2 AS member_key, member_key_folded COLLATE Latin1_General_100_BIN2 AS member_key_folded, data_json COLLATE Latin1_General_100_BIN2 AS data_json FROM OPENJSON(:given) WITH (member_key NVARCHAR(513) '$[0]', member_key_folded NVARCHAR(513) '$[1]', data_json NVARCHAR(MAX) '$[2]')) AS given
WHERE NOT (EXISTS (SELECT *
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.member_key_folded = given.member_key_folded));

-- OF_KEYS
SELECT batch_members.id, batch_members.member_key, batch_members.generation
FROM batch_members JOIN (SELECT member_key COLLATE Latin1_General_100_BIN2 AS member_key, member_key_folded COLLATE Latin1_General_100_BIN2 AS member_key_folded, data_json COLLATE Latin1_General_100_BIN2 AS data_json FROM OPENJSON(:given) WITH (member_key NVARCHAR(513) '$[0]', member_key_folded NVARCHAR(513) '$[1]', data_json NVARCHAR(MAX) '$[2]')) AS given ON given.member_key_folded = batch_members.member_key_folded
WHERE batch_members.batch_id = :batch AND batch_members.catch_up_due = 1 ORDER BY batch_members.id;

-- REMOVE
UPDATE batch_members SET status=:status, removed_at=:now, removed_by=:by, remove_dispatched_at=:now, catch_up_due=:catch_up_due, removal_due=:removal_due, removal_held_at=NULL OUTPUT inserted.id, inserted.batch_id, inserted.member_key, inserted.generation FROM batch_members, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE batch_members.id = given.id AND batch_members.status = 'active' AND (0 = :released OR CASE WHEN (batch_members.removal_held_at IS NULL) THEN :param_1 ELSE :param_2 END = :param_3);

-- REACTIVATE
UPDATE batch_members SET data_json=given.data_json, worker_data_json=NULL, status=:status, generation=(batch_members.generation + :generation_1), removed_at=NULL, removed_by=NULL, add_dispatched_at=:now, catch_up_due=:catch_up_due OUTPUT inserted.id, inserted.batch_id, inserted.member_key, inserted.generation FROM batch_members, (SELECT id, data_json COLLATE Latin1_General_100_BIN2 AS data_json FROM OPENJSON(:given) WITH (id BIGINT '$[0]', data_json NVARCHAR(MAX) '$[1]')) AS given WHERE batch_members.id = given.id AND batch_members.status = 'removed' AND batch_members.removal_due = 0;

-- REFRESH
UPDATE batch_members SET data_json=given.data_json FROM batch_members, (SELECT id, data_json COLLATE Latin1_General_100_BIN2 AS data_json FROM OPENJSON(:given) WITH (id BIGINT '$[0]', data_json NVARCHAR(MAX) '$[1]')) AS given WHERE batch_members.id = given.id AND batch_members.status = 'active';

-- ADOPT
UPDATE batches SET runbook_id=:runbook WHERE batches.id = :batch AND batches.loaded_at IS NULL;

-- TAKE_BACK_MEMBERS
DELETE FROM batch_members WHERE batch_members.batch_id = :batch AND batch_members.id IN (SELECT given.id
FROM (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) AND (EXISTS (SELECT *
FROM batches
WHERE batches.id = batch_members.batch_id AND batches.loaded_at IS NULL));

-- TAKE_BACK
DELETE FROM batches WHERE batches.id = :batch AND batches.loaded_at IS NULL;

-- LOADED
UPDATE batches SET loaded_at=:now WHERE batches.id = :batch AND batches.loaded_at IS NULL;
