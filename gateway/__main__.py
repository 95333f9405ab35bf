"""The program: `hydrometer-gateway`, or `python -m gateway`."""

import os
import sys

from gateway import __version__
from gateway.cli import COMPLETING

INTERRUPTED = 130
"""The exit code after Ctrl-C, of `gateway.cli.exit_codes`, which is not imported for a version."""


def main() -> None:
    """Show the version, or run the command line, which takes longer to import than to show a version."""
    if sys.argv[1:] == ["--version"] and COMPLETING not in os.environ:
        try:
            print(__version__, flush=True)
        except (OSError, AttributeError):
            pass  # no stdout: the long way knows the words for it
        else:
            return
    try:
        from gateway.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)  # nothing has begun yet
    run()


if __name__ == "__main__":
    main()
