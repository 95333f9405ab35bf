"""Configuration: where files are, what is read from them, and the forms of addresses and names.

The options of `serve` are in `gateway.settings`. Not here, because every command needs this module, and few
need the validation library, which takes longer to import than all of this.
"""

import os
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gateway.errors import ConfigError, in_words
from gateway.processes import PROC, owner_of

APP_NAME = "hydrometer-gateway"

HTTP_PORT = 8080
MQTT_PORT = 1883
TCP_PORT = 9501
TLS_PORT = 8443
MQTT_TLS_PORT = 8883

ORIGIN = re.compile(r"(?P<scheme>https?)://(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
"""The ASCII serialisation of an origin (RFC 6454), in lower case."""

HOST_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*")

DEFAULT_BREWERY = "Brewery"
"""The name on the page until the brewer sets one."""

DEFAULT_PORTS = {"http": 80, "https": 443}
"""Ports that browsers leave out of an origin."""

SERVE_KEYS = frozenset(
    [
        "data_dir",
        "host",
        "http_host",
        "mqtt_host",
        "tcp_host",
        "port",
        "tls_cert",
        "tls_key",
        "tls_port",
        "mqtt_tls_port",
        "tls_only",
        "mqtt_port",
        "mqtt_url",
        "mqtt_user",
        "mqtt_password_file",
        "mqtt_topic",
        "no_mqtt",
        "ha_discovery",
        "ha_prefix",
        "ha_brews",
        "tcp_port",
        "no_tcp",
        "also_listen",
        "hostname",
        "trusted_proxy",
        "ingress_proxy",
        "http_socket",
        "require_key",
        "allowed_origin",
        "cors_origin",
        "no_page",
        "lan_view",
        "brewery",
        "upstream_url",
        "upstream_key_file",
        "forward_readings",
        "forward_seconds",
        "mirror_from",
        "mirror_key_file",
        "mirror_hours",
        "mirror_photos",
        "new_devices",
        "quota",
        "names_an_hour",
        "keep_days",
        "nightly_backup",
        "nightly_keep",
        "log_level",
    ]
)
"""The keys at the top of the file: the names of the fields of `Settings`, which a test compares.

Every command checks them, because one that is misspelt may be `data_dir`.
"""

NAMES_AN_HOUR = 20
"""New devices that one source may register in an hour, unless the user says otherwise."""


def default_data_dir() -> Path:
    """Return the default data directory: systemd's STATE_DIRECTORY, else the XDG data directory."""
    state = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    if state:
        return Path(state)
    return data_home() / APP_NAME


def data_home() -> Path:
    """Return the directory of the user's data."""
    return _xdg("XDG_DATA_HOME", ".local/share")


SERVICE_DATA_DIR = Path("/var/lib/hydrometer-gateway")
"""The data directory of the systemd service: StateDirectory= in its unit."""


def commands_data_dir() -> Path:
    """Return the data directory of a command that names none: this user's own data, else the service's.

    Inside the service it is the service's own, and without either the default.
    """
    if os.environ.get("STATE_DIRECTORY"):
        return default_data_dir()
    # Not `exists`, because with DynamicUser= it is a link into a directory that only root may enter.
    has_service = os.path.lexists(SERVICE_DATA_DIR)
    try:
        own = default_data_dir()
    except ConfigError:  # no home, as in a timer of systemd
        if has_service:
            return SERVICE_DATA_DIR
        raise
    with suppress(OSError):
        if any(own.iterdir()):
            return own
    return SERVICE_DATA_DIR if has_service else own


NO_DATABASE = "there is no database in {} yet; start the gateway once, or name the data by --data-dir"


def no_right(directory: Path) -> str:
    """Return why this user may not use a data directory, and what to do."""
    if directory == SERVICE_DATA_DIR:
        return f"{directory} belongs to the service; use `sudo`, or --data-dir"
    existing = next(path for path in (directory, *directory.parents) if os.path.lexists(path))
    owner, own = owner_of(existing), owner_of(PROC / "self")
    made = "" if existing == directory else f"{directory} cannot be used: "
    if owner == own:
        return f"{made}{existing} cannot be written to; `chmod 700 {shlex.quote(str(existing))}`"
    sudo = f"`sudo -u {owner}`" if owner != "root" else "`sudo`"
    return f"{made}{existing} belongs to {owner}; use {sudo}, or --data-dir"


def default_config_file() -> Path:
    """Return the file that is read, if it exists, when the user names none."""
    return config_home() / APP_NAME / "gateway.toml"


def config_home() -> Path:
    """Return the directory of the user's settings."""
    return _xdg("XDG_CONFIG_HOME", ".config")


def _xdg(variable: str, below_home: str) -> Path:
    """Return the variable's directory, else the one below home. The XDG standard ignores relative paths."""
    directory = Path(os.environ.get(variable, ""))
    if directory.is_absolute():
        return directory
    try:
        return Path.home() / below_home
    except RuntimeError as error:
        raise ConfigError(f"there is no home directory; set {variable}") from error


API_PATH = re.compile(r"(/v1)?/*$", re.IGNORECASE)
"""The path behind a base URL that is cut off."""


def said_of_url(told: str, taken: str) -> str | None:
    """Return a sentence about a cut base URL; None if no more than a slash was cut off."""
    behind = [url.partition("://")[2] for url in (told.strip(), taken)]  # the scheme is in lower case by now
    cut = behind[0].rstrip("/").removeprefix(behind[1])
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
        raise ConfigError(
            f"{what} {path} does not hold one line with a key; write the key there, and nothing else"
        )
    return key


def read_password(path: Path) -> str:
    """Read the password that is the first line of the file, and all of it."""
    password = _read_secret(path, "password file", "password").rstrip("\r\n")
    if not password or "\n" in password or "\0" in password:
        raise ConfigError(f"password file {path} does not hold one line with a password")
    return password


TARGETS_KEY = "key file of target "
LOGIN_ASKS = frozenset({"key file", "upstream key file", "key file of upstream"})
"""Key files, as errors name them, that `targets login` makes needless."""


def _read_secret(path: Path, what: str, secret: str) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        login = "`targets login NAME` asks for a key and keeps it in a file of its own"
        remedy = (
            login if what in LOGIN_ASKS or what.startswith(TARGETS_KEY) else f"write the {secret} into it"
        )
        raise ConfigError(f"there is no {what} {path}; {remedy}") from error
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
    import tomllib  # not above: most commands run without a file

    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {in_words(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the configuration file {path} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the configuration file {path} is not valid TOML: {error}") from error


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
