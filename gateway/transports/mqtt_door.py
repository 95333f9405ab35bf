"""Who may connect by MQTT: connections of each source, neighbours and strangers, and ingest keys."""

import logging
from typing import TYPE_CHECKING

from gateway.clock import Clock
from gateway.domain.key import KEY_PREFIX, ApiKey
from gateway.errors import RateLimited, Unauthorized
from gateway.logs import MINUTE_S, RareLines
from gateway.network import Peer
from gateway.services.access import Access
from gateway.services.knocks import TLS_RECORD, KnockKind, Knocks
from gateway.stats import MqttCounts
from gateway.transports.mqtt_fields import Code
from gateway.transports.mqtt_limits import MqttLimits
from gateway.transports.mqtt_packets import Connect

if TYPE_CHECKING:
    from gateway.transports.mqtt_connection import MqttConnection

log = logging.getLogger(__name__)

KNOCK_OF = {
    Code.UNKNOWN_VERSION: KnockKind.MQTT_VERSION,
    Code.BAD_CREDENTIALS: KnockKind.MQTT_KEY,
    Code.BAD_AUTHENTICATION: KnockKind.MQTT_KEY,
    Code.NOT_AUTHORISED: KnockKind.MQTT_KEY,
    Code.BAD_CLIENT_ID: KnockKind.MQTT_CLIENT,
    Code.NOT_NOW: KnockKind.TOO_OFTEN,
    Code.TOO_MUCH: KnockKind.TOO_MANY,
}
"""Refused logins as attempts that a person who sets a device up has to see; all others are no MQTT."""


class MqttDoor:
    """Admits connections and checks keys. It knows all connections, by source."""

    def __init__(
        self,
        clock: Clock,
        counts: MqttCounts,
        access: Access | None,
        limits: MqttLimits,
        *,
        require_key: bool,
        knocks: Knocks | None = None,
    ) -> None:
        self._knocks = knocks
        self._clock = clock
        self._now = clock.monotonic
        self._counts = counts
        self._access = access
        self._limits = limits
        self._require_key = require_key
        self._connections: dict[str, dict[MqttConnection, None]] = {}
        self._lines = RareLines(clock.monotonic, MINUTE_S)

    def all(self) -> list["MqttConnection"]:
        """Return all connections."""
        return [connection for same in self._connections.values() for connection in same]

    def admit(self, connection: "MqttConnection") -> bool:
        """Count a new connection, and return whether it may stay."""
        peer, limits = connection.peer, self._limits
        if connection.tls is None and not peer.is_neighbour:
            self._note_knock(KnockKind.STRANGER, peer)
            self._refuse("address", "%s is refused: not an address of the local network", peer.address)
            return False
        same = self._connections.setdefault(peer.source, {})
        secure = [each for each in same if each.tls is not None] if connection.tls is not None else []
        bounded = not peer.is_loopback
        if connection.tls is not None and (
            (bounded and len(secure) >= limits.tls_per_source)
            or sum(each.tls is not None for each in self.all()) >= limits.tls_connections
        ):
            crowd = secure
        elif (bounded and len(same) >= limits.per_source) or self._counts.connections >= limits.connections:
            crowd = list(same)
        else:
            crowd = None
        if crowd is not None and not self._make_room(crowd):
            if not same:
                del self._connections[peer.source]
            self._note_knock(KnockKind.TOO_MANY, peer)
            self._refuse("crowd", "connections of %s are refused: too many are open", peer.source)
            return False
        self._connections.setdefault(peer.source, {})[connection] = None
        self._counts.connections += 1
        return True

    def forget(self, connection: "MqttConnection") -> None:
        """Forget a connection that is over."""
        same = self._connections.get(connection.peer.source, {})
        if connection in same:
            del same[connection]
            self._counts.connections -= 1
            if not same:
                del self._connections[connection.peer.source]

    def judge(self, connection: "MqttConnection", packet: Connect) -> tuple[int, ApiKey | None]:
        """Return a code to refuse with, else 0 and the key that the client has, if any."""
        text = (packet.password or b"").decode("ascii", "replace")
        needs_key = self._require_key or not connection.peer.is_neighbour
        if not needs_key and not text.startswith(KEY_PREFIX):
            return 0, None
        if self._access is not None:
            try:
                return 0, self._access.admit(text, "ingest", connection.peer)
            except RateLimited:
                return Code.NOT_NOW, None
            except Unauthorized:
                pass
        return Code.BAD_CREDENTIALS, None

    def note_refused(self, peer: Peer, code: int, first_byte: int | None) -> None:
        """Note a client that was refused before it was connected: it leaves nothing else behind."""
        if first_byte is None:
            self._note_knock(KNOCK_OF.get(Code(code), KnockKind.NO_MQTT), peer)
        else:
            tls = first_byte == TLS_RECORD
            self._note_knock(KnockKind.MQTT_TLS if tls else KnockKind.NO_MQTT, peer)

    def _note_knock(self, kind: KnockKind, peer: Peer) -> None:
        if self._knocks is not None:
            self._knocks.add(kind, peer.address)

    def valid_keys(self) -> set[bytes]:
        """Return the digests of all keys that are neither revoked nor have ended."""
        keys, date = self._access.all() if self._access is not None else [], int(self._clock.now())
        return {key.sha256 for key in keys if not key.has_ended(date)}

    def _make_room(self, crowd: list["MqttConnection"]) -> bool:
        """End the connection that was silent longest, and has nothing under way."""
        quiet = [each for each in crowd if each.is_idle and self._now() - each.heard > self._limits.silent_s]
        if not quiet:
            return False
        oldest = min(quiet, key=lambda each: each.heard)
        oldest.refuse(Code.TOO_MUCH, "it makes room for another connection of its source")
        self.forget(oldest)  # now, because its socket may close later
        return True

    def _refuse(self, kind: str, words: str, *values: str) -> None:
        """Count a connection that may not stay, and log one of a kind in a minute."""
        self._counts.refused[kind] += 1
        if self._lines.due(kind):
            log.warning(f"mqtt: {words}", *values)  # noqa: G004 (the words are a constant of ours)
