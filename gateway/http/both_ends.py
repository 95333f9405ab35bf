"""What the application and the command line's client must agree on.

Without aiohttp, because the client imports this module, and a command answers at once.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.errors import GatewayError, NotFound, Unauthorized

SOCKET_NAME = "control.sock"

JSON = "application/json"

LINES = "application/x-ndjson"

ACCOUNT_HEADER = "X-Account"
"""The name of an account, percent-encoded UTF-8. A list, or a new record, belongs to that account."""

NO_SUCH_PATH = "no such path"
"""The detail of a 404 where no endpoint has the path: the client is of another version."""

INTERNAL_ERROR = "internal error"
"""The detail of a 500 that is a bug; the log has its traceback."""

FIXED_DETAIL: dict[type[GatewayError], str] = {
    Unauthorized: "invalid api key",
    NotFound: "no records found",
}
"""Details that clients of the service rely on."""


@contextmanager
def short_path(directory: Path) -> Iterator[str]:
    """Yield the socket's path by way of a descriptor, because a socket's path has 107 bytes at most."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{SOCKET_NAME}"
    finally:
        os.close(fd)
