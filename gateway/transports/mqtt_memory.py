"""Remember MQTT clients that come back: that there is a session, and its open packet ids of QoS 2.

A client that only publishes leaves nothing else behind: no filters, no messages, no will. That there is a
session matters by itself, because a strict client drops its unacknowledged messages when it hears of none.
All is in memory: after a restart there is no session, and a message that comes twice is known by its bytes.

A session belongs to a client id and a source, so that a stranger can neither end nor push out another's.
"""

from array import array
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.transports.mqtt_connection import MqttConnection

KEPT, KEPT_OF_SOURCE = 256, 32
"""Sessions of absent clients: in all, and of one source. Beyond it the oldest is forgotten."""

IDS_KEPT = 10_000
"""Open ids of an absent client that need no turn, at most; the newest."""

KEEP_S = 7 * 86_400
"""Seconds that a session of an absent client is kept at most."""

SessionId = tuple[str, str]
"""Identifies a session: client id and source."""


@dataclass(slots=True, eq=False)
class Turn:
    """An acknowledgement in the line of its connection. It is sent once it, and all before it, are settled.

    `connection` is None once the client is gone. `refused`: the store has no room for the message, so its id
    is free again. `followers` are acknowledgements of the same message, which
    the client has sent again before the commit.
    """

    connection: "MqttConnection | None"
    packet: bytes
    settled: bool = False
    refused: bool = False
    followers: "list[Turn] | None" = None

    def settle(self) -> None:
        """Note that the message is dealt with."""
        self.settled = True
        for follower in self.followers or ():
            follower.settled = True


SETTLED = Turn(None, b"", settled=True)
"""The turn of every message whose acknowledgement was due before its client left."""


@dataclass(slots=True, eq=False)
class MqttSession:
    """A client's session: its open ids, from PUBLISH to PUBREL, each with the turn of its message.

    `keep_s` is how long the session outlives its connection, in seconds. While the client is absent
    `settled_ids` holds the ids that need no turn, in two bytes each.
    """

    name: SessionId
    keep_s: float = 0.0
    open: dict[int, Turn] = field(default_factory=dict)
    settled_ids: "array[int]" = field(default_factory=lambda: array("H"))
    ends_at: float = 0.0


class MqttMemory:
    """The sessions of absent clients. Every `now` is monotonic seconds."""

    def __init__(self) -> None:
        self._absent: OrderedDict[SessionId, MqttSession] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._absent)

    def keep(self, session: MqttSession, now: float) -> None:
        """Keep the session of a client that has left."""
        session.ends_at = now + session.keep_s
        settled = [mid for mid, turn in session.open.items() if turn.settled]
        session.settled_ids = array("H", settled[-IDS_KEPT:])
        session.open = {mid: turn for mid, turn in session.open.items() if not (turn.settled or turn.refused)}
        self._absent.pop(session.name, None)
        self._absent[session.name] = session
        same = [name for name in self._absent if name[1] == session.name[1]]
        if len(same) > KEPT_OF_SOURCE:
            del self._absent[same[0]]
        elif len(self._absent) > KEPT:
            self._absent.popitem(last=False)

    def resume(self, name: SessionId, now: float) -> MqttSession | None:
        """Hand out the session of a client that comes back; None without one."""
        session = self._absent.pop(name, None)
        if session is None or session.ends_at <= now:
            return None
        session.open.update(dict.fromkeys(session.settled_ids, SETTLED))
        session.settled_ids = array("H")
        return session

    def forget_ended(self, now: float) -> None:
        """Forget the sessions whose time is over."""
        for name in [name for name, session in self._absent.items() if session.ends_at <= now]:
            del self._absent[name]
