-- READ
SELECT idempotent_answers.request_hash, idempotent_answers.status_code, idempotent_answers.body, idempotent_answers.created_at
FROM idempotent_answers
WHERE idempotent_answers.actor = :who AND idempotent_answers.idempotency_key = :key;

-- FORGET_ONE
DELETE FROM idempotent_answers WHERE idempotent_answers.actor = :who AND idempotent_answers.idempotency_key = :key AND idempotent_answers.created_at < :before;

-- ANSWER
UPDATE idempotent_answers SET status_code=:status, body=:answer WHERE idempotent_answers.actor = :who AND idempotent_answers.idempotency_key = :key;

-- FORGET
DELETE FROM idempotent_answers WHERE idempotent_answers.id IN (SELECT idempotent_answers.id
FROM idempotent_answers
WHERE idempotent_answers.created_at < :before ORDER BY idempotent_answers.created_at
 OFFSET :param_1 ROWS
 FETCH FIRST :size ROWS ONLY);
