"""Attempts to report that leave no trace elsewhere: the page shows them to a person who adds a device."""

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from gateway.clock import Clock
from gateway.domain.key import without_keys
from gateway.events import StoredNotices

KNOCKS = 100
"""Knocks in memory at most; the one that was quiet longest is forgotten first."""

MINUTE_S = 60
"""Seconds in which knocks of one address and one kind are one knock."""

DETAIL_CHARACTERS = 80
"""Characters of a path that are kept."""

TLS_RECORD = 0x16
"""The first byte of a TLS handshake: the device speaks https, or MQTT over TLS, to a plain port."""


class KnockKind(StrEnum):
    """What was wrong with an attempt; the catalogues have a sentence for each."""

    HTTPS = "https"
    NO_HTTP = "no-http"
    PATH = "path"
    KEY = "key"
    FORBIDDEN = "forbidden"
    TOO_LARGE = "too-large"
    TOO_OFTEN = "too-often"
    MQTT_TLS = "mqtt-tls"
    NO_MQTT = "no-mqtt"
    MQTT_VERSION = "mqtt-version"
    MQTT_KEY = "mqtt-key"
    MQTT_CLIENT = "mqtt-client"
    TOO_MANY = "too-many"
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True)
class Knock:
    """An attempt that left nothing: its kind, its address, and a path where that helps.

    `times` counts the same within a minute, from `first_at` to `last_at` (Unix seconds); the path is the last
    one's.
    """

    kind: KnockKind
    address: str
    detail: str
    first_at: int
    last_at: int
    times: int


class Knocks:
    """The last attempts, in memory only. No bodies, no queries and no keys are kept.

    Pages that are open hear of each as of a payload in quarantine: both are messages that came to nothing.
    """

    def __init__(self, clock: Clock, notices: StoredNotices | None = None) -> None:
        self._clock = clock
        self._notices = notices
        self._knocks: OrderedDict[tuple[str, KnockKind, int], Knock] = OrderedDict()

    def add(self, kind: KnockKind, address: str, detail: str = "") -> None:
        """Note an attempt. `detail` is a path; its query and our keys are dropped."""
        now = int(self._clock.now())
        place = address, kind, now // MINUTE_S
        path = without_keys(detail.partition("?")[0])[:DETAIL_CHARACTERS]
        plain = "".join(char if char.isprintable() else "\ufffd" for char in path)
        before = self._knocks.pop(place, None)
        first_at, times = (before.first_at, before.times) if before is not None else (now, 0)
        self._knocks[place] = Knock(kind, address, plain, first_at, now, times + 1)
        if len(self._knocks) > KNOCKS:
            self._knocks.popitem(last=False)
        if self._notices is not None:
            self._notices.publish("quarantine")

    def since(self, at: float) -> list[Knock]:
        """Return the knocks since a time (Unix seconds), the newest first."""
        return [knock for knock in reversed(self._knocks.values()) if knock.last_at >= int(at)]
