-- WINDING_UP
SELECT batches.id, batches.status, batches.cancelled_by
FROM batches
WHERE batches.winding_up = 1 ORDER BY batches.id;

-- WOUND_UP
UPDATE batches SET winding_up=0 WHERE batches.id = :batch AND batches.winding_up = 1;

-- CANCEL_SOME_STEPS
UPDATE step_executions SET status=:status, completed_at=:now, poll_check_at=NULL, retry_after=NULL WHERE step_executions.id IN (SELECT step_executions.id
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id
WHERE phase_executions.batch_id = :batch AND step_executions.status IN ('pending', 'dispatched', 'polling') ORDER BY step_executions.id
 OFFSET :param_1 ROWS
 FETCH FIRST :size ROWS ONLY);

-- END_SOME_MEMBERS
UPDATE batch_members SET status=:outcome, removed_at=CASE WHEN (:outcome = :param_1) THEN :now ELSE batch_members.removed_at END, removed_by=:by, failed_at=CASE WHEN (:outcome = :param_2) THEN :now ELSE batch_members.failed_at END, catch_up_due=0 WHERE batch_members.id IN (SELECT batch_members.id
FROM batch_members
WHERE batch_members.batch_id = :batch AND batch_members.status = 'active' ORDER BY batch_members.id
 OFFSET :param_3 ROWS
 FETCH FIRST :size ROWS ONLY);
