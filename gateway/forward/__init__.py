"""Forwarding to a target: send, find out what became of it, never send blind."""
