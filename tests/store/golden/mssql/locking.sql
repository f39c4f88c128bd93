-- LOCK_BATCHES
SELECT batches.id
FROM batches WITH (XLOCK, ROWLOCK, FORCESEEK) JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = batches.id ORDER BY batches.id;

-- SHARE_BATCHES
SELECT batches.id
FROM batches WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK) JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = batches.id ORDER BY batches.id;

-- LOCK_MEMBERS
SELECT batch_members.id
FROM batch_members WITH (UPDLOCK, ROWLOCK, FORCESEEK) JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = batch_members.id ORDER BY batch_members.id;
