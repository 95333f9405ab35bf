-- Accounts, keys, brew sessions, devices, readings, forwarding progress, quarantine.
-- Times ending in _at are Unix seconds, those of arrivals (received_at) Unix milliseconds.

CREATE TABLE accounts (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);

CREATE TABLE keys (
    id         INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name       TEXT    NOT NULL,
    shown      TEXT    NOT NULL,
    sha256     BLOB    NOT NULL UNIQUE,
    scopes     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
);
CREATE UNIQUE INDEX keys_active_name ON keys (name) WHERE revoked_at IS NULL;

CREATE TABLE brewsessions (
    id          INTEGER PRIMARY KEY,
    account_id  INTEGER NOT NULL REFERENCES accounts (id),
    recipe_id   INTEGER NOT NULL DEFAULT 0,
    batchcode   TEXT    NOT NULL,
    phase       TEXT    NOT NULL,
    upstream_id INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    deleted     INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE devices (
    id            INTEGER PRIMARY KEY,
    key           TEXT    NOT NULL UNIQUE,
    family        TEXT    NOT NULL,
    stable_id     TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    gravity_unit  TEXT,
    interval_s    INTEGER,
    session_id    INTEGER REFERENCES brewsessions (id),
    first_seen_at INTEGER NOT NULL
);

-- seq is the place in the forwarding queue: the order of arrival, except that a reading which is claimed or
-- replaced later gets a new one, so that it lies above every watermark again. It never repeats.
CREATE TABLE readings (
    seq          INTEGER PRIMARY KEY,
    oid          BLOB    NOT NULL,
    device_id    INTEGER REFERENCES devices (id),
    session_id   INTEGER REFERENCES brewsessions (id),
    received_at  INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    gravity      TEXT    NOT NULL,
    gravity_unit TEXT    NOT NULL,
    temp         TEXT    NOT NULL,
    temp_unit    TEXT    NOT NULL,
    comment      TEXT    NOT NULL,
    beer         TEXT    NOT NULL,
    interval     TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    ip           TEXT    NOT NULL,
    sg           REAL,
    celsius      REAL,
    facts        TEXT,
    flags        TEXT,
    extra        TEXT,
    channel      TEXT,
    delivery     TEXT,
    raw          BLOB,
    -- What came from a device belongs to one.
    CHECK (device_id IS NOT NULL OR raw IS NULL)
);
CREATE UNIQUE INDEX readings_oid ON readings (oid);
CREATE INDEX readings_by_session ON readings (session_id, created_at, oid) WHERE session_id IS NOT NULL;
CREATE INDEX readings_by_device ON readings (device_id, created_at) WHERE device_id IS NOT NULL;

-- One row per target and brew session, not a flag per reading: SD cards wear by pages written.
-- attempt_until is the seq up to which an attempt was begun whose outcome is not known yet.
CREATE TABLE deliveries (
    target        TEXT    NOT NULL,
    session_id    INTEGER NOT NULL REFERENCES brewsessions (id),
    watermark     INTEGER NOT NULL DEFAULT 0,
    attempt_until INTEGER,
    PRIMARY KEY (target, session_id)
) WITHOUT ROWID;

CREATE TABLE quarantine (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    received_at INTEGER NOT NULL,
    channel     TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    driver      TEXT,
    query       TEXT    NOT NULL,
    label       TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    body        BLOB    NOT NULL
);
