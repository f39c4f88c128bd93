-- HOLD
UPDATE batch_members SET removal_held_at=coalesce(batch_members.removal_held_at, :now) FROM batch_members, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE batch_members.id = given.id AND batch_members.status = 'active';

-- UNHOLD
UPDATE batch_members SET removal_held_at=NULL FROM batch_members, (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given WHERE batch_members.id = given.id;

-- HELD
SELECT batch_members.id, batch_members.member_key, batch_members.removal_held_at
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.id > :after AND batch_members.removal_held_at IS NOT NULL AND batch_members.status = 'active' ORDER BY batch_members.id
 OFFSET 0 ROWS
 FETCH FIRST :size ROWS ONLY;

-- COUNTS
SELECT batch_members.batch_id, count(*) AS count_1
FROM batch_members JOIN (SELECT id FROM OPENJSON(:given) WITH (id BIGINT '$[0]')) AS given ON given.id = batch_members.batch_id
WHERE batch_members.removal_held_at IS NOT NULL AND batch_members.status = 'active' GROUP BY batch_members.batch_id;
