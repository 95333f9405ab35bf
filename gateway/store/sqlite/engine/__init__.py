"""The database file: opening, writing, checking, copying, reading a damaged one. Knows no table."""
