"""The gateway's exceptions, and failures of files and the network in the user's words.

A class's docstring is its default message. Lower layers raise these and know no status codes:
`gateway.http.middleware` holds the one table from class to status.
"""

import errno
import os
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.processes import Holder


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


class StoreUnusable(StoreUnavailable):
    """The store cannot take data, and waiting does not help."""


class NotInstalled(GatewayError):
    """A part that this needs is not installed."""


class StoreInUse(GatewayError):
    """Another process has the data directory open."""


class TryAgain(GatewayError):
    """The gateway is busy."""


class SchemaTooNew(GatewayError):
    """The database was written by a newer version of the gateway."""


class PortTaken(GatewayError):
    """The port is already in use."""

    def __init__(self, what: str, host: str, port: int, remedy: str, holder: "Holder | None" = None) -> None:
        """`holder` is the program that has the port, if that is known."""
        by = f" by {holder}" if holder else ""
        super().__init__(f"{what}: port {port} on {host or 'all interfaces'} is already in use{by}; {remedy}")
        self.port, self.holder = port, holder


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

NO_SUCH_NAME = "no such name"
NOT_TRUSTED = "its certificate is not to be trusted"

REMEDIES = {
    NO_SUCH_NAME: "is the network up, is the address right?",
    PLAIN_REASONS[errno.ECONNREFUSED]: "does the program run there, is the port right?",
    PLAIN_REASONS[errno.ETIMEDOUT]: "is that machine on, does a firewall stand between?",
    PLAIN_REASONS[errno.ENETUNREACH]: "is the cable in, is the WLAN on?",
    PLAIN_REASONS[errno.EHOSTUNREACH]: "is that machine on, is it in this network?",
}
"""What to look at, by the reason why the network gave no answer."""

EXPIRED, NOT_YET, OTHER_NAME, OTHER_ADDRESS = 10, 9, 62, 64
UNKNOWN_ISSUERS = frozenset({2, 18, 19, 20, 21})
"""OpenSSL's codes for what is wrong with a certificate (X509_STORE_CTX_get_error(3))."""


def _of_certificate(code: int, message: str) -> str:
    """Return what is wrong with the certificate of another machine."""
    if code == EXPIRED:
        return "its certificate has expired: it has to be renewed there, or this machine's clock is wrong"
    if code == NOT_YET:
        return "its certificate is not valid yet: is this machine's clock right?"
    if code in {OTHER_NAME, OTHER_ADDRESS}:
        return "its certificate is for another name: is the address right?"
    if code in UNKNOWN_ISSUERS:
        return f"{NOT_TRUSTED}: nobody whom this machine knows has signed it ({message})"
    return f"{NOT_TRUSTED} ({message})"


def unreachable(reason: str, host: str = "") -> str:
    """Return a reason of the network with what to look at, and with the host unless it is there already."""
    named = f"{host}: {reason}" if host and not reason.startswith(host) else reason
    return f"{named}; {REMEDIES[reason]}" if reason in REMEDIES else named


def _is_of_a_name(error: BaseException) -> bool:
    """Return whether no machine has a name: `socket.create_server` keeps the negative number of that only."""
    return isinstance(error, OSError) and error.errno is not None and error.errno < 0


def in_words(error: BaseException) -> str:
    """Return why a file or the network failed, in the user's words: no numbers, no names of classes."""
    # aiohttp and ssl take the command line longer to import than all else: an error can only be theirs if
    # they are loaded.
    if "aiohttp" in sys.modules:
        import aiohttp

        for kind, words in (
            (aiohttp.ServerDisconnectedError, "the connection was cut before there was an answer"),
            (aiohttp.ClientPayloadError, "the answer broke off"),
            (aiohttp.ClientHttpProxyError, "the proxy in between refuses it"),
            (aiohttp.ClientProxyConnectionError, "the proxy in between cannot be reached"),
            (aiohttp.ClientResponseError, "what answers does not speak HTTP"),
            (aiohttp.InvalidURL, "the address is none"),
            (aiohttp.ClientConnectorDNSError, NO_SUCH_NAME),
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
            return _of_certificate(error.verify_code, error.verify_message)
        if isinstance(error, ssl.SSLError):
            return "it does not speak TLS as https does; perhaps its address begins with http://"
    if isinstance(error, socket.gaierror) or _is_of_a_name(error):
        return NO_SUCH_NAME
    if isinstance(error, TimeoutError):
        return PLAIN_REASONS[errno.ETIMEDOUT]
    if isinstance(error, OSError) and error.errno:
        return PLAIN_REASONS.get(error.errno) or os.strerror(error.errno).lower()
    return str(error) or "it failed"
