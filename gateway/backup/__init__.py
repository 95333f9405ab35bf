"""Backups: one archive with database and photos, made while the gateway runs, checked, restored."""
