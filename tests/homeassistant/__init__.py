"""Home Assistant's side: a table of its documented fields, and its own integration in a venv of its own."""
