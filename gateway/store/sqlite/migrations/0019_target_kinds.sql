-- Targets of other kinds than a Brewing Data Service.

-- kind: service influx mqtt webhook brewfather brewersfriend grainfather. settings: JSON, without secrets.
ALTER TABLE targets ADD COLUMN kind TEXT NOT NULL DEFAULT 'service';
ALTER TABLE targets ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';

-- The newest reading of a device that a target took, of targets that show the latest only. Times are Unix seconds.
CREATE TABLE latest (
    target    TEXT    NOT NULL,
    device_id INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    sent_at   INTEGER NOT NULL,
    PRIMARY KEY (target, device_id)
) WITHOUT ROWID;

-- Every reading that such a target took; the others below the lane's watermark were passed over.
CREATE TABLE taken (
    target TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (target, seq)
) WITHOUT ROWID;

-- What goes to a target of another kind than service. what: all device brew; id: of that device or brew, 0 for
-- all. after: readings go whose place in the queue is higher.
CREATE TABLE routes (
    target TEXT    NOT NULL,
    what   TEXT    NOT NULL,
    id     INTEGER NOT NULL,
    after  INTEGER NOT NULL,
    PRIMARY KEY (target, what, id)
) WITHOUT ROWID;

-- How far such a target is, by device; 0 is for readings of no device.
CREATE TABLE lanes (
    target    TEXT    NOT NULL,
    device_id INTEGER NOT NULL,
    watermark INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (target, device_id)
) WITHOUT ROWID;
