"""What a connection to an MQTT broker is made of, without the client library: address, message, patience."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import unquote, urlsplit

from gateway.errors import ConfigError

IN_FLIGHT_MESSAGES = 1_000
"""Messages handed over and not yet acknowledged; beyond it whoever sends has to keep the rest."""

IN_FLIGHT_BYTES = 8 * 1024 * 1024
"""Payload bytes of these messages, likewise."""

PACKET_BYTES = 128 * 1024
"""Of a packet: a topic of the greatest length, and as much of a payload as HTTP takes of a body."""

RECONNECT_CAP_S = 30.0
TAKEOVER_CAP_S = 300.0

SHORT_S, SHORT_CONNECTIONS = 60.0, 3
"""That many connections in a row that each ended within that time: somebody else uses our client id."""

DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True, slots=True)
class MqttUrl:
    """Where the broker is, and as whom; its `repr` keeps the password to itself."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> "MqttUrl":
        """Read `mqtt://user:password@host:port` or `mqtts://…`; messages never quote the password."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
            # paho meets a host name that cannot be encoded in its thread, and the thread would end of it.
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
        """Host and port, for people."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Message:
    """One PUBLISH as it arrived. `mid`, the packet id, means something only together with `connection`.

    `place` counts all messages of this process.
    """

    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    mid: int
    received_at: float = 0.0
    connection: int = 0
    place: int = 0


class InFlight:
    """Messages handed over and not yet acknowledged; one thread may `take` while another does `release`."""

    def __init__(self) -> None:
        self.taken = self._released = self._taken_bytes = self._released_bytes = 0

    def take(self, message: Message) -> None:
        """It is handed over."""
        self.taken += 1
        self._taken_bytes += len(message.payload)

    def release(self, message: Message) -> None:
        """It is acknowledged."""
        self._released += 1
        self._released_bytes += len(message.payload)

    @property
    def messages(self) -> int:
        """How many there are."""
        return self.taken - self._released

    def is_full(self) -> bool:
        """Whether whoever sends has to wait."""
        held_bytes = self._taken_bytes - self._released_bytes
        return self.messages >= IN_FLIGHT_MESSAGES or held_bytes >= IN_FLIGHT_BYTES


class MessageSource(Protocol):
    """Where messages come from: `paho_bridge.Bridge`, or `embedded_bridge.EmbeddedBridge`."""

    state: str
    is_heard: bool
    """Whether everything that is published for us reaches us, as far as `state` knows."""
    on_state: Callable[[str], None] | None
    copies: bool

    async def next_batch(self, timeout_s: float | None = None) -> list[Message]:
        """What has come, in order of arrival; empty when nothing did within `timeout_s`."""

    def ack(self, messages: Sequence[Message]) -> None:
        """These are dealt with; each is named once."""


class Reconnects:
    """How long to wait before the next attempt: doubling, jittered, capped; times are monotonic seconds."""

    def __init__(self) -> None:
        self._attempts = 0
        self._short = 0
        self._since: float | None = None
        self._is_broken = False

    def taken_over(self, now: float) -> bool:
        """Whether connections end so soon and so often that a second client with our id is likely."""
        return self._short >= SHORT_CONNECTIONS and not (self._since and now - self._since >= SHORT_S)

    def connected(self, now: float) -> None:
        """The broker took us."""
        self._since = now
        if not self._is_broken:
            self._attempts = 0

    def broken(self) -> None:
        """We end the connection for what the broker has sent; it may send that again on the next."""
        self._since, self._is_broken = None, True

    def carried(self) -> None:
        """A message came through."""
        if self._is_broken:
            self._is_broken, self._attempts = False, 0

    def lost(self, now: float) -> bool:
        """The connection ended; whether there was one."""
        since, self._since = self._since, None
        if since is None:
            return False
        self._short = self._short + 1 if now - since < SHORT_S else 0
        return True

    def delay_s(self) -> float:
        """Seconds until the next attempt; longer each time it is asked."""
        self._attempts += 1
        step, cap = self._attempts - 1, RECONNECT_CAP_S
        if self._short >= SHORT_CONNECTIONS:
            step, cap = self._short, TAKEOVER_CAP_S
        return min(cap, 2.0 ** min(step, 16)) * random.uniform(0.5, 1)  # noqa: S311 (jitter, no secret)
