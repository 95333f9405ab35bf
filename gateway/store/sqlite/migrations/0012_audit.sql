-- Who changed what, and when. A row is written in the transaction of the change.

-- The id is the time in milliseconds, or one more than the latest id: rows that are salvaged keep theirs.
-- times counts events that share a row: wrong keys have one row a source and hour.
CREATE TABLE audit (
    id     INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL,
    source TEXT    NOT NULL,
    verb   TEXT    NOT NULL,
    object TEXT    NOT NULL,
    detail TEXT    NOT NULL,
    times  INTEGER NOT NULL DEFAULT 1
);
-- Wrong keys have a bound of their own, so that noise pushes out no fact.
CREATE INDEX audit_noise ON audit (verb = 'wrong key');

-- The options of the last start, without secrets, to tell what differs at the next.
CREATE TABLE options (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
