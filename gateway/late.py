"""Parts of the program that are imported at their first use, long after the start."""

from pathlib import Path

import gateway
from gateway.errors import GatewayError

PACKAGE = Path(gateway.__file__)
"""A file that every installation writes anew."""


class Replaced(GatewayError):
    """The program was replaced on the disk since it was started."""


def _identity() -> tuple[int, int, int]:
    """Return what tells the package on the disk from another one that was installed at its place."""
    found = PACKAGE.stat()
    return found.st_dev, found.st_ino, found.st_mtime_ns


_STARTED = _identity()


def check_program() -> None:
    """Raise `Replaced` if an upgrade has replaced the program: half of each version would not fit."""
    try:
        same = _identity() == _STARTED
    except OSError:  # an upgrade removes the old files before it writes the new ones
        same = False
    if not same:
        raise Replaced("the program was replaced on the disk since it was started; restart the gateway")
