-- What the user said of devices, what was inferred of them, and readings as a calibration shows them.

-- settings and inferred are JSON objects; rereading is set while what a device sent before is being read again
-- under other settings.
ALTER TABLE devices ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE devices ADD COLUMN inferred TEXT NOT NULL DEFAULT '{}';
ALTER TABLE devices ADD COLUMN rereading INTEGER NOT NULL DEFAULT 0;

-- What is given out instead of what was sent, where the user calibrated the device; sg and celsius follow it.
ALTER TABLE readings ADD COLUMN shown_gravity TEXT;
ALTER TABLE readings ADD COLUMN shown_temp TEXT;

ALTER TABLE quarantine ADD COLUMN hint TEXT;

CREATE TABLE counters (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters (name, value)
SELECT 'quarantine_bytes', coalesce(sum(length(body)), 0) FROM quarantine
UNION ALL SELECT 'quarantine_pushed_out', 0;
CREATE TRIGGER quarantine_added AFTER INSERT ON quarantine BEGIN
    UPDATE counters SET value = value + length(new.body) WHERE name = 'quarantine_bytes';
END;
CREATE TRIGGER quarantine_removed AFTER DELETE ON quarantine BEGIN
    UPDATE counters SET value = value - length(old.body) WHERE name = 'quarantine_bytes';
END;
