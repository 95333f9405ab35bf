"""The command line: one module per command group, options shared by all in `options`."""
