-- DATABASE_TIME
SELECT SYSUTCDATETIME() AS database_time_1;

-- KEEP
UPDATE leases SET expires_at=:until WHERE leases.name = :named AND leases.holder = :by;

-- TAKE
UPDATE leases SET holder=:by, expires_at=:until WHERE leases.name = :named AND leases.expires_at <= :now;

-- BEGIN
INSERT INTO leases (name, holder, expires_at) SELECT :named AS anon_1, :by AS anon_2, :until AS anon_3
WHERE NOT (EXISTS (SELECT *
FROM leases
WHERE leases.name = :named));

-- HELD
SELECT leases.holder
FROM leases WITH (REPEATABLEREAD, ROWLOCK)
WHERE leases.name = :named AND leases.holder = :by;

-- GIVE_BACK
DELETE FROM leases WHERE leases.name = :named AND leases.holder = :by;

-- FREE
DELETE FROM leases WHERE leases.name = :named;

-- READ
SELECT leases.holder, leases.expires_at
FROM leases
WHERE leases.name = :named;
