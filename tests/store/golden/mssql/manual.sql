-- STARTED
UPDATE batches SET started_at=coalesce(batches.started_at, :now), current_phase=:phase WHERE batches.id = :batch;
