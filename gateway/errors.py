"""The whole exception tree; a class's docstring is its default message.

Lower layers raise these and know no status codes: `gateway.http.middleware` holds the one table from class to
status.
"""


class GatewayError(Exception):
    """Something went wrong in the gateway."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class ConfigError(GatewayError):
    """The configuration cannot be used."""


class DriverError(GatewayError):
    """No driver understands this payload."""


class InvalidInput(GatewayError):
    """The request cannot be understood."""


class NotFound(GatewayError):
    """No such record."""


class NameTaken(GatewayError):
    """That name is already in use."""


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


class StoreInUse(GatewayError):
    """Another process has the data directory open."""


class SchemaTooNew(GatewayError):
    """The database was written by a newer version of the gateway."""


class PortTaken(GatewayError):
    """The port is already in use."""

    def __init__(self, what: str, host: str, port: int, remedy: str) -> None:
        super().__init__(f"{what}: port {port} on {host or 'all interfaces'} is already in use; {remedy}")
        self.port = port
