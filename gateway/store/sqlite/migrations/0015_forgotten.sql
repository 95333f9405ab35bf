-- Devices that the owner has forgotten. The row stays while readings refer to it, under a key that no device has:
-- whatever reports under the old name is a new device.

-- forgotten_at: Unix seconds; NULL: not forgotten. readings_go: its readings are being deleted, too.
ALTER TABLE devices ADD COLUMN forgotten_at INTEGER;
ALTER TABLE devices ADD COLUMN readings_go INTEGER NOT NULL DEFAULT 0;
