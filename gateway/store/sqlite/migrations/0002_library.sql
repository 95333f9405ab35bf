-- Recipes, photos, folders, the other members of brew sessions, mirrors of other services.

-- A key's name is its account's own business: nobody learns from a refusal that another account uses it.
DROP INDEX keys_active_name;
CREATE UNIQUE INDEX keys_active_name ON keys (account_id, name) WHERE revoked_at IS NULL;

CREATE TABLE folders (
    id         INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    kind       TEXT    NOT NULL CHECK (kind IN ('recipe', 'brewsession')),
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (account_id, kind, name)
);

-- What a search looks at stands here, what it need not read in recipe_texts: rows stay small.
CREATE TABLE recipes (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id    INTEGER NOT NULL REFERENCES accounts (id),
    token         TEXT    NOT NULL,
    folder_id     INTEGER REFERENCES folders (id) ON DELETE SET NULL,
    group_id      TEXT,
    parent_id     INTEGER,
    snapshot      INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    deleted       INTEGER NOT NULL DEFAULT 0,
    title_folded  TEXT    NOT NULL,
    author_folded TEXT    NOT NULL
);
CREATE INDEX recipes_by_parent ON recipes (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE recipe_texts (
    recipe_id   INTEGER PRIMARY KEY REFERENCES recipes (id) ON DELETE CASCADE,
    record      TEXT NOT NULL,
    ingredients TEXT NOT NULL,
    beerxml     TEXT NOT NULL
);

-- Case-folded title, style, notes and ingredient names, and an index of all their three-letter sequences.
CREATE TABLE recipe_search (
    recipe_id INTEGER PRIMARY KEY REFERENCES recipes (id) ON DELETE CASCADE,
    folded    TEXT NOT NULL
);
CREATE VIRTUAL TABLE recipe_trigrams USING fts5 (
    folded, content = 'recipe_search', content_rowid = 'recipe_id', tokenize = 'trigram case_sensitive 1'
);
CREATE TRIGGER recipe_search_added AFTER INSERT ON recipe_search BEGIN
    INSERT INTO recipe_trigrams (rowid, folded) VALUES (new.recipe_id, new.folded);
END;
CREATE TRIGGER recipe_search_removed AFTER DELETE ON recipe_search BEGIN
    INSERT INTO recipe_trigrams (recipe_trigrams, rowid, folded) VALUES ('delete', old.recipe_id, old.folded);
END;
CREATE TRIGGER recipe_search_changed AFTER UPDATE ON recipe_search BEGIN
    INSERT INTO recipe_trigrams (recipe_trigrams, rowid, folded) VALUES ('delete', old.recipe_id, old.folded);
    INSERT INTO recipe_trigrams (rowid, folded) VALUES (new.recipe_id, new.folded);
END;

-- The bytes of a photo are a file, written before its row.
CREATE TABLE photos (
    uuid       TEXT    PRIMARY KEY,
    recipe_id  INTEGER NOT NULL REFERENCES recipes (id),
    filename   TEXT    NOT NULL,
    mimetype   TEXT    NOT NULL,
    width      INTEGER NOT NULL,
    height     INTEGER NOT NULL,
    size       INTEGER NOT NULL,
    sha256     TEXT    NOT NULL,
    caption    TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX photos_by_recipe ON photos (recipe_id, created_at);

-- upstream is the service that upstream_id belongs to; NULL is the one that the gateway forwards to.
ALTER TABLE brewsessions ADD COLUMN upstream TEXT;
ALTER TABLE brewsessions ADD COLUMN folder_id INTEGER REFERENCES folders (id) ON DELETE SET NULL;
ALTER TABLE brewsessions ADD COLUMN group_id TEXT;
ALTER TABLE brewsessions ADD COLUMN userdate TEXT NOT NULL DEFAULT '';
ALTER TABLE brewsessions ADD COLUMN notes TEXT;
ALTER TABLE brewsessions ADD COLUMN details TEXT NOT NULL DEFAULT '{}';
UPDATE brewsessions SET userdate = date(created_at, 'unixepoch');
CREATE INDEX brewsessions_by_recipe ON brewsessions (recipe_id);

-- What was copied from which service, and what it was when it was copied.
CREATE TABLE mirrored (
    upstream          TEXT    NOT NULL,
    account_id        INTEGER NOT NULL REFERENCES accounts (id),
    kind              TEXT    NOT NULL,
    remote_id         TEXT    NOT NULL,
    local_id          TEXT    NOT NULL,
    remote_updated_at TEXT    NOT NULL,
    PRIMARY KEY (upstream, account_id, kind, remote_id)
) WITHOUT ROWID;

-- Readings that came from the service which a session is forwarded to have no business there again.
ALTER TABLE readings ADD COLUMN mirrored INTEGER;

-- Statistics find the first and the last gravity, temperature and pH in these without looking at readings.
DROP INDEX readings_by_session;
CREATE INDEX readings_by_session ON readings (session_id, created_at, oid, sg, celsius)
    WHERE session_id IS NOT NULL;
CREATE INDEX readings_with_ph ON readings (session_id, created_at, oid)
    WHERE json_extract(extra, '$.ph') <> '';
DROP INDEX readings_by_device;
CREATE INDEX readings_by_device ON readings (device_id, created_at, session_id) WHERE device_id IS NOT NULL;
