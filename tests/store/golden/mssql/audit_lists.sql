-- LIST
SELECT audit.id, audit.at, audit.actor, audit.action, audit.target, audit.batch_id, audit.detail_json
FROM audit
WHERE audit.id < :before AND (:actor IS NULL OR audit.actor = :actor) AND (:since IS NULL OR audit.at >= :since) ORDER BY audit.id DESC
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- LIST_OF_BATCH
SELECT audit.id, audit.at, audit.actor, audit.action, audit.target, audit.batch_id, audit.detail_json
FROM audit
WHERE audit.id < :before AND (:actor IS NULL OR audit.actor = :actor) AND (:since IS NULL OR audit.at >= :since) AND audit.batch_id = :batch ORDER BY audit.id DESC
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;
