"""Names of the files in a data directory."""

DATABASE_NAME = "gateway.sqlite3"
LOCK_NAME = "gateway.lock"
