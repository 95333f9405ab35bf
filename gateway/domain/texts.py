"""What is no text, wherever it comes from."""

import re

NOT_TEXT = re.compile("[\0\ud800-\udfff]")
"""NUL, at which SQLite's functions end a text, and halves of surrogate pairs, which UTF-8 cannot say."""
