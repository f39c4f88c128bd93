-- READ
SELECT runbook_automation_settings.automation_enabled, runbook_automation_settings.enabled_at, runbook_automation_settings.enabled_by, runbook_automation_settings.disabled_at, runbook_automation_settings.disabled_by
FROM runbook_automation_settings
WHERE runbook_automation_settings.runbook_name = :named;

-- SWITCHED_OFF
SELECT runbook_automation_settings.runbook_name
FROM runbook_automation_settings
WHERE runbook_automation_settings.automation_enabled = 0;

-- SWITCH[True]
UPDATE runbook_automation_settings SET automation_enabled=:automation_enabled, enabled_at=:now, enabled_by=:by WHERE runbook_automation_settings.runbook_name = :named;

-- SWITCH
UPDATE runbook_automation_settings SET automation_enabled=:automation_enabled, disabled_at=:now, disabled_by=:by WHERE runbook_automation_settings.runbook_name = :named;
