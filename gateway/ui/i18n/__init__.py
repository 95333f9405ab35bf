"""Catalogues: a JSON file a language, and how each language forms its plural."""
