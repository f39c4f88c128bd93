-- LIST
SELECT dead_messages.id, dead_messages.at, dead_messages.topic, dead_messages.message_id, dead_messages.message_type, dead_messages.reason, dead_messages.error, dead_messages.properties_json, dead_messages.body, dead_messages.resubmitted_at, dead_messages.resubmitted_by
FROM dead_messages
WHERE dead_messages.id < :before ORDER BY dead_messages.id DESC
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- ONE
SELECT dead_messages.id, dead_messages.at, dead_messages.topic, dead_messages.message_id, dead_messages.message_type, dead_messages.reason, dead_messages.error, dead_messages.properties_json, dead_messages.body, dead_messages.resubmitted_at, dead_messages.resubmitted_by
FROM dead_messages
WHERE dead_messages.id = :message;

-- RESUBMITTED
UPDATE dead_messages SET resubmitted_at=:now, resubmitted_by=:by WHERE dead_messages.id = :message AND dead_messages.resubmitted_at IS NULL;
