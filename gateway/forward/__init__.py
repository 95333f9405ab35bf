"""Forwarding to targets: send readings, read back an uncertain request, never send blind."""
