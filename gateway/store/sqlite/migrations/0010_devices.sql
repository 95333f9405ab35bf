-- Devices that are one.

-- The device that a merged one is part of since. Its row stays: what comes under its key goes there. Not a
-- foreign key, because salvage copies rows in the order of a damaged file.
ALTER TABLE devices ADD COLUMN merged_into INTEGER;

-- A MAC is the identity, whoever tells it. Where several devices have the same, the one that reported last gets
-- the key; the others keep theirs, by which they go on, until the user merges them.
UPDATE devices SET key = 'mac:' || lower(replace(replace(stable_id, ':', ''), '-', ''))
WHERE length(stable_id) IN (12, 17)
  AND length(replace(replace(stable_id, ':', ''), '-', '')) = 12
  AND replace(replace(stable_id, ':', ''), '-', '') NOT GLOB '*[^0-9A-Fa-f]*'
  AND id = (
    SELECT o.id FROM devices o
    WHERE lower(replace(replace(o.stable_id, ':', ''), '-', ''))
        = lower(replace(replace(devices.stable_id, ':', ''), '-', ''))
    ORDER BY (SELECT max(created_at) FROM readings WHERE device_id = o.id) DESC, o.id LIMIT 1);
