"""The certificate authorities of this machine: they are read when the first server has to be verified."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

FILE_VARIABLE = "SSL_CERT_FILE"
"""OpenSSL takes the file of all authorities from this variable, if it is set."""


@cache
def verifying_context() -> ssl.SSLContext:
    """Return the context that verifies servers. Blocks at the first call, to read the authorities."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context


@contextmanager
def left_unread() -> Iterator[None]:
    """Leave the authorities unread within the block, in which aiohttp is imported.

    aiohttp reads them twice while it is imported, for contexts that none of our requests uses: 3.7 MB, and
    60 ms of the start. A request that used such a context would fail, because it would trust nobody.
    """
    given = os.environ.get(FILE_VARIABLE)
    os.environ[FILE_VARIABLE] = os.devnull
    try:
        yield
    finally:
        if given is None:
            del os.environ[FILE_VARIABLE]
        else:
            os.environ[FILE_VARIABLE] = given
