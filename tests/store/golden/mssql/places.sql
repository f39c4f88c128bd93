-- HOLD
SELECT runbooks.id
FROM runbooks WITH (UPDLOCK, ROWLOCK, FORCESEEK)
WHERE runbooks.name_folded = :named AND runbooks.version = :version_1;

-- OF_KEYS
SELECT given.member_key_folded, batch_members.id, batch_members.status
FROM (SELECT member_key_folded COLLATE Latin1_General_100_BIN2 AS member_key_folded FROM OPENJSON(:given) WITH (member_key_folded NVARCHAR(513) '$[0]')) AS given JOIN batch_members ON batch_members.id = (SELECT other.id
FROM batch_members AS other
WHERE other.batch_id = :batch AND other.member_key_folded = given.member_key_folded);
