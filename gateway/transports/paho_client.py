"""paho's client, reading and acknowledging burst by burst, and surviving malformed and overlong packets.

paho has no public way to do that. So this module, and no other, uses private names of paho. Any release may
change them: `pyproject.toml` admits only releases in which they are as below; tests with mosquitto show it.

- `_sock_recv(count)` gives bytes of the connection to `_packet_read`, or raises `BlockingIOError`. paho calls
  it four times for a message; here the connection is read once for a burst.
- `_packet_read()` reads and handles a packet. An error would end paho's thread, and all of MQTT with it.
- `_in_packet` is the packet that is being read: its `remaining_length` and, as a bytearray, its `packet`.
- `_packet_queue(command, packet, mid, qos)` adds bytes to what is to be sent, and wakes paho's thread through
  a socket. `ack` does so for every message; here all PUBACKs of a burst are one entry. Several packets may be
  one entry, because paho looks at its command only for a PUBLISH of QoS 0 and for DISCONNECT.
- `_ping_t` is the time of a PINGREQ without an answer, else 0.
"""

import ssl
import time
from collections.abc import Callable, Iterable

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from gateway.transports.mqtt_link import PACKET_BYTES, MqttUrl

READ_BYTES = 64 * 1024
"""Bytes that are read at once at most."""

BURST_S = 0.002
"""Seconds that the first message of a burst waits for others: a wake-up for each costs most."""

PUBACK = b"\x40\2%c%c"
"""An acknowledgement at QoS 1, as a format of the two bytes of the packet id."""


def log_in(client: paho.Client, url: MqttUrl) -> None:
    """Give a client the user and the password of a broker, and TLS if its address asks for it."""
    if url.user is not None:
        client.username_pw_set(url.user, url.password)
    if url.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.load_default_certs()
        client.tls_set_context(tls)


class Client(paho.Client):
    """An MQTT 3.1.1 client, acknowledged by hand; with a lasting session unless `clean_session`.

    `on_broken` gets bad packets, and `on_burst` is called after the messages of a burst. `has_room` is asked
    before each packet of an accepted connection; it may wait a little. While it says no, paho's thread only
    writes what is to be sent, pings included.
    """

    def __init__(
        self,
        client_id: str,
        on_broken: Callable[[str], None],
        on_burst: Callable[[], None],
        has_room: Callable[[], bool],
        *,
        clean_session: bool = False,
    ) -> None:
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=clean_session,
            protocol=paho.MQTTv311,
            manual_ack=True,
        )
        self._on_broken = on_broken
        self._on_burst = on_burst
        self._has_room = has_room
        self._may_receive = False
        self._data = b""
        self._at = 0

    @property
    def is_too_long(self) -> bool:
        """Return whether the current packet is too long, so that only its beginning is kept."""
        return self._in_packet["remaining_length"] > PACKET_BYTES

    def acknowledge(self, mids: Iterable[int]) -> None:
        """Acknowledge messages of QoS 1, in this order and in one write."""
        packets = b"".join([PUBACK % (mid >> 8, mid & 0xFF) for mid in mids])
        if packets:
            self._packet_queue(paho.PUBACK, packets, 0, 1)

    def loop_read(self, max_packets: int = 1) -> MQTTErrorCode:
        """Read from the connection once, and handle all packets; the rest of the last one comes later."""
        time.sleep(BURST_S)
        self._data, self._at, self._may_receive = b"", 0, True
        code = MQTTErrorCode.MQTT_ERR_SUCCESS
        while not code and (self._may_receive or self._at < len(self._data)):
            if not self.is_connected() or self._has_room():
                code = super().loop_read(max_packets)
            else:
                self._ping_t = 0.0  # its answer waits behind the messages that have no room
                code = self.loop_write() or self.loop_misc()
        self._on_burst()
        return code

    def _packet_read(self) -> MQTTErrorCode:
        try:
            code = super()._packet_read()
        except Exception as error:
            self._on_broken(repr(error))
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        if code == MQTTErrorCode.MQTT_ERR_PROTOCOL:
            self._on_broken("malformed")
        return code

    def _sock_recv(self, bufsize: int) -> bytes:
        # Of a packet that is too long (up to 256 MB) only the beginning, with topic and packet id, is kept.
        # The connection is not ended, because the broker would send the packet again, for ever.
        if self.is_too_long:
            del self._in_packet["packet"][PACKET_BYTES:]
        at = self._at
        if at == len(self._data):
            if not self._may_receive:
                raise BlockingIOError
            self._may_receive = False
            self._data, at = super()._sock_recv(READ_BYTES), 0
        self._at = min(at + bufsize, len(self._data))
        return self._data[at : self._at]
