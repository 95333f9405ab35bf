"""Settings and secrets of channels, by kind: what each needs, and what is wrong with what it got."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from gateway.domain.alarm import Channel, ChannelKind
from gateway.domain.quiet_hours import quiet_hours
from gateway.domain.texts import did_you_mean
from gateway.errors import ConfigError, InvalidInput, in_words
from gateway.outward.client import check_url
from gateway.outward.signing import signing_key
from gateway.outward.templates import JSON, check_template

NTFY_SERVER = "https://ntfy.sh"
"""The public server. A topic there is known to everybody who guesses its name."""

TEMPLATE_NAMES = (
    "id", "at", "kind", "rule", "severity", "scope", "subject", "brew", "title", "text", "url",
)  # fmt: skip
"""Names that a template may have places for: members of the message."""

SECRET_CHARACTERS = 4096
"""Characters of a file with a secret at most."""

ADDRESSES = 10
"""Recipients of an e-mail at most."""

MOST_PER_HOUR, MOST_PER_DAY = 3_600, 86_400
"""The most messages that a channel can be allowed to send."""

TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
HOST = re.compile(r"[A-Za-z0-9.:_-]{1,253}")
MAIL_ADDRESS = re.compile(r"[^\s@<>,;:\"\\\x00-\x1f\x7f]{1,64}@[A-Za-z0-9.-]{1,253}")
URL_SIGNS = re.compile(r"[/?&=:@#;,]")
"""Signs between the pieces of an address."""

PIECE_CHARACTERS = 6
"""Characters of a piece of an address that may be a secret of its own; shorter ones are words."""

NAMED_LINE = re.compile(r"([a-z]+)=(.*)")


class Secrets(NamedTuple):
    """What a channel's secret may hold: the names of its parts; the first is the one that needs no name."""

    names: tuple[str, ...]
    needed: bool = False


SECRETS: Mapping[ChannelKind, Secrets] = {
    "ntfy": Secrets(("topic", "token"), needed=True),
    "webhook": Secrets(("secret", "url", "token")),
    "email": Secrets(("password",)),
    "mqtt": Secrets(()),
    "apprise": Secrets(("url",), needed=True),
}
"""The parts of each kind's secret."""


def _text(most: int) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > most or "\0" in value:
            raise InvalidInput(f"must be a text of 1 to {most} characters")
        return value.strip()

    return check


def _one_of(*words: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in words:
            raise InvalidInput(f"must be {' or '.join(words)}")
        return str(value)

    return check


def _number(least: int, most: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        text = str(value)
        if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) < 10):
            raise InvalidInput(f"must be a whole number from {least} to {most}")
        if not least <= int(text) <= most:
            raise InvalidInput(f"must be a whole number from {least} to {most}")
        return int(text)

    return check


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput("must be true or false")
    return value


def _url(value: Any) -> str:
    return check_url(str(value).strip())


def _server(value: Any) -> str:
    """Check the root of a server: a message goes to the root, whatever path is behind it."""
    url = _url(value).rstrip("/")
    if "?" in url or "#" in url:
        raise InvalidInput("must be the address of a server, such as https://ntfy.example.org")
    return url


def _host(value: Any) -> str:
    if not isinstance(value, str) or not HOST.fullmatch(value.strip()):
        raise InvalidInput("must be the name or address of a server, such as mail.example.org")
    return value.strip()


def _login(value: Any) -> str:
    # The standard library takes no others, nor does many a mail server.
    if not (text := _text(200)(value)).isascii():
        raise InvalidInput("must be of letters without accents, digits and signs")
    return text


def _mail_address(value: Any) -> str:
    # Whatever ends a line would begin another header.
    if not isinstance(value, str) or not MAIL_ADDRESS.fullmatch(value) or not value.isprintable():
        raise InvalidInput("must be an e-mail address, such as brewer@example.org")
    return value


def _mail_addresses(value: Any) -> list[str]:
    found = value if isinstance(value, list) else [value]
    if not 1 <= len(found) <= ADDRESSES:
        raise InvalidInput(f"must be 1 to {ADDRESSES} e-mail addresses")
    return [_mail_address(each) for each in found]


def _quiet(value: Any) -> str:
    return str(quiet_hours(str(value)))


Checks = Mapping[str, Callable[[Any], Any]]

FOR_ALL: Checks = {
    "quiet": _quiet,
    "quiet_critical": _switch,
    "per_hour": _number(1, MOST_PER_HOUR),
    "per_day": _number(1, MOST_PER_DAY),
}
"""Settings of every kind."""

BY_KIND: Mapping[ChannelKind, Checks] = {
    "ntfy": {"server": _server},
    "webhook": {"url": _url, "template": _text(16_384), "content_type": _text(100)},
    "email": {
        "host": _host,
        "port": _number(1, 65_535),
        "tls": _one_of("starttls", "tls", "none"),
        "user": _login,
        "sender": _mail_address,
        "to": _mail_addresses,
    },
    "mqtt": {"topic": _text(200)},
    "apprise": {},
}
"""Settings of each kind alone."""

NEEDED: Mapping[ChannelKind, tuple[str, ...]] = {"email": ("host", "sender", "to")}


def checked_settings(kind: ChannelKind, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a channel; `InvalidInput` names what is wrong."""
    if kind not in BY_KIND:
        raise InvalidInput(f"no kind {kind!r}{did_you_mean(kind, BY_KIND)}; there are {', '.join(BY_KIND)}")
    checks, made = {**BY_KIND[kind], **FOR_ALL}, {}
    for name, value in settings.items():
        if name not in checks:
            raise InvalidInput(
                f"a channel of kind {kind} has no setting {name!r}{did_you_mean(name, checks)}"
            )
        try:
            made[name] = checks[name](value)
        except (InvalidInput, ConfigError) as error:
            raise InvalidInput(f"{name}: {error}") from error
    for name in NEEDED.get(kind, ()):
        if name not in made:
            raise InvalidInput(f"{name} is missing: a channel of kind {kind} needs {', '.join(NEEDED[kind])}")
    if kind == "email" and made.get("tls") == "none" and "user" in made:
        raise InvalidInput("tls: a login goes through TLS only; leave the user out, or use starttls or tls")
    if kind == "mqtt" and any(sign in made.get("topic", "") for sign in "#+"):
        raise InvalidInput("topic: # and + are for those who listen")
    if kind == "webhook" and "template" in made:
        made.setdefault("content_type", JSON)
        try:
            check_template(made["template"], TEMPLATE_NAMES, made["content_type"])
        except ConfigError as error:
            raise InvalidInput(f"template: {error}") from error
    return made


def parse_secret(kind: ChannelKind, text: str) -> dict[str, str]:
    """Return the parts of a secret by name: lines such as `token=...`, or the bare main part.

    `InvalidInput` names what is wrong, and repeats nothing of it.
    """
    names, parts = SECRETS[kind].names, {}
    if len(text) > SECRET_CHARACTERS or "\0" in text:
        raise InvalidInput(f"a secret has {SECRET_CHARACTERS} characters at most")
    bare = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        found = NAMED_LINE.fullmatch(line)
        if found is not None and found[1] in names:
            parts[found[1]] = found[2].strip()
        else:
            bare.append(line)
    if bare and not names:
        raise InvalidInput(f"a channel of kind {kind} has no secret")
    if len(bare) > 1 and kind != "apprise":
        raise InvalidInput(
            f"the secret of a channel of kind {kind} is one line, or lines such as {names[-1]}=..."
        )
    if bare:
        parts[names[0]] = "\n".join(bare)
    parts = {name: part for name, part in parts.items() if part}
    if SECRETS[kind].needed and names[0] not in parts:
        raise InvalidInput(f"the {names[0]} is missing: a channel of kind {kind} needs it")
    for name, part in parts.items():
        if not all(line.isprintable() for line in part.split("\n")):
            raise InvalidInput(f"the {name} has a character in it that nobody can type")
    if "topic" in parts and not TOPIC.fullmatch(parts["topic"]):
        raise InvalidInput("the topic is of letters, digits, - and _, 64 of them at most")
    for name in ("token", "password"):
        if not parts.get(name, "").isascii():
            raise InvalidInput(f"the {name} is of letters without accents, digits and signs")
    try:
        if kind == "webhook":
            check_url(parts.get("url", "http://localhost"))
            signing_key(parts.get("secret", ""))
    except ConfigError as error:
        raise InvalidInput(str(error)) from error
    return parts


def check_together(kind: ChannelKind, settings: Mapping[str, Any], parts: Mapping[str, str]) -> None:
    """Check what a channel needs from its settings and its secret together; `InvalidInput` names it."""
    if kind == "webhook" and "url" not in settings and "url" not in parts:
        raise InvalidInput("url is missing: the address that a webhook is posted to")
    if kind == "email" and ("user" in settings) != ("password" in parts):
        raise InvalidInput("user and password belong together: a server that asks for neither gets neither")


def secrets_of(channel: Channel) -> dict[str, str]:
    """Read the parts of a channel's secret; `ConfigError` names the trouble, never the secret. Blocks."""
    if channel.secret_file is None:
        return {}
    path, what = Path(channel.secret_file), f"secret file of channel {channel.name}"
    try:
        with path.open("rb") as file:
            text = file.read(4 * SECRET_CHARACTERS + 1).decode()
    except OSError as error:
        raise ConfigError(f"{what}: {in_words(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} is not UTF-8 text") from error
    try:
        return parse_secret(channel.kind, text)
    except InvalidInput as error:
        raise ConfigError(f"{what}: {error}") from error


def hidden(text: str, parts: Mapping[str, str]) -> str:
    """Return one printable line without any part of the secret: a server may repeat it in its answer."""
    pieces = {line for part in parts.values() for line in part.split("\n")}
    # A server repeats the path of an address, or a member of its query, rather than the whole.
    for line in [line for line in pieces if "://" in line]:
        # The host of a web address is none; that of other addresses may be a token.
        rest = line.partition("://")[2]
        rest = rest.partition("/")[2] if line.startswith("http") else rest
        around = {rest, *URL_SIGNS.split(rest)}
        pieces |= {
            each for piece in around for each in (piece, unquote(piece)) if len(piece) >= PIECE_CHARACTERS
        }
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece, "<secret>")
    return "".join(char if char.isprintable() else " " for char in text)
