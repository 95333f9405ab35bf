"""The SQLite store: WAL, synchronous FULL, one connection for every write, group commit."""
