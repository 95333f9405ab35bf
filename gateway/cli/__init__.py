"""The command line: one module per command group, options shared by all in `options`."""

COMPLETING = "_HYDROMETER_GATEWAY_COMPLETE"
"""The variable with which a shell asks for candidates, instead of running the command."""
