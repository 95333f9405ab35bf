"""How long a test waits for what must become true."""

PATIENCE_S = 120.0
"""Only a hang takes longer, however busy the machine is."""
