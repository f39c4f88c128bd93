-- a member has at most one job under way
SELECT jobs_out.member
FROM (SELECT step_executions.batch_member_id AS member
FROM step_executions
WHERE step_executions.job_out = 1 AND step_executions.batch_member_id IS NOT NULL UNION ALL SELECT rollback_executions.batch_member_id AS member
FROM rollback_executions
WHERE rollback_executions.job_out = 1 AND rollback_executions.batch_member_id IS NOT NULL UNION ALL SELECT removal_executions.batch_member_id AS member
FROM removal_executions
WHERE removal_executions.job_out = 1 AND removal_executions.batch_member_id IS NOT NULL) AS jobs_out GROUP BY jobs_out.member
HAVING count(*) > :count_1;

-- a member begins a step only when the one before it succeeded
SELECT step_executions.id AS step
FROM step_executions JOIN step_executions AS earlier ON earlier.batch_member_id = step_executions.batch_member_id AND earlier.phase_execution_id = step_executions.phase_execution_id AND earlier.generation = step_executions.generation AND earlier.step_index = step_executions.step_index - :step_index_1
WHERE step_executions.status IN ('dispatched', 'polling', 'succeeded', 'failed', 'poll_timeout') AND earlier.status != 'succeeded';

-- a member begins a phase only when all it had begun before is over
SELECT step_executions.id AS step
FROM step_executions JOIN step_executions AS earlier ON earlier.batch_member_id = step_executions.batch_member_id AND earlier.phase_execution_id < step_executions.phase_execution_id AND earlier.generation = step_executions.generation
WHERE step_executions.status IN ('dispatched', 'polling', 'succeeded', 'failed', 'poll_timeout') AND earlier.status IN ('pending', 'dispatched', 'polling');

-- a step execution is tried again at most as often as it may
SELECT step_executions.id
FROM step_executions
WHERE step_executions.retry_count > step_executions.max_retries;

-- a init execution is tried again at most as often as it may
SELECT init_executions.id
FROM init_executions
WHERE init_executions.retry_count > init_executions.max_retries;

-- a rollback execution is tried again at most as often as it may
SELECT rollback_executions.id
FROM rollback_executions
WHERE rollback_executions.retry_count > rollback_executions.max_retries;

-- a removal execution is tried again at most as often as it may
SELECT removal_executions.id
FROM removal_executions
WHERE removal_executions.retry_count > removal_executions.max_retries;

-- a step execution that ended says when, and how when it failed
SELECT step_executions.id
FROM step_executions
WHERE (step_executions.status NOT IN ('pending', 'dispatched', 'polling')) AND step_executions.completed_at IS NULL OR step_executions.status IN ('failed', 'poll_timeout') AND step_executions.error_message IS NULL;

-- a init execution that ended says when, and how when it failed
SELECT init_executions.id
FROM init_executions
WHERE (init_executions.status NOT IN ('pending', 'dispatched', 'polling')) AND init_executions.completed_at IS NULL OR init_executions.status IN ('failed', 'poll_timeout') AND init_executions.error_message IS NULL;

-- a rollback execution that ended says when, and how when it failed
SELECT rollback_executions.id
FROM rollback_executions
WHERE (rollback_executions.status NOT IN ('pending', 'dispatched', 'polling')) AND rollback_executions.completed_at IS NULL OR rollback_executions.status IN ('failed', 'poll_timeout') AND rollback_executions.error_message IS NULL;

-- a removal execution that ended says when, and how when it failed
SELECT removal_executions.id
FROM removal_executions
WHERE (removal_executions.status NOT IN ('pending', 'dispatched', 'polling')) AND removal_executions.completed_at IS NULL OR removal_executions.status IN ('failed', 'poll_timeout') AND removal_executions.error_message IS NULL;

-- a dispatched step execution has its job out, and one that ended has not
SELECT step_executions.id
FROM step_executions
WHERE step_executions.status = 'dispatched' AND step_executions.job_out != 1 OR step_executions.job_out = 1 AND step_executions.status IN ('pending', 'succeeded', 'failed', 'poll_timeout');

-- a dispatched init execution has its job out, and one that ended has not
SELECT init_executions.id
FROM init_executions
WHERE init_executions.status = 'dispatched' AND init_executions.job_out != 1 OR init_executions.job_out = 1 AND init_executions.status IN ('pending', 'succeeded', 'failed', 'poll_timeout');

-- a dispatched rollback execution has its job out, and one that ended has not
SELECT rollback_executions.id
FROM rollback_executions
WHERE rollback_executions.status = 'dispatched' AND rollback_executions.job_out != 1 OR rollback_executions.job_out = 1 AND rollback_executions.status IN ('pending', 'succeeded', 'failed', 'poll_timeout');

-- a dispatched removal execution has its job out, and one that ended has not
SELECT removal_executions.id
FROM removal_executions
WHERE removal_executions.status = 'dispatched' AND removal_executions.job_out != 1 OR removal_executions.job_out = 1 AND removal_executions.status IN ('pending', 'succeeded', 'failed', 'poll_timeout');

-- a batch that ended has no open phase
SELECT phase_executions.id AS phase
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id
WHERE (batches.status NOT IN ('detected', 'init_dispatched', 'active')) AND phase_executions.status IN ('pending', 'dispatched');

-- a phase runs only in a batch whose init is done
SELECT phase_executions.id AS phase
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id
WHERE batches.status IN ('detected', 'init_dispatched') AND (phase_executions.status NOT IN ('pending'));

-- who failed or is through has no open step
SELECT batch_members.id AS member, step_executions.id AS step
FROM batch_members JOIN step_executions ON step_executions.batch_member_id = batch_members.id
WHERE batch_members.status IN ('failed', 'completed') AND step_executions.status IN ('pending', 'dispatched', 'polling');

-- who failed in a batch that went on has a step that failed
SELECT batch_members.id AS member
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id
WHERE batch_members.status = 'failed' AND NOT (EXISTS (SELECT *
FROM step_executions
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status IN ('failed', 'poll_timeout'))) AND NOT (EXISTS (SELECT *
FROM init_executions
WHERE init_executions.batch_id = batches.id AND init_executions.status IN ('failed', 'poll_timeout')));

-- who is through failed nowhere in this stay
SELECT batch_members.id AS member, step_executions.id AS step
FROM batch_members JOIN step_executions ON step_executions.batch_member_id = batch_members.id AND step_executions.generation = batch_members.generation
WHERE batch_members.status = 'completed' AND step_executions.status IN ('failed', 'poll_timeout', 'cancelled');

-- a phase that is written wholly has steps for every active member
SELECT phase_executions.id AS phase, batch_members.id AS member
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id JOIN batch_members ON batch_members.batch_id = phase_executions.batch_id
WHERE batches.status = 'active' AND phase_executions.expanded_at IS NOT NULL AND phase_executions.status IN ('dispatched', 'completed', 'failed') AND batch_members.status = 'active' AND batch_members.catch_up_due != 1 AND NOT (EXISTS (SELECT *
FROM step_executions
WHERE step_executions.phase_execution_id = phase_executions.id AND step_executions.batch_member_id = batch_members.id AND step_executions.generation = batch_members.generation));

-- a completed phase had a member who went through it
SELECT phase_executions.id AS phase
FROM phase_executions
WHERE phase_executions.status = 'completed' AND NOT (EXISTS (SELECT *
FROM step_executions
WHERE step_executions.phase_execution_id = phase_executions.id AND step_executions.status = 'succeeded'));

-- a failed phase had members who failed
SELECT phase_executions.id AS phase
FROM phase_executions
WHERE phase_executions.status = 'failed' AND NOT (EXISTS (SELECT *
FROM batch_members
WHERE batch_members.batch_id = phase_executions.batch_id AND batch_members.status = 'failed'));

-- a batch that completed did not fail throughout
SELECT batches.id AS batch
FROM batches
WHERE batches.status = 'completed' AND (EXISTS (SELECT *
FROM phase_executions
WHERE phase_executions.batch_id = batches.id AND phase_executions.status = 'failed')) AND NOT (EXISTS (SELECT *
FROM phase_executions
WHERE phase_executions.batch_id = batches.id AND phase_executions.status = 'completed'));

-- a batch fails only through its init or when no phase ended well
SELECT batches.id AS batch
FROM batches
WHERE batches.status = 'failed' AND (EXISTS (SELECT *
FROM phase_executions
WHERE phase_executions.batch_id = batches.id AND phase_executions.status = 'completed'));

-- who has left waits until the hands are still before the steps of leaving begin
SELECT removal_executions.id AS removal
FROM removal_executions JOIN (SELECT step_executions.batch_member_id AS member
FROM step_executions
WHERE step_executions.job_out = 1 AND step_executions.batch_member_id IS NOT NULL UNION ALL SELECT rollback_executions.batch_member_id AS member
FROM rollback_executions
WHERE rollback_executions.job_out = 1 AND rollback_executions.batch_member_id IS NOT NULL UNION ALL SELECT removal_executions.batch_member_id AS member
FROM removal_executions
WHERE removal_executions.job_out = 1 AND removal_executions.batch_member_id IS NOT NULL) AS jobs_out ON jobs_out.member = removal_executions.batch_member_id
WHERE removal_executions.job_out = 1 AND (EXISTS (SELECT *
FROM step_executions
WHERE step_executions.batch_member_id = removal_executions.batch_member_id AND (step_executions.job_out = 1 OR step_executions.status = 'polling')));

-- a key is active in at most one open batch of a runbook
SELECT batches.runbook_name_folded AS runbook, min(batch_members.id) AS member
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id
WHERE batch_members.status = 'active' AND batches.status IN ('detected', 'init_dispatched', 'active') GROUP BY batches.runbook_name_folded, batch_members.member_key_folded
HAVING count(*) > :count_1;

-- jobs are under way for a key in at most one batch of a runbook
SELECT batches.runbook_name_folded AS runbook, min(batch_members.id) AS member
FROM (SELECT step_executions.batch_member_id AS member
FROM step_executions
WHERE step_executions.job_out = 1 AND step_executions.batch_member_id IS NOT NULL UNION ALL SELECT rollback_executions.batch_member_id AS member
FROM rollback_executions
WHERE rollback_executions.job_out = 1 AND rollback_executions.batch_member_id IS NOT NULL UNION ALL SELECT removal_executions.batch_member_id AS member
FROM removal_executions
WHERE removal_executions.job_out = 1 AND removal_executions.batch_member_id IS NOT NULL) AS jobs_out JOIN batch_members ON batch_members.id = jobs_out.member JOIN batches ON batches.id = batch_members.batch_id GROUP BY batches.runbook_name_folded, batch_members.member_key_folded
HAVING count(DISTINCT batch_members.batch_id) > :count_1;

-- a cancelled step was not sent after its member left
SELECT step_executions.id AS step
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id
WHERE batch_members.status = 'removed' AND step_executions.generation = batch_members.generation AND step_executions.dispatched_at > batch_members.removed_at;

-- no step was sent after its batch was cancelled
SELECT step_executions.id AS step
FROM step_executions JOIN batches ON batches.id = step_executions.batch_id
WHERE batches.status = 'cancelled' AND step_executions.dispatched_at > batches.completed_at;

-- every batch has ended
SELECT batches.id AS batch, batches.status
FROM batches
WHERE batches.status IN ('detected', 'init_dispatched', 'active');

-- every member has one final state
SELECT batch_members.id AS member, batch_members.status
FROM batch_members
WHERE batch_members.status = 'active';

-- nobody's coming or leaving is still to be handled
SELECT batch_members.id AS member
FROM batch_members
WHERE batch_members.catch_up_due = 1 OR batch_members.removal_due = 1;

-- every batch is wound up
SELECT batches.id AS batch
FROM batches
WHERE batches.winding_up = 1;

-- no step execution is open or has its job out
SELECT step_executions.id, step_executions.status
FROM step_executions
WHERE step_executions.status IN ('pending', 'dispatched', 'polling') OR step_executions.job_out = 1;

-- no init execution is open or has its job out
SELECT init_executions.id, init_executions.status
FROM init_executions
WHERE init_executions.status IN ('pending', 'dispatched', 'polling') OR init_executions.job_out = 1;

-- no rollback execution is open or has its job out
SELECT rollback_executions.id, rollback_executions.status
FROM rollback_executions
WHERE rollback_executions.status IN ('pending', 'dispatched', 'polling') OR rollback_executions.job_out = 1;

-- no removal execution is open or has its job out
SELECT removal_executions.id, removal_executions.status
FROM removal_executions
WHERE removal_executions.status IN ('pending', 'dispatched', 'polling') OR removal_executions.job_out = 1;

-- no rollback is under way
SELECT step_executions.id AS step
FROM step_executions
WHERE step_executions.rollback_status = 'running';

-- what failed and names a rollback was undone, or that failed, or its batch ended
SELECT step_executions.id AS step
FROM step_executions
WHERE step_executions.status IN ('failed', 'poll_timeout') AND step_executions.on_failure IS NOT NULL AND step_executions.rollback_status IS NULL;

-- a rollback that succeeded had all its steps succeed
SELECT step_executions.id AS step
FROM step_executions JOIN rollback_executions ON rollback_executions.step_execution_id = step_executions.id
WHERE step_executions.rollback_status = 'succeeded' AND rollback_executions.status != 'succeeded';

-- a rollback that failed has a step that failed
SELECT step_executions.id AS step
FROM step_executions
WHERE step_executions.rollback_status = 'failed' AND NOT (EXISTS (SELECT *
FROM rollback_executions
WHERE rollback_executions.step_execution_id = step_executions.id AND rollback_executions.status IN ('failed', 'poll_timeout')));

-- who is through went through every phase that ran
SELECT batch_members.id AS member, phase_executions.id AS phase
FROM batch_members JOIN phase_executions ON phase_executions.batch_id = batch_members.batch_id JOIN batches ON batches.id = batch_members.batch_id
WHERE batch_members.status = 'completed' AND (phase_executions.status IN ('completed', 'failed') OR phase_executions.status = 'skipped' AND phase_executions.skip_reason = 'empty') AND phase_executions.expanded_at IS NOT NULL AND (NOT (EXISTS (SELECT *
FROM step_executions
WHERE step_executions.phase_execution_id = phase_executions.id AND step_executions.batch_member_id = batch_members.id AND step_executions.generation = batch_members.generation)) AND NOT (EXISTS (SELECT *
FROM batch_members AS elsewhere, batches AS its_batch
WHERE elsewhere.member_key_folded = batch_members.member_key_folded AND elsewhere.batch_id != batch_members.batch_id AND elsewhere.batch_id = its_batch.id AND its_batch.runbook_name_folded = batches.runbook_name_folded)) OR (EXISTS (SELECT *
FROM step_executions
WHERE step_executions.phase_execution_id = phase_executions.id AND step_executions.batch_member_id = batch_members.id AND step_executions.generation = batch_members.generation AND step_executions.status != 'succeeded')));

-- no message was put aside
SELECT dead_messages.id AS message, dead_messages.reason
FROM dead_messages;
