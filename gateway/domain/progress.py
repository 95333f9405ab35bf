"""News of long work: how much of it is done."""

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""Takes the number done, the total (0 if unknown), and the name of the counted things, such as "readings"."""


def no_progress(_done: int, _of: int, _what: str) -> None:
    """Ignore the news."""
