"""The error of a report: nobody answered it as the device expects."""

import errno
import os


class NotAnswered(Exception):
    """A report that was not taken, with a one-line reason for the user."""


def reason(failure: Exception, deadline_s: float) -> str:
    """Say in a few words why a connection failed; the deadline is in seconds."""
    if isinstance(failure, TimeoutError) and failure.errno is None:
        return f"no answer within {deadline_s:g} s"
    if isinstance(failure, EOFError):  # asyncio.IncompleteReadError
        return "connection closed before the answer was complete"
    if isinstance(failure, OSError):
        # asyncio writes the address into strerror; the plain text of the number reads better.
        if failure.errno is not None and failure.errno in errno.errorcode:
            return os.strerror(failure.errno).lower()
        return failure.strerror or str(failure)
    return f"answer not understood ({failure})"
