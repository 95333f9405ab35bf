"""The exit codes of every command. The manual page explains them to the user."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    """A line on stderr says why."""
    WRONG_USAGE = 2
    """An unknown command or option, or a value of the wrong kind: typer's own code."""
    PROBLEM_FOUND = 3
    """A command that looks for problems ran, and found one."""
    TRY_AGAIN = 75
    """The gateway or its data are busy, or the disk is full: EX_TEMPFAIL of sysexits.h."""
    INTERRUPTED = 130
    """Ended by Ctrl-C: shells have it so, 128 and the number of SIGINT."""
