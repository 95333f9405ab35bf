"""Handle the packets of an MQTT client: answer each, or say how long it has to wait.

PUBACK and PUBREC have their place in the client's line, so that they leave in the order of the messages.
"""

from typing import TYPE_CHECKING

from gateway.transports.mqtt_answers import connack, pingresp, puback, pubcomp, pubrec, suback, unsuback
from gateway.transports.mqtt_fields import MQTT_5, Code, Malformed
from gateway.transports.mqtt_limits import (
    FILTER_COST,
    FREE,
    KEEP_ALIVE_S,
    LINE_FULL,
    OPEN_IDS,
    READING_BYTES,
    READING_COST,
    SMALL_COST,
    VALUE_COST,
    State,
)
from gateway.transports.mqtt_memory import KEEP_S, MqttSession, Turn
from gateway.transports.mqtt_packets import (
    Connect,
    Filters,
    Goodbye,
    Packet,
    Ping,
    Publish,
    Release,
)

if TYPE_CHECKING:
    from gateway.transports.mqtt_connection import MqttConnection


def handle(client: "MqttConnection", packet: Packet) -> float:
    """Handle a packet; return `FREE`, or why and for how long it has to wait."""
    match packet:
        case Publish():
            return _publish(client, packet)
        case Ping():
            if wait := client.listener.admission.take(client.peer, SMALL_COST):
                return wait
            client.out.append(pingresp())
        case Release(mid):
            if wait := client.listener.admission.take(client.peer, SMALL_COST):
                return wait
            known = client.session.open.pop(mid, None) is not None
            client.out.append(pubcomp(client.packets.level, mid, 0 if known else Code.UNKNOWN_ID))
        case Filters(mid, filters, subscribe):
            return _answer_filters(client, mid, filters, subscribe=subscribe)
        case Connect():
            return client.listener.connect(client, packet)
        case Goodbye(_, expiry):
            if expiry is not None:
                client.session.keep_s = min(expiry, KEEP_S)
            client.state = State.LEAVING
            client.deadline = client.listener.now() + client.limits.leave_s
    return FREE


def _publish(client: "MqttConnection", packet: Publish) -> float:
    """Hand over a message, and give its acknowledgement a place in the line."""
    listener, level = client.listener, client.packets.level
    qos, mid, opened = packet.qos, packet.mid, client.session.open
    if client.held is None:
        client.place = listener.topics.place_of(packet.topic)
    place = client.place
    if qos and len(client.line) >= client.limits.line:
        return LINE_FULL
    earlier = opened.get(mid) if qos == 2 else None
    if earlier is not None and earlier.refused:
        earlier = None
    if earlier is None and place is not None:
        if wait := listener.wait_for_room(client):
            return wait
        cost = READING_COST if place.key is None else VALUE_COST
        # By size as well, because the largest messages take the memory of fifteen usual ones.
        cost = max(cost, len(packet.payload) / READING_BYTES)
    else:
        cost = SMALL_COST
    # Of all clients, and not so many of each: after a reconnect paho sends all that it has at once, and would
    # come again with the same for ever.
    is_many = qos == 2 and earlier is None and len(opened) % OPEN_IDS == OPEN_IDS - 1
    if is_many and listener.open_ids >= client.limits.open_ids:
        raise Malformed(Code.TOO_MANY_IDS, "too many ids of QoS 2 without PUBREL")
    if wait := listener.admission.take(client.peer, cost):
        return wait
    listener.counts.messages[qos] += 1
    if not qos:
        if place is not None:
            listener.receive(client, packet, None)
        return FREE
    code = Code.NOBODY_LISTENS if place is None and earlier is None else 0
    turn = Turn(client, (puback if qos == 1 else pubrec)(level, mid, code))
    if earlier is not None:
        turn.settled = earlier.settled
        if not turn.settled:
            earlier.followers = [*(earlier.followers or ()), turn]
    else:
        if qos == 2:
            opened[mid] = turn
        # A single value is acknowledged at once: a device that waits for each never sends the second.
        turn.settled = place is None or place.key is not None
        if place is not None:
            listener.receive(client, packet, None if turn.settled else turn)
    if turn.settled and not client.line:
        client.out.append(turn.packet)
    elif not client.is_mute:
        client.line.append(turn)
    return FREE


def _answer_filters(
    client: "MqttConnection", mid: int, filters: tuple[str, ...], *, subscribe: bool
) -> float:
    """Refuse filters that want to read. Accept plain command topics of devices: nothing comes on them."""
    if wait := client.listener.admission.take(client.peer, FILTER_COST * len(filters)):
        return wait
    level = client.packets.level
    if subscribe:
        wanted = client.listener.topics.is_heard
        codes = [
            Code.NOT_AUTHORISED
            if {"+", "#"} & set(name.split("/")) or name.startswith("$share/") or wanted(name)
            else 0
            for name in filters
        ]
        client.out.append(suback(level, mid, codes))
    else:
        client.out.append(unsuback(level, mid, len(filters)))
    return FREE


def accept(
    client: "MqttConnection", packet: Connect, session: MqttSession, *, is_present: bool, given: str
) -> None:
    """Answer a CONNECT that is accepted; `given` is the client id of a client that has none."""
    client.is_connected, client.session, client.client_id = True, session, packet.client_id or given
    if client.state is State.NEW:  # not of a client that has left already, unheard so far
        client.state = State.SERVING
    capped = session.keep_s if session.keep_s != packet.session_expiry else None
    keep_alive, told = packet.keep_alive, None
    if packet.level == MQTT_5 and not 0 < keep_alive <= KEEP_ALIVE_S:
        told = keep_alive = KEEP_ALIVE_S
    client.keep_alive_s = keep_alive
    client.out.append(
        connack(
            packet.level,
            0,
            is_present,
            keep_alive=told,
            session_expiry=None if capped is None else int(capped),
            client_id=given,
        )
    )
