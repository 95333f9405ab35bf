-- Keys: one device only, an end, rotation, and where each was used last.

-- The device that an ingest key is for; empty: all.
ALTER TABLE keys ADD COLUMN device TEXT NOT NULL DEFAULT '';
-- Nothing is taken with the key from this time on.
ALTER TABLE keys ADD COLUMN expires_at INTEGER;
-- A new key of the same name replaced this one, which is valid until its end.
ALTER TABLE keys ADD COLUMN replaced_at INTEGER;
ALTER TABLE keys ADD COLUMN last_used_at INTEGER;
-- Addresses that the key was used from, as a JSON list, the latest last.
ALTER TABLE keys ADD COLUMN sources TEXT NOT NULL DEFAULT '[]';
DROP INDEX keys_active_name;
CREATE UNIQUE INDEX keys_active_name ON keys (account_id, name) WHERE revoked_at IS NULL AND replaced_at IS NULL;
