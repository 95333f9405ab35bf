"""What goes wrong with files and the network, in the user's words: no numbers, no names of classes."""

import errno
import os
import socket
import sqlite3
import ssl

import aiohttp

FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
"""Whatever a network, a TLS handshake or a broken answer can raise."""

PLAIN_REASONS = {
    errno.ENOENT: "there is no such file or directory",
    errno.EACCES: "this user may not do that",
    errno.EPERM: "this user may not do that",
    errno.EISDIR: "it is a directory, not a file",
    errno.ENOTDIR: "a part of the path is a file, not a directory",
    errno.EROFS: "the disk can only be read",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk's quota is used up",
    errno.EIO: "the disk fails",
    errno.EMFILE: "too many files are open",
    errno.ECONNREFUSED: "nobody listens there",
    errno.ECONNRESET: "the connection was cut",
    errno.EPIPE: "the connection was cut",
    errno.EHOSTUNREACH: "there is no way to that machine",
    errno.ENETUNREACH: "there is no network",
    errno.ETIMEDOUT: "no answer in time",
    errno.EADDRINUSE: "the port is already in use",
    errno.EADDRNOTAVAIL: "this machine has no such address",
}
"""By the system's number."""


DATABASE_REASONS = {
    sqlite3.SQLITE_BUSY: "another program holds it",
    sqlite3.SQLITE_LOCKED: "another program holds it",
    sqlite3.SQLITE_READONLY: "it can only be read",
    sqlite3.SQLITE_IOERR: "the disk fails",
    sqlite3.SQLITE_CORRUPT: "its pages do not fit together",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_NOTADB: "the file is no database",
}
"""By the primary result code (sqlite.org/rescode.html)."""

PRIMARY = 0xFF
"""Of a result code, which says more in its upper bits."""

HTTP_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ServerDisconnectedError, "the connection was cut before there was an answer"),
    (aiohttp.ClientPayloadError, "the answer broke off"),
    (aiohttp.ClientResponseError, "what answers does not speak HTTP"),
    (aiohttp.InvalidURL, "the address is none"),
    (aiohttp.ClientConnectorDNSError, "no machine of that name is found: a typing error, or no network"),
    (socket.gaierror, "no machine of that name is found: a typing error, or no network"),
    (TimeoutError, "no answer in time"),
)


def in_words(error: BaseException) -> str:
    """What the system, or a library, says of files and the network, in the user's words."""
    for kind, words in HTTP_REASONS:
        if isinstance(error, kind):
            return words
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & PRIMARY  # one that Python made itself has none
        return DATABASE_REASONS.get(code, str(error))
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return "it does not speak TLS as https does; perhaps its address begins with http://"
    return _of_number(error) if isinstance(error, OSError) else str(error) or "it failed"


def _of_number(error: OSError) -> str:
    if error.errno in PLAIN_REASONS:
        return PLAIN_REASONS[error.errno]
    return os.strerror(error.errno).lower() if error.errno else str(error) or "it failed"
