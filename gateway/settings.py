"""The options of `serve`, with their defaults.

One frozen model holds them. The command line fills it from flags, `GATEWAY_*` variables, the file and the
defaults, in that order.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ByteSize, ConfigDict, Field, ValidationError, field_validator, model_validator

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
    plainly,
    read_key,
)
from gateway.domain.texts import shown_url
from gateway.errors import ConfigError
from gateway.interfaces import INTERFACE_MARK, LOOPBACK_INTERFACE, is_loopback
from gateway.network import proxy_network

HOST_OF = (
    "Address to listen on for {}, or an interface such as %eth0, instead of --host. Give the option once for "
    "each, all addresses or all interfaces; 127.0.0.1 goes with both."
)

QUOTA_BYTES_MIN = 16 * 1024 * 1024
"""The smallest quota of the data directory: room for about a hundred thousand readings."""

Port = Annotated[int, Field(ge=0, le=65_535)]
LogLevel = Literal["debug", "info", "warning", "error"]


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


def explain(error: ValidationError) -> str:
    """Write a validation error in one line that a user can act on."""
    told = ((".".join(map(str, item["loc"])), plainly(item["msg"])) for item in error.errors())
    return "; ".join(f"{where}: {words}" if where else words for where, words in told)
