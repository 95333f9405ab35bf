"""Copying an account of another Brewing Data Service: read politely, kept here, never sent back."""
