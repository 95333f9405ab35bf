-- Edits of stored readings, and what has to be told to the targets of them; brew sessions that are gone for good.

-- original: the columns that were edited as they were before, a JSON object; NULL: nothing is edited.
-- edited_at: Unix seconds of the last edit, also where that was taken back.
ALTER TABLE readings ADD COLUMN original TEXT;
ALTER TABLE readings ADD COLUMN edited_at INTEGER;

-- Readings that a target has, or may have, as they were before an edit. was: the reading as it was sent there,
-- as JSON; withheld: the target does not have it under its _id, so that it would be there twice; version counts
-- the edits since.
CREATE TABLE corrections (
    seq      INTEGER NOT NULL,
    target   TEXT    NOT NULL,
    was      TEXT    NOT NULL,
    withheld INTEGER NOT NULL DEFAULT 0,
    version  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (seq, target)
) WITHOUT ROWID;
-- A reading that goes, or goes out again from a new place in the queue, needs no correction.
CREATE TRIGGER corrections_of_deleted AFTER DELETE ON readings BEGIN
    DELETE FROM corrections WHERE seq = old.seq;
END;
CREATE TRIGGER corrections_of_moved AFTER UPDATE OF seq ON readings BEGIN
    DELETE FROM corrections WHERE seq = old.seq;
END;

-- The row of a purged brew session stays, so that its id is never given to another one.
ALTER TABLE brewsessions ADD COLUMN purged INTEGER NOT NULL DEFAULT 0;
