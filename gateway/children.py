"""How this program starts parts of itself as processes of their own."""

import sys
from pathlib import Path

_RUN = (
    "import runpy, sys; sys.path.insert(0, sys.argv[1]); del sys.argv[:2]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
"""Do the same as `-m`, for an interpreter that finds our modules only where it is told."""


def module(name: str) -> list[str]:
    """Return the words that run a module of ours in a new process; arguments of the module may follow.

    The new process finds its modules where this process does. With `-I`, as the program of the Debian package
    is started, Python sees neither installed packages nor `PYTHONPATH`: then the child gets the same options
    and the directory.
    """
    if not sys.flags.isolated:
        return [sys.executable, "-m", name]
    options = "-I" + "B" * bool(sys.flags.dont_write_bytecode) + "S" * bool(sys.flags.no_site)
    return [sys.executable, options, "-c", _RUN, str(Path(__file__).parents[1]), name]
