-- LOCK_BATCHES
SELECT batches.id
FROM batches WITH (UPDLOCK, ROWLOCK)
WHERE batches.id IN (SELECT given.id
FROM (SELECT * FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) ORDER BY batches.id;

-- SHARE_BATCHES
SELECT batches.id
FROM batches WITH (HOLDLOCK, ROWLOCK)
WHERE batches.id IN (SELECT given.id
FROM (SELECT * FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) ORDER BY batches.id;

-- LOCK_MEMBERS
SELECT batch_members.id
FROM batch_members WITH (UPDLOCK, ROWLOCK)
WHERE batch_members.id IN (SELECT given.id
FROM (SELECT * FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given) ORDER BY batch_members.id;
