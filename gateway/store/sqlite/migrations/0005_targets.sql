-- Several targets; what each refused.

-- One row per service that is forwarded to, known by its base URL (deliveries.target, brewsessions.upstream);
-- the key stays in its file. from_options: named by serve's options, not by `targets add`. unnamed: brew
-- sessions that name no service go there. paused: by the user. resumed counts; a change begins forwarding afresh.
CREATE TABLE targets (
    name         TEXT    PRIMARY KEY,
    url          TEXT    NOT NULL UNIQUE,
    key_file     TEXT    NOT NULL,
    per_minute   INTEGER NOT NULL,
    from_options INTEGER NOT NULL DEFAULT 0,
    unnamed      INTEGER NOT NULL DEFAULT 0,
    paused       INTEGER NOT NULL DEFAULT 0,
    resumed      INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Where a brew session goes beside the one target that stands in brewsessions.upstream_id and .upstream.
CREATE TABLE forwardings (
    session_id  INTEGER NOT NULL REFERENCES brewsessions (id),
    target      TEXT    NOT NULL,
    upstream_id INTEGER NOT NULL,
    PRIMARY KEY (session_id, target)
) WITHOUT ROWID;

-- Readings by their place in the queue: one that is sent again later has a new place.
CREATE TABLE refusals (
    target     TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    reason     TEXT    NOT NULL,
    refused_at INTEGER NOT NULL,
    PRIMARY KEY (target, seq)
) WITHOUT ROWID;
INSERT OR IGNORE INTO refusals (target, seq, reason, refused_at)
SELECT q.target, r.seq, q.reason, q.received_at / 1000
FROM readings r JOIN (
    SELECT substr(channel, length('forward ') + 1) target, reason, received_at,
           CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$._id."$oid"') END oid
    FROM quarantine WHERE channel LIKE 'forward %'
) q ON q.oid = lower(hex(r.oid));
