"""The gateway's exceptions, and failures of files and the network in the user's words.

A class's docstring is its default message. Lower layers raise these and know no status codes:
`gateway.http.middleware` holds the one table from class to status.
"""

import errno
import os
import socket
import sys


class GatewayError(Exception):
    """Something went wrong in the gateway."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class ConfigError(GatewayError):
    """The configuration cannot be used."""


class DriverError(GatewayError):
    """No driver understands this payload."""


class NotTaken(DriverError):
    """This payload could be read, but is not taken as a reading."""


class InvalidInput(GatewayError):
    """The request cannot be understood."""


class NotFound(GatewayError):
    """No such record."""


class NameTaken(GatewayError):
    """That name is already in use."""


class AlreadySent(GatewayError):
    """It was sent on already."""


class Unauthorized(GatewayError):
    """The key is missing, unknown, revoked or lacks the scope."""


class Forbidden(GatewayError):
    """This request is not taken from there."""


class TooLarge(GatewayError):
    """The body is larger than its limit."""


class UnsupportedMedia(GatewayError):
    """The body is of a type that is not taken here."""


class RateLimited(GatewayError):
    """Too many requests from this address."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s


class StoreUnavailable(GatewayError):
    """The store cannot take data right now."""


class QuotaFull(StoreUnavailable):
    """The quota of the data directory is full."""


class ShareUsedUp(StoreUnavailable):
    """This source has used up its share; other sources are not concerned."""


class StoreInUse(GatewayError):
    """Another process has the data directory open."""


class SchemaTooNew(GatewayError):
    """The database was written by a newer version of the gateway."""


class PortTaken(GatewayError):
    """The port is already in use."""

    def __init__(self, what: str, host: str, port: int, remedy: str) -> None:
        super().__init__(f"{what}: port {port} on {host or 'all interfaces'} is already in use; {remedy}")
        self.port = port


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
"""Reasons in the user's words, by the system's error number."""

NO_SUCH_MACHINE = "no machine of that name is found: a typing error, or no network"


def in_words(error: BaseException) -> str:
    """Return why a file or the network failed, in the user's words: no numbers, no names of classes."""
    # aiohttp and ssl take the command line longer to import than all else: an error can only be theirs if
    # they are loaded.
    if "aiohttp" in sys.modules:
        import aiohttp

        for kind, words in (
            (aiohttp.ServerDisconnectedError, "the connection was cut before there was an answer"),
            (aiohttp.ClientPayloadError, "the answer broke off"),
            (aiohttp.ClientResponseError, "what answers does not speak HTTP"),
            (aiohttp.InvalidURL, "the address is none"),
            (aiohttp.ClientConnectorDNSError, NO_SUCH_MACHINE),
        ):
            if isinstance(error, kind):
                return words
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            error = error.certificate_error
        if isinstance(error, aiohttp.ClientConnectorError):
            error = error.os_error
    if "ssl" in sys.modules:
        import ssl

        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not to be trusted ({error.verify_message})"
        if isinstance(error, ssl.SSLError):
            return "it does not speak TLS as https does; perhaps its address begins with http://"
    if isinstance(error, socket.gaierror):
        return NO_SUCH_MACHINE
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.errno:
        return PLAIN_REASONS.get(error.errno) or os.strerror(error.errno).lower()
    return str(error) or "it failed"
