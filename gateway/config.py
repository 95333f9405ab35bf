"""Configuration: the options, their defaults, and the TOML file.

One frozen model holds the options of `serve`. The command line fills it from flags, `GATEWAY_*` variables,
the file and the defaults, in that order.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ByteSize, ConfigDict, Field, ValidationError, field_validator, model_validator

from gateway.domain.texts import shown_url
from gateway.errors import ConfigError, in_words
from gateway.interfaces import INTERFACE_MARK, LOOPBACK_INTERFACE, is_loopback
from gateway.network import proxy_network

APP_NAME = "hydrometer-gateway"

HTTP_PORT = 8080
MQTT_PORT = 1883
TCP_PORT = 9501
TLS_PORT = 8443
MQTT_TLS_PORT = 8883

HOST_OF = (
    "Address to listen on for {}, or an interface such as %eth0, instead of --host. Give the option once for "
    "each, all addresses or all interfaces; 127.0.0.1 goes with both."
)

ORIGIN = re.compile(r"(?P<scheme>https?)://(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
"""The ASCII serialisation of an origin (RFC 6454), in lower case."""

HOST_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*")

DEFAULT_PORTS = {"http": 80, "https": 443}
"""Ports that browsers leave out of an origin."""

NAMES_AN_HOUR = 20
"""New devices that one source may register in an hour, unless the user says otherwise."""

QUOTA_BYTES_MIN = 16 * 1024 * 1024
"""The smallest quota of the data directory: room for about a hundred thousand readings."""

Port = Annotated[int, Field(ge=0, le=65_535)]
LogLevel = Literal["debug", "info", "warning", "error"]


def default_data_dir() -> Path:
    """Return the default data directory: systemd's STATE_DIRECTORY, else the XDG data directory."""
    state = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    if state:
        return Path(state)
    return _xdg("XDG_DATA_HOME", ".local/share") / APP_NAME


def default_config_file() -> Path:
    """Return the file that is read, if it exists, when the user names none."""
    return _xdg("XDG_CONFIG_HOME", ".config") / APP_NAME / "gateway.toml"


def _xdg(variable: str, below_home: str) -> Path:
    """Return the variable's directory, else the one below home. The XDG standard ignores relative paths."""
    directory = Path(os.environ.get(variable, ""))
    if directory.is_absolute():
        return directory
    try:
        return Path.home() / below_home
    except RuntimeError as error:
        raise ConfigError(f"there is no home directory; set {variable}") from error


class Settings(BaseModel):
    """The options of `serve`, with their defaults and their help; the keys of the TOML file's top level."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_dir: Path = Field(default_factory=default_data_dir)
    host: str = Field("", description="Address to listen on, or an interface such as %eth0.")
    http_host: list[str] = Field([], description=HOST_OF.format("HTTP and HTTPS"))
    mqtt_host: list[str] = Field([], description=HOST_OF.format("MQTT"))
    tcp_host: list[str] = Field([], description=HOST_OF.format("TCP"))
    port: Port = Field(HTTP_PORT, description="HTTP port; 0 takes a free one.")
    tls_cert: Path | None = Field(
        None, description="Certificate, in PEM form with its chain: switches on HTTPS and MQTT over TLS."
    )
    tls_key: Path | None = Field(None, description="Key of the certificate, in PEM form, without a password.")
    tls_port: Port = Field(TLS_PORT, description="HTTPS port; 0 takes a free one.")
    mqtt_tls_port: Port = Field(MQTT_TLS_PORT, description="Port for MQTT over TLS; 0 takes a free one.")
    tls_only: bool = Field(False, description="Plain HTTP takes readings of devices and nothing else.")
    mqtt_port: Port = Field(MQTT_PORT, description="MQTT port; 0 takes a free one.")
    mqtt_url: str | None = Field(
        None, description="Read from this broker instead of listening: mqtt://host:port or mqtts://host."
    )
    mqtt_user: str | None = Field(None, description="User at that broker.")
    mqtt_password_file: Path | None = Field(
        None, description="File that holds only the password of that user."
    )
    mqtt_topic: list[str] = []
    no_mqtt: bool = Field(False, description="No MQTT.")
    tcp_port: Port = Field(TCP_PORT, description="Port for the iSpindel's service TCP; 0 takes a free one.")
    no_tcp: bool = Field(False, description="No TCP.")
    also_listen: list[Port] = Field(
        [],
        description="A further HTTP port, only for devices whose firmware fixes the port, such as 5000 "
        "(iSpindel, CraftBeerPi) or 80 (TiltBridge 1.0). Give the option once for each port.",
    )
    hostname: list[str] = Field(
        [],
        description="A further name of this machine, such as brew.example.org: requests for other names than "
        "its own are refused. Give the option once for each name.",
    )
    trusted_proxy: list[str] = Field(
        [],
        description="Address or network of a reverse proxy, such as 127.0.0.1: the address that it names in "
        "X-Forwarded-For or Forwarded counts as the sender. Give the option once for each.",
    )
    http_socket: Path | None = Field(
        None,
        description="Also serve HTTP on this Unix socket, for a reverse proxy on this machine. The proxy "
        "counts as trusted. Its user must be in the group of the socket.",
    )
    require_key: bool = Field(
        False,
        description="Take readings with an ingest key only, from this machine and its network, too. "
        "Switches TCP off, because TCP can send no key.",
    )
    allowed_origin: list[str] = Field(
        [],
        description="Let web pages of this origin report and use the API, such as https://brew.lan. Give the "
        "option once for each origin.",
    )
    cors_origin: list[str] = Field([], description="The old name of --allowed-origin.")
    upstream_url: str | None = Field(
        None, description="Brewing Data Service to forward to: https://host, without /v1."
    )
    upstream_key_file: Path | None = Field(None, description="File with the API key of the upstream.")
    forward_readings: Annotated[int, Field(ge=1, le=10_000)] = Field(
        500, description="Forward when this many readings wait,"
    )
    forward_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        60.0, description="or when the oldest has waited this many seconds."
    )
    mirror_from: str | None = Field(
        None, description="Brewing Data Service to copy regularly: https://host, without /v1."
    )
    mirror_key_file: Path | None = Field(
        None,
        description="File with the API key of that service. "
        "[default: the upstream's, if it is the same service]",
    )
    mirror_hours: Annotated[float, Field(ge=0.01, le=8_760)] = Field(
        24.0, description="Hours from one copy to the next."
    )
    mirror_photos: bool = Field(False, description="Copy photos, too.")
    new_devices: Literal["accept", "ask"] = Field(
        "accept",
        description="With ask, readings of a device that nobody knows wait in the inbox until you accept it: "
        "see `inbox`. accept or ask.",
    )
    quota: Annotated[ByteSize, Field(ge=QUOTA_BYTES_MIN)] | None = Field(
        None,
        description="Room for the data on the disk, such as 2GiB; beyond it no reading is taken. "
        "[default: 4GiB, at most half of the disk]",
    )
    names_an_hour: Annotated[int, Field(ge=1, le=1_000)] = Field(
        NAMES_AN_HOUR,
        description="New devices that one address may register in an hour; in all, ten times as many.",
    )
    keep_days: Annotated[int, Field(ge=1, le=36_500)] | None = Field(
        None,
        description="Delete readings this many days after their brew session ended, once they are forwarded. "
        "[default: keep everything]",
    )
    nightly_backup: Path | None = Field(
        None,
        description="Directory for a backup every night at three, best on another disk. It must exist.",
    )
    nightly_keep: Annotated[int, Field(ge=1, le=10_000)] = Field(
        7, description="Number of nightly backups to keep."
    )
    log_level: LogLevel = Field("info", description="debug, info, warning or error.")

    @field_validator("http_host", "mqtt_host", "tcp_host")
    @classmethod
    def _are_of_one_kind(cls, values: list[str]) -> list[str]:
        # The system takes the same port on an address and on an interface for taken.
        others = [host for host in values if not is_loopback(host)]
        if len({host.startswith(INTERFACE_MARK) for host in others}) > 1:
            raise ValueError("give interfaces or addresses, not both; only 127.0.0.1 and ::1 go with both")
        return values

    @model_validator(mode="after")
    def _has_a_pair(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("--tls-cert and --tls-key belong together: give both")
        if self.tls_only and self.tls_cert is None:
            raise ValueError("--tls-only needs --tls-cert and --tls-key; `tls self-signed` makes both files")
        return self

    def hosts(self, own: list[str]) -> list[str]:
        """Return the hosts of a listener: its own ones, else the one of `host`."""
        hosts = list(dict.fromkeys(own)) or [self.host]
        # The system takes them for taken: that interface has these addresses.
        return [host for host in hosts if LOOPBACK_INTERFACE not in hosts or not is_loopback(host)]

    @field_validator("upstream_url", "mirror_from")
    @classmethod
    def _is_a_base_url(cls, value: str | None) -> str | None:
        return None if value is None else base_url(value)

    @field_validator("allowed_origin", "cors_origin")
    @classmethod
    def _are_origins(cls, values: list[str]) -> list[str]:
        return [origin(value) for value in values]

    @field_validator("trusted_proxy")
    @classmethod
    def _are_proxies(cls, values: list[str]) -> list[str]:
        return [proxy_network(value) for value in values]

    @field_validator("hostname")
    @classmethod
    def _are_host_names(cls, values: list[str]) -> list[str]:
        return [host_name(value) for value in values]

    @property
    def origins(self) -> list[str]:
        """Return the origins of web pages that may report and use the API."""
        return [*self.allowed_origin, *self.cors_origin]

    def shown_options(self) -> dict[str, str]:
        """Return the options that are not at their defaults, as text without passwords."""
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "data_dir"}
        return {
            name: _shown(value)
            for name, value in given.items()
            if value != type(self).model_fields[name].get_default(call_default_factory=True)
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


API_PATH = re.compile(r"(/v1)?/*$")
"""The path behind a base URL that is cut off."""


def said_of_url(told: str, taken: str) -> str | None:
    """Return a sentence about a cut base URL; None if no more than a slash was cut off."""
    cut = told.strip().rstrip("/").removeprefix(taken)
    return f"{cut} belongs to the API, not to the address of the service: {taken} is taken." if cut else None


def base_url(value: str) -> str:
    """Return the base URL of a service, without the path of its API.

    Raise `ValueError` with the right form. `https://host/v1/` stands in the documents of a service, and
    people copy it: it becomes `https://host`, because every request would go to `/v1/v1/...` otherwise.
    """
    try:
        parts = urlsplit(value.strip())
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # such as a port of 99999
        usable = False
    if not usable:
        raise ValueError("must look like https://host (without the /v1)")
    return f"{parts.scheme}://{parts.netloc}{API_PATH.sub('', parts.path)}"


def origin(value: str) -> str:
    """Return the origin of a web page as browsers send it. Raise `ValueError` with the right form."""
    found = ORIGIN.fullmatch(value.lower())
    if found is None or not 0 < int(found["port"] or 1) < 65_536:
        raise ValueError(
            f"{value!r} is no origin; it must look like https://brew.lan or http://192.168.1.20:3000, with "
            "neither a path nor a slash at its end; * is none, and a name beyond ASCII begins with xn--"
        )
    return found[0].removesuffix(f":{DEFAULT_PORTS[found['scheme']]}")


def host_name(value: str) -> str:
    """Return a name of this machine in lower case. Raise `ValueError` with the right form."""
    name = value.strip().rstrip(".").lower()
    if HOST_NAME.fullmatch(name) is None:
        raise ValueError(
            f"{value!r} is no host name; it must look like brew.example.org, without a port; a name beyond "
            "ASCII begins with xn--"
        )
    return name


def read_key(path: Path, what: str) -> str:
    """Read the API key that is all of the file; `what` names the file in the error."""
    key = _read_secret(path, what, "key").strip()
    if not is_key(key):
        raise ConfigError(f"{what} {path} does not hold one line with a key")
    return key


def read_password(path: Path) -> str:
    """Read the password that is the first line of the file, and all of it."""
    password = _read_secret(path, "password file", "password").rstrip("\r\n")
    if not password or "\n" in password or "\0" in password:
        raise ConfigError(f"password file {path} does not hold one line with a password")
    return password


def _read_secret(path: Path, what: str, secret: str) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"{what} {path}: {in_words(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} {path} does not hold one line with a {secret}") from error


def others_can_read(path: Path) -> bool:
    """Return whether users of this machine beside its owner can read or write the file."""
    return path.stat().st_mode & 0o077 != 0


def is_key(text: str) -> bool:
    """Return whether the text can be sent as a key."""
    return bool(text) and text.isprintable() and text.isascii()


def read_file(path: Path) -> dict[str, Any]:
    """Read the keys of a TOML file."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {in_words(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the configuration file {path} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the configuration file {path} is not valid TOML: {error}") from error


def explain(error: ValidationError) -> str:
    """Write a validation error in one line that a user can act on."""
    told = ((".".join(map(str, item["loc"])), plainly(item["msg"])) for item in error.errors())
    return "; ".join(f"{where}: {words}" if where else words for where, words in told)


PLAIN_WORDS = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer.*", "a whole number is needed"),
    (r"Input should be a valid number.*", "a number is needed"),
    (r"Input should be a valid boolean.*", "true or false is needed"),
    (r"Input should be a valid string", "text is needed"),
    (r"Input should be a valid list", "a list is needed"),
    (r"Input is not a valid path.*", "a path is needed"),
    (r"Input should be less than or equal to (\S+)", r"\1 is the most that it can be"),
    (r"Input should be greater than or equal to (\S+)", r"\1 is the least that it can be"),
    (r"Input should be ", "it has to be "),
    (r"Field required", "is missing"),
    (r"Extra inputs are not permitted", "is not known"),
    (r"String should have at least 1 character", "is empty"),
    (r"String should have at most ([0-9]+) characters?", r"has more than \1 characters"),
    (r"List should have at most ([0-9]+) items? .*", r"has more than \1 entries"),
    (r"Invalid JSON: .*", "is not JSON"),
    (r"could not parse value and unit from byte string", "a size is needed, such as 500MB or 2GiB"),
)
"""Patterns of the validation library's messages, and our words instead."""


def plainly(message: str) -> str:
    """Write a validation message in the user's words."""
    for pattern, words in PLAIN_WORDS:
        message = re.sub(pattern, words, message)
    return message
