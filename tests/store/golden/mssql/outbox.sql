-- WRITE
INSERT INTO outbox (topic, message_id, properties, body, deliver_at, time_to_live_ms, written_at) SELECT :topic AS anon_1, written.message_id, written.properties, written.body, written.deliver_at, written.time_to_live_ms, :now AS anon_2
FROM (SELECT position, message_id COLLATE Latin1_General_100_BIN2 AS message_id, properties COLLATE Latin1_General_100_BIN2 AS properties, body COLLATE Latin1_General_100_BIN2 AS body, deliver_at, time_to_live_ms FROM OPENJSON(:written) WITH (position BIGINT '$[0]', message_id NVARCHAR(MAX) '$[1]', properties NVARCHAR(MAX) '$[2]', body NVARCHAR(MAX) '$[3]', deliver_at BIGINT '$[4]', time_to_live_ms BIGINT '$[5]')) AS written ORDER BY written.position
 OFFSET :param_1 ROWS;

-- FREE
SELECT outbox.id, outbox.topic, outbox.message_id, outbox.properties, outbox.body, outbox.deliver_at, outbox.time_to_live_ms
FROM outbox WITH (UPDLOCK, ROWLOCK, READPAST)
WHERE outbox.sequence IS NULL AND outbox.taken_until <= :now ORDER BY outbox.id
 OFFSET 0 ROWS
 FETCH FIRST :limit ROWS ONLY;

-- TAKE
UPDATE outbox SET taken_until=:until WHERE outbox.id IN (SELECT taken.id
FROM (SELECT id FROM OPENJSON(:taken) WITH (id BIGINT '$[0]')) AS taken);

-- SENT
DELETE FROM outbox WHERE outbox.id IN (SELECT taken.id
FROM (SELECT id FROM OPENJSON(:taken) WITH (id BIGINT '$[0]')) AS taken);

-- WAITING
SELECT count(*) AS count_1, min(outbox.written_at) AS min_1
FROM outbox
WHERE outbox.sequence IS NULL;

-- SCHEDULED
UPDATE outbox SET sequence=scheduled.sequence FROM outbox, (SELECT id, sequence FROM OPENJSON(:scheduled) WITH (id BIGINT '$[0]', sequence BIGINT '$[1]')) AS scheduled WHERE outbox.id = scheduled.id;

-- TO_WITHDRAW
SELECT outbox.id, outbox.sequence
FROM outbox WITH (UPDLOCK, ROWLOCK)
WHERE outbox.topic = :topic AND outbox.message_id IN (SELECT withdrawn.message_id
FROM (SELECT message_id COLLATE Latin1_General_100_BIN2 AS message_id FROM OPENJSON(:withdrawn) WITH (message_id NVARCHAR(129) '$[0]')) AS withdrawn) AND outbox.deliver_at > :now;

-- OVER
DELETE FROM outbox WHERE outbox.sequence IS NOT NULL AND outbox.deliver_at <= :now;
