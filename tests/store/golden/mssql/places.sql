-- TAKEN
SELECT given.member_key_folded, batches.id
FROM (SELECT * FROM OPENJSON(:given) WITH (member_key_folded NVARCHAR(MAX) '$[0]')) AS given JOIN batch_members ON batch_members.member_key_folded = given.member_key_folded JOIN batches ON batches.id = batch_members.batch_id
WHERE batches.runbook_name_folded = :name AND batches.id != :besides AND batches.status IN ('detected', 'init_dispatched', 'active') AND (batch_members.status = 'active' OR batch_members.status = 'removed' AND (batch_members.removal_due = 1 OR (EXISTS (SELECT *
FROM removal_executions
WHERE removal_executions.batch_member_id = batch_members.id AND removal_executions.status IN ('pending', 'dispatched', 'polling'))))) ORDER BY batches.id;

-- LOCK_RUNBOOK
SELECT runbooks.id
FROM runbooks WITH (UPDLOCK, ROWLOCK)
WHERE runbooks.id = :runbook;
