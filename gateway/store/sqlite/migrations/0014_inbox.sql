-- Readings that wait for the owner's word, as they came.

-- Whose readings wait: a row for each device, source and reason. readings, bytes and the arrivals (Unix
-- milliseconds) of the first and the last are those of its payloads, so that no list has to be counted.
-- accepted: the payloads are about to become readings; a start goes on with it.
CREATE TABLE inbox_names (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    device_key TEXT    NOT NULL,
    source     TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    family     TEXT    NOT NULL,
    stable_id  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    readings   INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    first_at   INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    accepted   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (device_key, source, reason)
);

-- A payload has a row for each name in it that waits. Not a foreign key, because salvage copies rows in the
-- order of a damaged file. readings: how many of the name are in it. source is the address as it was.
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name_id     INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    readings    INTEGER NOT NULL,
    channel     TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    driver      TEXT,
    hint        TEXT,
    label       TEXT    NOT NULL,
    query       TEXT    NOT NULL,
    token       TEXT    NOT NULL,
    delivery    TEXT,
    redelivered INTEGER NOT NULL,
    retained    INTEGER NOT NULL,
    chosen      INTEGER,
    key_name    TEXT    NOT NULL,
    body        BLOB    NOT NULL
);
CREATE INDEX inbox_of ON inbox (name_id, received_at, id);

-- Names that the owner refused; source is empty where every source is meant. refused_at: Unix seconds.
CREATE TABLE refused_names (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    device_key TEXT    NOT NULL,
    source     TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    refused_at INTEGER NOT NULL,
    UNIQUE (device_key, source, reason)
);
