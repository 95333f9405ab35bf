"""Endpoints beyond the specification: health, and everything that the command line does."""
