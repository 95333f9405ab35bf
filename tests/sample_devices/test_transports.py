"""The HTTP and MQTT transports against raw servers: exact packets, and every way to fail."""

import asyncio
import socket

import pytest

from sample_devices.transports import http, mqtt
from sample_devices.transports.errors import NotAnswered
from sample_devices.wire.report import Login, Message

from .servers import Heard, http_talk, mqtt_talk, serving

REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
LOGIN = Login("dev", 15)
MESSAGES = (Message("a/b", b"1"), Message("a/c", "°".encode()))


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_http_sends_the_bytes_and_reads_the_answer() -> None:
    async with serving(http_talk()) as heard:
        answer = await http.send("127.0.0.1", heard.port, REQUEST)
    assert heard.items == [REQUEST]
    assert answer == http.Answer(200, "OK", b'{"result":"success"}')
    assert answer.ok


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", http.Answer(204, "No Content", b"")),
        (b"HTTP/1.0 200\r\n\r\n", http.Answer(200, "", b"")),
        (b"HTTP/1.1 503 Not Now\r\nCONTENT-LENGTH:2\r\n\r\nno", http.Answer(503, "Not Now", b"no")),
    ],
)
async def test_http_answers_are_read(raw: bytes, answer: http.Answer) -> None:
    async with serving(http_talk(raw)) as heard:
        assert await http.send("127.0.0.1", heard.port, REQUEST) == answer


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "connection closed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "connection closed"),
        (b"SSH-2.0-x\r\n\r\n", "not understood"),
        (b"HTTP/1.1 fine\r\n\r\n", "not understood"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not understood"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "not understood"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "not understood"),
    ],
)
async def test_http_answers_that_are_none(raw: bytes, why: str) -> None:
    async with serving(http_talk(raw)) as heard:
        with pytest.raises(NotAnswered, match=why) as caught:
            await http.send("127.0.0.1", heard.port, REQUEST)
    assert "\n" not in str(caught.value)


async def test_http_gives_up_after_the_deadline() -> None:
    hold = asyncio.Event()
    async with serving(http_talk(hold=hold)) as heard:
        with pytest.raises(NotAnswered, match=r"no answer within 0\.05 s"):
            await http.send("127.0.0.1", heard.port, REQUEST, deadline_s=0.05)
        hold.set()


async def test_refused_connections_are_named() -> None:
    port = unused_port()
    with pytest.raises(NotAnswered, match=f"^127.0.0.1:{port}: connection refused$"):
        await http.send("127.0.0.1", port, REQUEST)
    with pytest.raises(NotAnswered, match=f"^127.0.0.1:{port}: connection refused$"):
        await mqtt.deliver("127.0.0.1", port, LOGIN, MESSAGES)


@pytest.mark.parametrize(
    ("login", "packet"),
    [
        (LOGIN, b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x0f\x00\x03dev"),
        (Login("dev", 10, "u"), b"\x10\x12\x00\x04MQTT\x04\x82\x00\x0a\x00\x03dev\x00\x01u"),
        (Login("dev", 10, "u", "pw"), b"\x10\x16\x00\x04MQTT\x04\xc2\x00\x0a\x00\x03dev\x00\x01u\x00\x02pw"),
        (Login("dev", 15, "", ""), b"\x10\x13\x00\x04MQTT\x04\xc2\x00\x0f\x00\x03dev\x00\x00\x00\x00"),
        (Login("dev", 15, None, "pw"), b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x0f\x00\x03dev"),
    ],
)
def test_connect_packets(login: Login, packet: bytes) -> None:
    assert mqtt.connect_packet(login) == packet


@pytest.mark.parametrize(
    ("payload_bytes", "length"),
    [(0, b"\x03"), (124, b"\x7f"), (125, b"\x80\x01"), (16380, b"\xff\x7f"), (16381, b"\x80\x80\x01")],
)
def test_remaining_length_has_seven_bits_a_byte(payload_bytes: int, length: bytes) -> None:
    payload = b"x" * payload_bytes
    assert mqtt.publish_packet(Message("t", payload)) == b"\x30" + length + b"\x00\x01t" + payload


async def test_mqtt_packets_at_qos_0() -> None:
    async with serving(mqtt_talk()) as heard:
        await mqtt.deliver("127.0.0.1", heard.port, LOGIN, MESSAGES)
        await heard.connection_ended()
    assert heard.items == [
        b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x0f\x00\x03dev",
        b"\x30\x06\x00\x03a/b1",
        b"\x30\x07\x00\x03a/c\xc2\xb0",
        b"\xe0\x00",
    ]


async def test_mqtt_packets_at_qos_1_wait_for_each_puback() -> None:
    async with serving(mqtt_talk()) as heard:
        await mqtt.deliver("127.0.0.1", heard.port, LOGIN, MESSAGES, qos=1)
        await heard.connection_ended()
    assert heard.items[1:] == [
        b"\x32\x08\x00\x03a/b\x00\x011",
        b"\x32\x09\x00\x03a/c\x00\x02\xc2\xb0",
        b"\xe0\x00",
    ]


@pytest.mark.parametrize(
    ("connack", "why"),
    [
        (b"\x20\x02\x00\x05", "refused: not authorised"),
        (b"\x20\x02\x00\x09", "refused: 9"),
        (b"\x30\x02\x00\x00", "not understood"),
        (b"HTTP", "not understood"),
    ],
)
async def test_mqtt_without_a_good_connack_publishes_nothing(connack: bytes, why: str) -> None:
    async with serving(mqtt_talk(connack)) as heard:
        with pytest.raises(NotAnswered, match=why):
            await mqtt.deliver("127.0.0.1", heard.port, LOGIN, MESSAGES)
        await heard.connection_ended()
    assert len(heard.items) == 1


async def test_puback_of_another_message_is_no_answer() -> None:
    async with serving(mqtt_talk(puback_shift=1)) as heard:
        with pytest.raises(NotAnswered, match="PUBACK"):
            await mqtt.deliver("127.0.0.1", heard.port, LOGIN, MESSAGES, qos=1)


async def test_broker_that_hangs_up_before_connack() -> None:
    async def hang_up(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)

    async with serving(hang_up) as heard:
        with pytest.raises(NotAnswered, match="connection"):
            await mqtt.deliver("127.0.0.1", heard.port, LOGIN, MESSAGES)


async def test_silent_broker_costs_the_deadline() -> None:
    async with serving(mqtt_talk(connack=b"")) as heard:
        with pytest.raises(NotAnswered, match="no answer within"):
            await mqtt.deliver("127.0.0.1", heard.port, LOGIN, MESSAGES, deadline_s=0.05)
