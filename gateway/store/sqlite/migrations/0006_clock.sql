-- What came while nobody knew what time it was, until its times are put right.

-- One row per boot of the machine, in order. name is the kernel's; offset_ms what has to be added to the
-- milliseconds since that boot to have Unix milliseconds: NULL while the clock is not known.
CREATE TABLE boots (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT    NOT NULL UNIQUE,
    offset_ms INTEGER
);

-- Readings whose times are not to be believed: the boot they came in, the milliseconds since then, and which
-- of several readings in its payload each is. Nothing from the first of them on is forwarded.
CREATE TABLE suspects (
    boot         INTEGER NOT NULL,
    monotonic_ms INTEGER NOT NULL,
    oid          BLOB    NOT NULL,
    place        INTEGER NOT NULL,
    PRIMARY KEY (boot, monotonic_ms, oid)
) WITHOUT ROWID;

-- The same for payloads in quarantine, which are found by the wrong time that they have.
CREATE TABLE suspect_payloads (
    boot         INTEGER NOT NULL,
    monotonic_ms INTEGER NOT NULL,
    received_at  INTEGER NOT NULL,
    PRIMARY KEY (boot, monotonic_ms, received_at)
) WITHOUT ROWID;
