-- SUPERSEDE_PENDING
UPDATE phase_executions SET status=:status, completed_at=:now WHERE phase_executions.batch_id = :batch AND phase_executions.status = 'pending';

-- TAKE_OVER
UPDATE batches SET runbook_id=:runbook, rerunning_init_version=:rerunning WHERE batches.id = :batch AND batches.status = 'active';
