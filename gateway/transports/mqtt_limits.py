"""Limits of the MQTT listener: each bound with its unit. Beyond a bound nothing is read, or a client ends."""

from dataclasses import dataclass
from enum import Enum, auto

PACKETS_AT_ONCE = 512
"""Packets of a client that are handled before other clients have their turn."""

UNREAD_BYTES = 16 * 1024
"""Bytes of answers that may wait for a client; beyond it the client is not read from."""

PACKET_BYTES_A_SECOND = 16 * 1024
"""Bytes of a packet for which its deadline is a second later."""

HELD_AGAIN_S = 0.05
"""Seconds at least until a client that is held for its rate is tried again."""

SMALL_BYTES = 4 * 1024
"""Bytes of an unfinished packet that any client may have, whatever all others have."""

OPEN_IDS = 100
"""Ids of QoS 2 without PUBREL that any client may have, whatever all others have."""

KEEP_ALIVE_S = 3_600
"""The longest keep-alive of a client of MQTT 5, in seconds; the others are not told of any."""

READING_BYTES = 4 * 1024
"""Bytes of a message that cost as much as a reading."""

READING_COST, VALUE_COST, CONNECT_COST, FILTER_COST, SMALL_COST = 1.0, 0.1, 0.1, 0.1, 0.02
"""Shares of a source's rate: a whole reading, a single value, a connection, a filter; and PINGREQ, PUBREL, a
message that comes again, or one on a topic that nobody listens to."""

SHARE = 4
"""A source may have one part in so many of all messages in flight, so that it leaves room for others."""

SHARE_AGAIN_S = 0.1
"""Seconds until a source that has its share in flight is tried again."""

FREE, NO_ROOM, LINE_FULL = 0.0, -1.0, -2.0
"""Results for a packet: handled, or held until there is room, or until acknowledgements have left. A positive
number holds the packet for so many seconds."""


@dataclass(frozen=True, slots=True)
class MqttLimits:
    """Limits of the listener. Times are in seconds.

    `connections` in all and of one source, those with TLS apart; a source on this machine has only the
    first. `connect_s` from the connection to CONNECT, TLS included; `packet_s` within a packet; `unread_s`
    with answers that the client does not read; `leave_s` for the commits of a client that leaves, and
    `leave_held_s` while it is held; `stop_s` for those of all clients at the end. A connection that was
    silent for `silent_s` makes room for another of its source. After the store has refused for `refusing_s`
    clients are told. `line` bounds a client's outstanding acknowledgements, and `open_ids` the ids of QoS 2
    without PUBREL, of all clients together.
    """

    connections: int = 500
    per_source: int = 16
    tls_connections: int = 64
    tls_per_source: int = 8
    connect_s: float = 10.0
    packet_s: float = 10.0
    unread_s: float = 30.0
    leave_s: float = 2.0
    leave_held_s: float = 60.0
    stop_s: float = 1.5
    silent_s: float = 5.0
    refusing_s: float = 30.0
    look_s: float = 1.0
    line: int = 1_000
    open_ids: int = 30_000
    unfinished_bytes: int = 8 * 1024 * 1024


class State(Enum):
    """The states of a connection, in their order."""

    HANDSHAKE = auto()
    NEW = auto()
    SERVING = auto()
    LEAVING = auto()
    OVER = auto()
