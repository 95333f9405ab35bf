"""paho's client, reading until the socket is dry and surviving what it cannot parse or hold."""

from collections.abc import Callable

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from gateway.transports.mqtt_link import PACKET_BYTES

READS_PER_SELECT = 64
"""Packets read in one go before acknowledgements get their turn."""


class Client(paho.Client):
    """A session that the broker keeps, MQTT 3.1.1, acknowledged by hand; `broken` is told of a bad packet."""

    def __init__(self, client_id: str, broken: Callable[[str], None]) -> None:
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=False,
            protocol=paho.MQTTv311,
            manual_ack=True,
        )
        self._broken = broken
        self._packets = 0

    @property
    def is_too_long(self) -> bool:
        """Whether the packet at hand is, so that nobody has all of it."""
        return self._in_packet["remaining_length"] > PACKET_BYTES

    def loop_read(self, max_packets: int = 1) -> MQTTErrorCode:
        """Not one packet per select, as paho does it: in a flood that is a third of the cost."""
        for _ in range(READS_PER_SELECT):
            before = self._packets
            code = super().loop_read(max_packets)
            if code or self._packets == before:
                break
        return code

    def _packet_read(self) -> MQTTErrorCode:
        try:
            code = super()._packet_read()
        except Exception as error:  # a malformed packet would end paho's thread, and with it all of MQTT
            self._broken(repr(error))
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        if code == MQTTErrorCode.MQTT_ERR_PROTOCOL:
            self._broken("malformed")
        self._packets += code == MQTTErrorCode.MQTT_ERR_SUCCESS
        return code

    def _sock_recv(self, bufsize: int) -> bytes:
        # Of a packet that is too long (up to 256 MB) only the beginning, with topic and packet id, is kept: a
        # connection that ended of it would get it again, for ever.
        if self.is_too_long:
            del self._in_packet["packet"][PACKET_BYTES:]
            bufsize = min(bufsize, PACKET_BYTES)
        return super()._sock_recv(bufsize)
