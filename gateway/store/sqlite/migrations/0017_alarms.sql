-- Alarms, the channels that tell of them, and the messages on their way. Times are Unix seconds.

-- A name of this data directory, made once: in message ids and in topics of Home Assistant.
CREATE TABLE instance (id TEXT NOT NULL);
INSERT INTO instance (id) VALUES (lower(hex(randomblob(4))));

-- scope: all brew device target. subject: '' for all, else the id of a brew or device, or the name of a target.
-- rule: '' is every rule. setting: JSON.
CREATE TABLE alarm_settings (
    scope   TEXT NOT NULL,
    subject TEXT NOT NULL,
    rule    TEXT NOT NULL,
    setting TEXT NOT NULL,
    PRIMARY KEY (scope, subject, rule)
) WITHOUT ROWID;

-- scope: brew device target gateway. state: pending firing acknowledged snoozed ok. evidence: JSON, the figures that made it
-- fire. text: the sentence that says what is the matter. account_id: NULL is the owner's.
CREATE TABLE alarms (
    id            INTEGER PRIMARY KEY,
    account_id    INTEGER,
    rule          TEXT    NOT NULL,
    scope         TEXT    NOT NULL,
    subject       TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    since         INTEGER NOT NULL,
    fired_at      INTEGER,
    acked_at      INTEGER,
    acked_by      TEXT,
    snoozed_until INTEGER,
    cleared_at    INTEGER,
    times         INTEGER NOT NULL DEFAULT 1,
    reminders     INTEGER NOT NULL DEFAULT 0,
    reminded_at   INTEGER,
    evidence      TEXT    NOT NULL,
    text          TEXT    NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX alarms_open ON alarms (rule, scope, subject) WHERE cleared_at IS NULL;
CREATE INDEX alarms_by_subject ON alarms (scope, subject, fired_at);
CREATE INDEX alarms_cleared ON alarms (cleared_at) WHERE cleared_at IS NOT NULL;

-- kind: fired cleared reminder acknowledged snoozed test. late: it would have fired in the past; nobody is told.
CREATE TABLE alarm_events (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    alarm_id INTEGER REFERENCES alarms (id),
    at       INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    late     INTEGER NOT NULL DEFAULT 0,
    text     TEXT    NOT NULL
);
CREATE INDEX alarm_events_by_alarm ON alarm_events (alarm_id, id);

-- settings: JSON, without secrets. secret_file: a file with mode 0600.
CREATE TABLE channels (
    name        TEXT PRIMARY KEY,
    account_id  INTEGER,
    kind        TEXT    NOT NULL,
    settings    TEXT    NOT NULL,
    secret_file TEXT,
    paused      INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- state: waiting held open sent merged expired.
CREATE TABLE messages (
    event_id INTEGER NOT NULL REFERENCES alarm_events (id),
    channel  TEXT    NOT NULL,
    state    TEXT    NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at  INTEGER,
    sent_at  INTEGER,
    trouble  TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (event_id, channel)
) WITHOUT ROWID;
CREATE INDEX messages_to_send ON messages (channel, event_id) WHERE state IN ('waiting', 'held', 'open');

-- lead_device: the device whose gravity the figures of a brew follow, chosen by the user.
ALTER TABLE brewsessions ADD COLUMN lead_device INTEGER;
