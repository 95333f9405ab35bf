"""Attacks on the gateway, each a program with a size."""
