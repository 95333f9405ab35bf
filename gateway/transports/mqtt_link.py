"""Parts of an MQTT connection without the client library: address, message, waits between attempts."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import unquote, urlsplit

from gateway.config import others_can_read, read_password
from gateway.domain.key import ApiKey
from gateway.errors import ConfigError
from gateway.settings import Settings

IN_FLIGHT_MESSAGES = 1_000
"""Messages that may be handed over and not yet acknowledged; the sender has to keep the rest."""

IN_FLIGHT_BYTES = 2 * 1024 * 1024
"""Payload bytes that messages in flight may have in all."""

PACKET_BYTES = 128 * 1024
"""Bytes of a packet at most: the longest topic, and as long a payload as HTTP takes of a body."""

RECONNECT_CAP_S = 30.0
"""The longest wait between attempts, in seconds."""

TAKEOVER_CAP_S = 300.0
"""The longest wait while another client uses our client id, in seconds."""

SHORT_S, SHORT_CONNECTIONS = 60.0, 3
"""Connections in a row that each ended within that many seconds: another client uses our client id."""

DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True, slots=True)
class MqttUrl:
    """Address, user and password for a broker; `repr` does not show the password."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> "MqttUrl":
        """Parse `mqtt://user:password@host:port` or `mqtts://…`; error messages never quote the password."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
            # Encoded here, because paho does it in its thread, and a bad host name would end the thread.
            host.encode("idna")
        except (ValueError, KeyError):
            raise ConfigError(
                "an MQTT URL looks like mqtt://user:password@host:1883 or mqtts://host"
            ) from None
        if not host:
            raise ConfigError("the MQTT URL names no host")
        user, password = (unquote(part) if part else None for part in (parts.username, parts.password))
        return cls(host, port, parts.scheme == "mqtts", user, password)

    @property
    def where(self) -> str:
        """Return host and port, as users read them."""
        return f"{self.host}:{self.port}"


def broker_of(settings: Settings) -> MqttUrl | None:
    """Return the broker that the options name, or None. `--mqtt-user` goes before a user in the URL."""
    if settings.mqtt_url is None or settings.no_mqtt:
        return None
    url = MqttUrl.parse(settings.mqtt_url)
    if settings.mqtt_user is not None:
        url = replace(url, user=settings.mqtt_user, password=None)
    if settings.mqtt_password_file is not None:
        if url.user is None:
            raise ConfigError("--mqtt-password-file needs --mqtt-user")
        url = replace(url, password=read_password(settings.mqtt_password_file))
    return url


def advice_of(settings: Settings) -> list[str]:
    """Return a sentence for each way in which others can read the password for the broker."""
    found = []
    if settings.mqtt_url is not None and MqttUrl.parse(settings.mqtt_url).password:
        found.append(
            "Other users of this machine may see the password in --mqtt-url (ps); use --mqtt-user and "
            "--mqtt-password-file."
        )
    path = settings.mqtt_password_file
    if path is not None and others_can_read(path):
        found.append(f"Other users can read {path}: chmod 600 {path}")
    return found


# Not frozen, because each field would be set by a call: a message would cost three times as much to make.
@dataclass(slots=True)
class Message:
    """A PUBLISH as it arrived. `mid`, the packet id, has a meaning only together with `connection`.

    `number` counts all messages of this process. `source` is the sender's address, and `key` the ingest key
    that came with the message; a broker hides both.
    """

    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    mid: int
    received_at: float = 0.0
    connection: int = 0
    number: int = 0
    source: str = ""
    key: ApiKey | None = field(default=None, repr=False)


class InFlight:
    """Counts messages handed over and not yet acknowledged."""

    def __init__(self) -> None:
        self.added = self._removed = self._added_bytes = self._removed_bytes = 0

    def add(self, message: Message) -> None:
        """Count a message that is handed over."""
        self.added += 1
        self._added_bytes += len(message.payload)

    def remove(self, message: Message) -> None:
        """Count a message that is acknowledged."""
        self._removed += 1
        self._removed_bytes += len(message.payload)

    @property
    def messages(self) -> int:
        """Return the number of messages in flight."""
        return self.added - self._removed

    def is_full(self, parts: int = 1) -> bool:
        """Return whether the sender has to wait; one of several senders may have one of so many parts."""
        messages, size_bytes = self.added - self._removed, self._added_bytes - self._removed_bytes
        return messages * parts >= IN_FLIGHT_MESSAGES or size_bytes * parts >= IN_FLIGHT_BYTES


class MessageSource(Protocol):
    """A source of messages: `paho_bridge.Bridge`, or `mqtt_listener.MqttListener`."""

    state: str
    """The state of the connection, in words for users."""
    is_receiving: bool
    """True as long as all messages published for us reach us, as far as is known."""
    on_state: Callable[[str], None] | None
    """Called with every new state."""
    copies: bool
    """True if the source may send a message once for each subscription that fits."""

    async def next_batch(self, timeout_s: float | None = None) -> list[Message]:
        """Return messages in order of arrival; an empty list if none arrives within `timeout_s`."""

    def ack(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages that are dealt with. Each message may be acknowledged once."""

    def refuse(self, messages: Sequence[Message]) -> bool:
        """Refuse messages for which the store has no room, if the source can; their senders keep them.

        Return False if the source cannot: then the messages wait.
        """

    def note_store(self, *, refuses: bool) -> None:
        """Note whether the store refuses readings at the moment."""


class Reconnects:
    """Waits before attempts to connect: doubling, jittered, capped. Times are monotonic seconds."""

    def __init__(self, cap_s: float = RECONNECT_CAP_S) -> None:
        self._cap_s = cap_s
        self._attempts = 0
        self._short = 0
        self._since: float | None = None
        self._is_broken = False

    def taken_over(self, now: float) -> bool:
        """Return whether connections end so soon and so often that a second client with our id is likely."""
        return self._short >= SHORT_CONNECTIONS and not (self._since and now - self._since >= SHORT_S)

    def connected(self, now: float) -> None:
        """Note that the broker accepted a connection."""
        self._since = now
        # Not after an unreadable packet, because the broker may send it again and again.
        if not self._is_broken:
            self._attempts = 0

    def broken(self) -> None:
        """Note that we end the connection for an unreadable packet, which the next one may bring again."""
        self._since, self._is_broken = None, True

    def received(self) -> None:
        """Note that a message has arrived."""
        if self._is_broken:
            self._is_broken, self._attempts = False, 0

    def lost(self, now: float) -> bool:
        """Note that the connection ended. Return whether there was one."""
        since, self._since = self._since, None
        if since is None:
            return False
        self._short = self._short + 1 if now - since < SHORT_S else 0
        return True

    def delay_s(self) -> float:
        """Return the seconds until the next attempt; longer after each call."""
        self._attempts += 1
        step, cap = self._attempts - 1, self._cap_s
        if self._short >= SHORT_CONNECTIONS:
            step, cap = self._short, TAKEOVER_CAP_S
        return min(cap, 2.0 ** min(step, 16)) * random.uniform(0.5, 1)  # noqa: S311 (jitter, no secret)
