-- The page: what happened in a brew, who is logged in, and links to pictures. Times are Unix seconds.

-- kind: note dry_hop addition transfer cold_crash packaged hand_reading photo, by hand; begun device_in device_out
-- ended alarm, by the gateway. facts: JSON, such as an amount, a photo's uuid, a device's id. oid: the reading of a
-- hand reading. author: the name of the key, '' for the gateway.
CREATE TABLE brew_events (
    id         INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES brewsessions (id),
    at         INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    facts      TEXT,
    oid        BLOB,
    author     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX brew_events_by_session ON brew_events (session_id, at);

-- preferences: JSON, with language, units, scheme, zone.
CREATE TABLE logins (
    id          INTEGER PRIMARY KEY,
    sha256      BLOB    NOT NULL UNIQUE,
    key_id      INTEGER NOT NULL REFERENCES keys (id),
    created_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    agent       TEXT    NOT NULL,
    preferences TEXT    NOT NULL DEFAULT '{}'
);

-- kind: tv or picture. session_id: the brew; NULL: the running one. options: JSON.
CREATE TABLE view_links (
    id         INTEGER PRIMARY KEY,
    sha256     BLOB    NOT NULL UNIQUE,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    kind       TEXT    NOT NULL,
    session_id INTEGER,
    name       TEXT    NOT NULL,
    options    TEXT    NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL
);

-- og, og_unit: the original gravity as set by hand. ended_at: the brew was marked done. send_notes: notes are sent on.
-- not_yet_at: somebody answered "not yet" when the page asked whether the brew is done.
ALTER TABLE brewsessions ADD COLUMN og TEXT;
ALTER TABLE brewsessions ADD COLUMN og_unit TEXT;
ALTER TABLE brewsessions ADD COLUMN ended_at INTEGER;
ALTER TABLE brewsessions ADD COLUMN not_yet_at INTEGER;
ALTER TABLE brewsessions ADD COLUMN send_notes INTEGER NOT NULL DEFAULT 0;

-- What the owner has set on the page, such as the name of the brewery.
CREATE TABLE page_settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- left_out: 1 if a flag says that the gravity does not count in curves and figures, else NULL. The first trigger is its
-- one owner, wherever rows and flags come from: devices, imports, corrections, bytes decoded again, damaged files.
-- Flags are a JSON list of plain words: as text they need no parser, which damaged ones would stop.
ALTER TABLE readings ADD COLUMN left_out INTEGER;
CREATE TRIGGER readings_flagged AFTER UPDATE OF flags ON readings BEGIN
    UPDATE readings SET left_out = CASE
        WHEN flags GLOB '*"gravity_*' OR flags GLOB '*"krausen_bump"*' OR flags GLOB '*"test_send"*'
          OR flags GLOB '*"excluded"*' THEN 1 END
    WHERE seq = new.seq;
END;
CREATE TRIGGER readings_added AFTER INSERT ON readings WHEN new.flags IS NOT NULL OR new.left_out IS NOT NULL BEGIN
    UPDATE readings SET flags = flags WHERE seq = new.seq;
END;
UPDATE readings SET flags = flags WHERE flags IS NOT NULL;

-- Curves are drawn from this index alone.
DROP INDEX readings_by_session;
CREATE INDEX readings_by_session ON readings (session_id, created_at, oid, sg, celsius, device_id, left_out)
    WHERE session_id IS NOT NULL;
