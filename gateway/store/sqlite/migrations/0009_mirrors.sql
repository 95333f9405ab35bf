-- What mirrors remember of their sources.

-- A record is the same only with the same number, created_at (Unix seconds) and, of a recipe, token there;
-- NULL: it says none. said is JSON: of a recipe or brew session a digest of each member as the source said it
-- last, of a photo the recipe here, of the readings of a brew session how far they were read.
ALTER TABLE mirrored ADD COLUMN created_at INTEGER;
ALTER TABLE mirrored ADD COLUMN token TEXT;
ALTER TABLE mirrored ADD COLUMN said TEXT;

-- Copies have taken both from there, whenever they were made; also where they were deleted since.
UPDATE mirrored SET created_at = r.created_at, token = r.token
FROM recipes r WHERE kind = 'recipe' AND local_id <> '' AND r.id = CAST(local_id AS INTEGER);
UPDATE mirrored SET created_at = s.created_at
FROM brewsessions s WHERE kind = 'brewsession' AND s.id = CAST(local_id AS INTEGER);
UPDATE mirrored SET created_at = p.created_at, said = json_object('recipe', p.recipe_id)
FROM photos p WHERE kind = 'photo' AND p.uuid = local_id;

-- Digests of what the source said of a reading when the mirror last looked, and of what was given out here; see
-- copies.py. NULL: not seen there, or a copy that is not edited.
ALTER TABLE readings ADD COLUMN looked BLOB;

-- A mirror looks for edited readings by the time that they had before.
CREATE INDEX readings_edited ON readings (session_id) WHERE original IS NOT NULL;

-- Copies of records whose numbers the source has given to others since.
CREATE TABLE renumbered (
    upstream          TEXT    NOT NULL,
    account_id        INTEGER NOT NULL REFERENCES accounts (id),
    kind              TEXT    NOT NULL,
    remote_id         TEXT    NOT NULL,
    local_id          TEXT    NOT NULL,
    remote_updated_at TEXT    NOT NULL,
    created_at        INTEGER,
    token             TEXT,
    said              TEXT,
    PRIMARY KEY (upstream, account_id, kind, remote_id, local_id)
) WITHOUT ROWID;
