"""Requests to addresses that an administrator named: guarded connections, templates, signatures."""
