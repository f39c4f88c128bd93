-- READ_VERSION
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.is_active, runbooks.overdue_behavior, runbooks.rerun_init, CASE WHEN (runbooks.last_error IS NOT NULL) THEN 1 ELSE 0 END AS has_error
FROM runbooks
WHERE runbooks.name_folded = :named AND runbooks.version = :version;

-- READ_ACTIVE
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.is_active, runbooks.overdue_behavior, runbooks.rerun_init, CASE WHEN (runbooks.last_error IS NOT NULL) THEN 1 ELSE 0 END AS has_error
FROM runbooks
WHERE runbooks.is_active = 1 ORDER BY runbooks.name_folded;

-- SHOW_ACTIVE
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.data_table_name, runbooks.is_active, runbooks.overdue_behavior, runbooks.rerun_init, runbooks.created_at, runbooks.published_by, runbooks.last_error, runbooks.last_error_at
FROM runbooks
WHERE runbooks.is_active = 1 AND runbooks.name_folded > :after ORDER BY runbooks.name_folded
 OFFSET :skip ROWS
 FETCH FIRST :size ROWS ONLY;

-- SHOW_VERSIONS
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.data_table_name, runbooks.is_active, runbooks.overdue_behavior, runbooks.rerun_init, runbooks.created_at, runbooks.published_by, runbooks.last_error, runbooks.last_error_at
FROM runbooks
WHERE runbooks.name_folded = :named ORDER BY runbooks.version DESC;

-- SHOW_VERSION
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.data_table_name, runbooks.is_active, runbooks.overdue_behavior, runbooks.rerun_init, runbooks.created_at, runbooks.published_by, runbooks.last_error, runbooks.last_error_at
FROM runbooks
WHERE runbooks.name_folded = :named AND runbooks.version = :version;

-- SHOW_ACTIVE_VERSION
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.data_table_name, runbooks.is_active, runbooks.overdue_behavior, runbooks.rerun_init, runbooks.created_at, runbooks.published_by, runbooks.last_error, runbooks.last_error_at
FROM runbooks
WHERE runbooks.name_folded = :named AND runbooks.is_active = 1;

-- LATEST_VERSION
SELECT coalesce(max(runbooks.version), :coalesce_2) AS coalesce_1
FROM runbooks
WHERE runbooks.name_folded = :named;

-- DEACTIVATE
UPDATE runbooks SET is_active=0 WHERE runbooks.name_folded = :named AND runbooks.is_active = 1;

-- REPORT_ERROR
UPDATE runbooks SET last_error=:message, last_error_at=:now WHERE runbooks.name_folded = :named AND runbooks.version = :runbook_version;

-- CLEAR_ERROR
UPDATE runbooks SET last_error=NULL, last_error_at=NULL WHERE runbooks.id = :runbook AND runbooks.last_error IS NOT NULL;

-- IGNORE_OVERDUE_APPLIED
UPDATE runbooks SET ignore_overdue_applied=1 WHERE runbooks.id = :runbook;
