"""The options of `serve`, with their defaults.

One frozen object holds them. The command line fills it from flags, `GATEWAY_*` variables, the file and the
defaults, in that order. They are checked here, not by the validation library: that takes 11 MB, which an
idle gateway needs for nothing else.
"""
# ruff: noqa: RUF009 (`option` makes a field)

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from gateway.config import (
    HTTP_PORT,
    MQTT_PORT,
    MQTT_TLS_PORT,
    NAMES_AN_HOUR,
    TCP_PORT,
    TLS_PORT,
    base_url,
    default_data_dir,
    host_name,
    origin,
    read_key,
)
from gateway.domain.texts import label_of, shown_url
from gateway.errors import ConfigError
from gateway.interfaces import INTERFACE_MARK, LOOPBACK_INTERFACE, is_loopback
from gateway.network import address_in, proxy_network

HOST_OF = (
    "Address to listen on for {}, or an interface such as %eth0, instead of --host. Give the option once for "
    "each, all addresses or all interfaces; 127.0.0.1 goes with both."
)

QUOTA_BYTES_MIN = 16 * 1024 * 1024
"""The smallest quota of the data directory: room for about a hundred thousand readings."""

SIZE = re.compile(r"\s*(\d*\.?\d+)\s*(\w+)?")
"""A number of bytes, with a unit behind it."""

_PREFIXES = {letter: power for power, letter in enumerate("kmgtpe", start=1)}

UNITS: dict[str, float] = {
    "b": 1,
    **{letter: 1000**power for letter, power in _PREFIXES.items()},
    **{f"{letter}b": 1000**power for letter, power in _PREFIXES.items()},
    **{f"{letter}ib": 1024**power for letter, power in _PREFIXES.items()},
}
"""Bytes of each unit, in lower case."""

TOPIC_PREFIX_CHARACTERS = 100

HELP = "help"


def option(default: Any, about: str) -> Any:
    """Return a field of `Settings` with its help."""
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata={HELP: about})
    return field(default=default, metadata={HELP: about})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of `serve`, with their defaults and their help; the keys of the TOML file's top level.

    `ConfigError` names every value that is wrong. `quota` takes a text with a unit, too.
    """

    data_dir: Path = field(default_factory=default_data_dir)
    host: str = option("", "Address to listen on, or an interface such as %eth0.")
    http_host: list[str] = option([], HOST_OF.format("HTTP and HTTPS"))
    mqtt_host: list[str] = option([], HOST_OF.format("MQTT"))
    tcp_host: list[str] = option([], HOST_OF.format("TCP"))
    port: int = option(HTTP_PORT, "HTTP port; 0 takes a free one.")
    tls_cert: Path | None = option(
        None, "Certificate, in PEM form with its chain: switches on HTTPS and MQTT over TLS."
    )
    tls_key: Path | None = option(None, "Key of the certificate, in PEM form, without a password.")
    tls_port: int = option(TLS_PORT, "HTTPS port; 0 takes a free one.")
    mqtt_tls_port: int = option(MQTT_TLS_PORT, "Port for MQTT over TLS; 0 takes a free one.")
    tls_only: bool = option(False, "Plain HTTP takes readings of devices and nothing else.")
    mqtt_port: int = option(MQTT_PORT, "MQTT port; 0 takes a free one.")
    mqtt_url: str | None = option(
        None, "Read from this broker instead of listening: mqtt://host:port or mqtts://host."
    )
    mqtt_user: str | None = option(None, "User at that broker.")
    mqtt_password_file: Path | None = option(None, "File that holds only the password of that user.")
    mqtt_topic: list[str] = option([], "")
    no_mqtt: bool = option(False, "No MQTT.")
    ha_discovery: bool = option(
        False,
        "Announce every device to Home Assistant, by MQTT discovery on the broker of --mqtt-url. See "
        "docs/home-assistant.md.",
    )
    ha_prefix: str = option("homeassistant", "Topic below which Home Assistant looks for devices.")
    ha_brews: bool = option(
        False, "With --ha-discovery: also a device of its own for each open brew, until a day after its end."
    )
    tcp_port: int = option(TCP_PORT, "Port for the iSpindel's service TCP; 0 takes a free one.")
    no_tcp: bool = option(False, "No TCP.")
    also_listen: list[int] = option(
        [],
        "A further HTTP port, only for devices whose firmware fixes the port, such as 5000 "
        "(iSpindel, CraftBeerPi) or 80 (TiltBridge 1.0). Give the option once for each port.",
    )
    hostname: list[str] = option(
        [],
        "A further name of this machine, such as brew.example.org: requests for other names than "
        "its own are refused. Give the option once for each name.",
    )
    trusted_proxy: list[str] = option(
        [],
        "Address or network of a reverse proxy, such as 127.0.0.1: the address that it names in "
        "X-Forwarded-For or Forwarded counts as the sender. Give the option once for each.",
    )
    ingress_proxy: str | None = option(
        None,
        "Address of Home Assistant's Supervisor, where the gateway is its app: the page is shown inside Home "
        "Assistant, below the path that it names in X-Ingress-Path. It counts as a trusted proxy.",
    )
    http_socket: Path | None = option(
        None,
        "Also serve HTTP on this Unix socket, for a reverse proxy on this machine. The proxy "
        "counts as trusted. Its user must be in the group of the socket.",
    )
    require_key: bool = option(
        False,
        "Take readings with an ingest key only, from this machine and its network, too. "
        "Switches TCP off, because TCP can send no key.",
    )
    allowed_origin: list[str] = option(
        [],
        "Let web pages of this origin report and use the API, such as https://brew.lan. Give the "
        "option once for each origin.",
    )
    cors_origin: list[str] = option([], "The old name of --allowed-origin.")
    no_page: bool = option(False, "No page for browsers: nothing is served below /ui.")
    lan_view: bool = option(
        False, "Let everybody in the local network look at the page without a key. To change needs one."
    )
    brewery: str | None = option(
        None, "Name of the brewery on the page. [default: the one in the page's settings]"
    )
    upstream_url: str | None = option(None, "Brewing Data Service to forward to: https://host, without /v1.")
    upstream_key_file: Path | None = option(None, "File with the API key of the upstream.")
    forward_readings: int = option(500, "Forward when this many readings wait.")
    forward_seconds: float = option(60.0, "Forward also when the oldest has waited this many seconds.")
    mirror_from: str | None = option(
        None, "Brewing Data Service to copy regularly: https://host, without /v1."
    )
    mirror_key_file: Path | None = option(
        None,
        "File with the API key of that service. [default: the upstream's, if it is the same service]",
    )
    mirror_hours: float = option(24.0, "Hours from one copy to the next.")
    mirror_photos: bool = option(False, "Copy photos, too.")
    new_devices: str = option(
        "accept",
        "With ask, readings of a device that nobody knows wait in the inbox until you accept it: "
        "see `inbox`. accept or ask.",
    )
    quota: int | None = option(
        None,
        "Room for the data on the disk, such as 2GiB; beyond it no reading is taken. "
        "[default: 4GiB, at most half of the disk]",
    )
    names_an_hour: int = option(
        NAMES_AN_HOUR,
        "New devices that one address may register in an hour; in all, ten times as many.",
    )
    keep_days: int | None = option(
        None,
        "Delete readings this many days after their brew session ended, once they are forwarded. "
        "[default: keep everything]",
    )
    nightly_backup: Path | None = option(
        None,
        "Directory for a backup every night at three, best on another disk. It must exist.",
    )
    nightly_keep: int = option(7, "Number of nightly backups to keep.")
    log_level: str = option("info", "debug, info, warning or error.")

    def __post_init__(self) -> None:
        mistakes = []
        for name, check in CHECKS.items():
            value = getattr(self, name)
            try:
                checked = None if value is None else check(value)
            except ValueError as error:
                mistakes.append(f"{name}: {error}")
            else:
                object.__setattr__(self, name, checked)
        if not mistakes and (self.tls_cert is None) != (self.tls_key is None):
            mistakes.append("--tls-cert and --tls-key belong together: give both")
        elif not mistakes and self.tls_only and self.tls_cert is None:
            mistakes.append("--tls-only needs --tls-cert and --tls-key; `tls self-signed` makes both files")
        if self.ha_discovery and self.mqtt_url is None:
            mistakes.append(
                "--ha-discovery needs --mqtt-url: Home Assistant listens to a broker, and our own listener "
                "keeps and delivers nothing"
            )
        if self.ha_brews and not self.ha_discovery:
            mistakes.append("--ha-brews needs --ha-discovery")
        if mistakes:
            raise ConfigError("; ".join(mistakes))

    def hosts(self, own: list[str]) -> list[str]:
        """Return the hosts of a listener: its own ones, else the one of `host`."""
        hosts = list(dict.fromkeys(own)) or [self.host]
        # The system takes them for taken: that interface has these addresses.
        return [host for host in hosts if LOOPBACK_INTERFACE not in hosts or not is_loopback(host)]

    @property
    def origins(self) -> list[str]:
        """Return the origins of web pages that may report and use the API."""
        return [*self.allowed_origin, *self.cors_origin]

    def shown_options(self) -> dict[str, str]:
        """Return the options that are not at their defaults, as text without passwords."""
        return {
            name: _shown(getattr(self, name))
            for name, about in OPTIONS.items()
            if name != "data_dir" and getattr(self, name) != about.default
        }

    def upstream_key(self) -> str:
        """Read the key of the upstream from its file."""
        if self.upstream_key_file is None:
            raise ConfigError("an upstream URL needs --upstream-key-file, a file that holds only the API key")
        return read_key(self.upstream_key_file, "upstream key file")

    def mirror_key(self) -> str:
        """Read the key of the mirrored service: its own file's, or the same upstream's."""
        if self.mirror_key_file is not None:
            return read_key(self.mirror_key_file, "mirror key file")
        if self.mirrors_upstream:
            return self.upstream_key()
        raise ConfigError("--mirror-from needs --mirror-key-file, a file that holds only the API key")

    @property
    def mirrors_upstream(self) -> bool:
        """Return whether the mirrored service is the upstream."""
        same = (self.mirror_from or "").rstrip("/") == (self.upstream_url or "").rstrip("/")
        return same and self.mirror_from is not None


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_shown, value))
    text = str(value)
    return shown_url(text) if "://" in text else text


Check = Callable[[Any], Any]
"""Returns a value as it is taken, or raises `ValueError` with the words for what is wrong."""


def _within(least: float, most: float) -> Check:
    def check(value: float) -> float:
        if not value <= most:  # so written, because of the number that is none
            raise ValueError(f"{most} is the most that it can be")
        if not value >= least:
            raise ValueError(f"{least} is the least that it can be")
        return value

    return check


def _among(*choices: str) -> Check:
    def check(value: str) -> str:
        if value not in choices:
            *others, last = map(repr, choices)
            raise ValueError(f"it has to be {', '.join(others)} or {last}")
        return value

    return check


def _each(check: Check) -> Check:
    return lambda values: [check(value) for value in values]


def _of_one_kind(hosts: list[str]) -> list[str]:
    # The system takes the same port on an address and on an interface for taken.
    others = [host for host in hosts if not is_loopback(host)]
    if len({host.startswith(INTERFACE_MARK) for host in others}) > 1:
        raise ValueError("give interfaces or addresses, not both; only 127.0.0.1 and ::1 go with both")
    return hosts


def _topic(text: str) -> str:
    """Return a topic without wildcards, below which others can stand."""
    if not all(text.strip("/").split("/")) or text != text.strip() or text.startswith("$"):
        raise ValueError("a topic is needed, such as homeassistant")
    if not text.isprintable() or {"+", "#"} & set(text) or len(text) > TOPIC_PREFIX_CHARACTERS:
        raise ValueError(f"no + or # can stand in it, and {TOPIC_PREFIX_CHARACTERS} characters are the most")
    return text.strip("/")


def _quota(value: str | int) -> int:
    """Return the bytes of a size; without a unit it is in bytes."""
    found = SIZE.fullmatch(str(value).rstrip())
    unit = UNITS.get((found[2] or "b").lower()) if found else None
    if found is None or unit is None:
        raise ValueError("a size is needed, such as 500MB or 2GiB")
    size = int(float(found[1]) * unit) if found[2] or "." in found[1] else int(found[1])
    if size < QUOTA_BYTES_MIN:
        raise ValueError(f"{QUOTA_BYTES_MIN} is the least that it can be")
    return size


def _brewery(text: str) -> str:
    """Return a name as it is shown."""
    name = label_of(text.strip())
    if not name:
        raise ValueError("it is empty")
    return name


def _address(text: str) -> str:
    address = address_in(text.strip())
    if address is None:
        raise ValueError(f"{text!r} is no address; it must look like 172.30.32.2")
    return address


_PORT = _within(0, 65_535)

CHECKS: dict[str, Check] = {
    "http_host": _of_one_kind,
    "mqtt_host": _of_one_kind,
    "tcp_host": _of_one_kind,
    "port": _PORT,
    "tls_port": _PORT,
    "mqtt_tls_port": _PORT,
    "mqtt_port": _PORT,
    "tcp_port": _PORT,
    "also_listen": _each(_PORT),
    "hostname": _each(host_name),
    "trusted_proxy": _each(proxy_network),
    "ingress_proxy": _address,
    "allowed_origin": _each(origin),
    "cors_origin": _each(origin),
    "brewery": _brewery,
    "ha_prefix": _topic,
    "upstream_url": base_url,
    "forward_readings": _within(1, 10_000),
    "forward_seconds": _within(0, 86_400),
    "mirror_from": base_url,
    "mirror_hours": _within(0.01, 8_760),
    "new_devices": _among("accept", "ask"),
    "quota": _quota,
    "names_an_hour": _within(1, 1_000),
    "keep_days": _within(1, 36_500),
    "nightly_keep": _within(1, 10_000),
    "log_level": _among("debug", "info", "warning", "error"),
}
"""The checks of values that are given; all others are right by their type."""


@dataclass(frozen=True, slots=True)
class Option:
    """What the command line has to know of a field: the type of its value, its default and its help."""

    kind: Any
    default: Any
    about: str


def _options() -> dict[str, Option]:
    kinds = {**get_type_hints(Settings), "quota": str | None}  # with a unit, it is a text
    defaults = Settings(data_dir=Path())
    return {
        each.name: Option(kinds[each.name], getattr(defaults, each.name), each.metadata.get(HELP, ""))
        for each in fields(Settings)
    }


OPTIONS = _options()
"""The fields in their order. The default of `data_dir` is not here: it depends on the environment."""
