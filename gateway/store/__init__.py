"""The store of all data: one protocol, one implementation per database."""
