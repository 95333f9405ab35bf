"""Where readings are kept: one protocol, one implementation per database."""
