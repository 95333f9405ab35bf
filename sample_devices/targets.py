"""Where a fleet reports to, from the words of the command line."""

from urllib.parse import SplitResult, unquote, urlsplit

from sample_devices.devices import Broker, Targets
from sample_devices.wire.report import Address

HTTP_PORT = 80
MQTT_PORT = 1883
TCP_PORT = 9501  # of iSpindel's generic TCP service

DEFAULTS = ("http://127.0.0.1:8080", f"127.0.0.1:{MQTT_PORT}", f"127.0.0.1:{TCP_PORT}")
"""A gateway on this machine: HTTP, MQTT and TCP."""


def targets_from(http: str | None, mqtt: str | None, tcp: str | None, path: str | None = None) -> Targets:
    """Read the addresses that were given; ValueError says how one has to look."""
    return Targets(
        _http_address(http, path) if http is not None else None,
        _mqtt_broker(mqtt) if mqtt is not None else None,
        _tcp_address(tcp) if tcp is not None else None,
    )


def _http_address(url: str, path: str | None) -> Address:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"--http must look like http://HOST:PORT, not {url!r}")
    in_url = parts.path + (f"?{parts.query}" if parts.query else "")
    if path is None and in_url not in {"", "/"}:
        path = in_url
    return Address(parts.hostname, parts.port or HTTP_PORT, path)


def _mqtt_broker(text: str) -> Broker:
    parts = _split(text, "mqtt")
    if parts is None:
        raise ValueError("--mqtt must look like HOST:PORT or USER:PASSWORD@HOST:PORT")
    user = unquote(parts.username) if parts.username is not None else None
    password = unquote(parts.password) if parts.password is not None else None
    return Broker(parts.hostname or "", parts.port or MQTT_PORT, user, password)


def _tcp_address(text: str) -> Address:
    parts = _split(text, "tcp")
    if parts is None or parts.username is not None:
        raise ValueError("--tcp must look like HOST:PORT")
    return Address(parts.hostname or "", parts.port or TCP_PORT)


def _split(text: str, scheme: str) -> SplitResult | None:
    parts = urlsplit(text if "://" in text else f"{scheme}://{text}")
    return parts if parts.scheme == scheme and parts.hostname and parts.path in {"", "/"} else None
