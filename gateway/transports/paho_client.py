"""paho's client, reading until the socket is empty and surviving malformed and overlong packets."""

from collections.abc import Callable

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from gateway.transports.mqtt_link import PACKET_BYTES

READS_PER_SELECT = 64
"""Packets that are read at once before acknowledgements are sent."""


class Client(paho.Client):
    """An MQTT 3.1.1 client with a lasting session, acknowledged by hand; `on_broken` gets bad packets."""

    def __init__(self, client_id: str, on_broken: Callable[[str], None]) -> None:
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=False,
            protocol=paho.MQTTv311,
            manual_ack=True,
        )
        self._on_broken = on_broken
        self._packets = 0

    @property
    def is_too_long(self) -> bool:
        """Return whether the current packet is too long, so that only its beginning is kept."""
        return self._in_packet["remaining_length"] > PACKET_BYTES

    def loop_read(self, max_packets: int = 1) -> MQTTErrorCode:
        """Read several packets for one select: with paho's one packet a flood costs a third more."""
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
            self._on_broken(repr(error))
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        if code == MQTTErrorCode.MQTT_ERR_PROTOCOL:
            self._on_broken("malformed")
        self._packets += code == MQTTErrorCode.MQTT_ERR_SUCCESS
        return code

    def _sock_recv(self, bufsize: int) -> bytes:
        # Of a packet that is too long (up to 256 MB) only the beginning, with topic and packet id, is kept.
        # The connection is not ended, because the broker would send the packet again, for ever.
        if self.is_too_long:
            del self._in_packet["packet"][PACKET_BYTES:]
            bufsize = min(bufsize, PACKET_BYTES)
        return super()._sock_recv(bufsize)
