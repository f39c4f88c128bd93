-- BATCH_AT
SELECT batches.id
FROM batches
WHERE batches.runbook_name_folded = :name AND batches.batch_start_time = :start AND batches.is_manual = 0;

-- LISTED
SELECT batch_members.id, batch_members.member_key_folded, batch_members.status, batch_members.data_json
FROM batch_members
WHERE batch_members.batch_id = :batch ORDER BY batch_members.id;
