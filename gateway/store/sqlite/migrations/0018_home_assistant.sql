-- Retained messages of ours on the user's broker, so that a later start can clear them.
-- components: of a configuration, the JSON list of all components that it ever had; else empty.
CREATE TABLE published (
    topic      TEXT PRIMARY KEY,
    components TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;

-- The last alarm event that Home Assistant was told: one row, or none.
CREATE TABLE published_event (event_id INTEGER NOT NULL);
