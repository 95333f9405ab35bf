"""The MQTT publisher: a raw socket, packets that were encoded before, QoS 1, a window of unacknowledged ones.

`python -m tests.benchmarks.mqtt_load --port PORT ...` prints the monotonic time of its first message.
"""

import argparse
import socket
import time

from tests.benchmarks import payloads

HOST = "127.0.0.1"

WINDOW = 500
"""Messages that the broker has not acknowledged yet."""

PACKET_IDS = 65_535
"""They start again at 1 after this one."""

ANSWER_S = 60.0
"""How long the broker may be silent."""

CONNECT = b"\x10\x11\x00\x04MQTT\x04\x02\x00\x3c\x00\x05bench"
"""MQTT 3.1.1, a clean session, keep-alive 60 s, the client id `bench`."""

CONNACK = b"\x20\x02\x00\x00"
PUBACK_BYTES = 4
READ_BYTES = 65_536


def packet(topic: bytes, packet_id: int, body: bytes) -> bytes:
    """A QoS 1 PUBLISH."""
    rest = len(topic).to_bytes(2, "big") + topic + packet_id.to_bytes(2, "big") + body
    length, digits = len(rest), b""
    while length > 0x7F:
        digits += bytes([length & 0x7F | 0x80])
        length >>= 7
    return b"\x32" + digits + bytes([length]) + rest


def packets(root: str, first: int, count: int, devices: int) -> list[bytes]:
    """Readings `first` to `first + count`, each on the topic of its device."""
    return [
        packet(
            f"{root}/{payloads.device_name(number % devices)}".encode(),
            (number - first) % PACKET_IDS + 1,
            payloads.body(number, devices),
        )
        for number in range(first, first + count)
    ]


def publish(port: int, messages: list[bytes], window: int) -> None:
    """Publish all of them; prints when the first one goes."""
    with socket.create_connection((HOST, port), timeout=ANSWER_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(CONNECT)
        if (answer := connection.recv(len(CONNACK))) != CONNACK:
            raise SystemExit(f"mqtt_load: the broker answered {answer!r}")
        print(time.monotonic(), flush=True)
        sent = acknowledged_bytes = 0
        while acknowledged_bytes < len(messages) * PUBACK_BYTES:
            room = acknowledged_bytes // PUBACK_BYTES + window
            if sent < min(room, len(messages)):
                connection.sendall(b"".join(messages[sent:room]))
                sent = min(room, len(messages))
            data = connection.recv(READ_BYTES)
            if not data:
                raise SystemExit("mqtt_load: the broker closed the connection")
            acknowledged_bytes += len(data)
        connection.sendall(b"\xe0\x00")


def main() -> None:
    """Read the options and publish."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--root", default="hydrometer")
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--devices", type=int, default=payloads.DEVICES)
    parser.add_argument("--window", type=int, default=WINDOW)
    options = parser.parse_args()
    messages = packets(options.root, options.first, options.count, options.devices)
    publish(options.port, messages, options.window)


if __name__ == "__main__":
    main()
