"""News of long work: how much of it is done."""

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""Takes how much is done, of how much (0 where nobody knows), and of which things, such as "readings"."""


def no_progress(_done: int, _of: int, _what: str) -> None:
    """Ignore the news."""
