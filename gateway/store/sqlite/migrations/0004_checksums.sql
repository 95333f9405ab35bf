-- Checksums of readings, what became of damaged files, and what salvage leaves for later.

-- See checksum.py; NULL: found damaged, kept here only because it cannot be deleted, and in quarantine, too.
ALTER TABLE readings ADD COLUMN crc INTEGER;
UPDATE readings SET crc = (((reading_crc(
    CAST(oid AS BLOB), CAST(created_at AS BLOB), CAST(received_at AS BLOB), CAST(name AS BLOB),
    CAST(gravity AS BLOB), CAST(gravity_unit AS BLOB), CAST(temp AS BLOB), CAST(temp_unit AS BLOB),
    CAST(comment AS BLOB), CAST(beer AS BLOB), CAST(interval AS BLOB), CAST(source AS BLOB),
    CAST(ip AS BLOB), CAST(extra AS BLOB), CAST(shown_gravity AS BLOB), CAST(shown_temp AS BLOB),
    CAST(raw AS BLOB)
) + coalesce(session_id, 0) % 4294967291 * 1481765933) & 4294967295) - 2147483648);

-- One row per damaged file. aside is the name that it was given, in the data directory; finished_at is NULL
-- while readings are still being salvaged from it. The counts are of readings.
CREATE TABLE damages (
    id          INTEGER PRIMARY KEY,
    found_at    INTEGER NOT NULL,
    reason      TEXT    NOT NULL,
    aside       TEXT    NOT NULL,
    salvaged    INTEGER NOT NULL DEFAULT 0,
    quarantined INTEGER NOT NULL DEFAULT 0,
    bad_pages   INTEGER NOT NULL DEFAULT 0,
    finished_at INTEGER
);

-- schema: the version, once more, because user_version is as easily damaged as anything else;
-- seq_floor: places in the queue up to here belong to salvaged readings; unsettled_until: whatever lies
-- below is read back before it is sent, unless its delivery is known; damaged, pruned: readings;
-- scrub_seq: how far the scrub has come; scrub_at: when it last came to the end.
INSERT INTO counters (name, value)
VALUES ('schema', 4), ('seq_floor', 0), ('unsettled_until', 0), ('damaged', 0), ('pruned', 0),
       ('scrub_seq', 0), ('scrub_at', 0);
