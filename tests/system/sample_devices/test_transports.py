"""The HTTP, MQTT and TCP transports against raw servers: exact packets, and every way to fail."""

import asyncio
import socket
import struct

import pytest

from sample_devices.devices import Targets, simulate
from sample_devices.transports import http, mqtt, tcp
from sample_devices.transports.errors import NotAnswered
from sample_devices.wire import answers
from sample_devices.wire.report import Address, Login, Message, Place

from .servers import Heard, http_talk, mqtt_talk, serving, tcp_talk

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
    with pytest.raises(NotAnswered, match=f"^127.0.0.1:{port}: connection refused$"):
        await tcp.send("127.0.0.1", port, b"{}")


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


async def test_mqtt_packets_at_the_message_s_own_qos_and_retained() -> None:
    messages = (Message("a", b"1", 1, True), Message("b", b"2", 2, True), Message("c", b"3"))
    async with serving(mqtt_talk()) as heard:
        await mqtt.deliver("127.0.0.1", heard.port, LOGIN, messages)
        await heard.connection_ended()
    assert heard.items[1:] == [
        b"\x33\x06\x00\x01a\x00\x011",
        b"\x35\x06\x00\x01b\x00\x022",
        b"\x62\x02\x00\x02",
        b"\x30\x04\x00\x01c3",
        b"\xe0\x00",
    ]
    assert mqtt.packets(LOGIN, messages) == heard.items


async def test_pubrec_of_another_message_is_no_answer() -> None:
    async with serving(mqtt_talk(puback_shift=1)) as heard:
        with pytest.raises(NotAnswered, match="PUBREC"):
            await mqtt.deliver("127.0.0.1", heard.port, LOGIN, [Message("b", b"2", 2)])


@pytest.mark.parametrize("reply", [b"\x06", b'{"interval":1800}'])
async def test_tcp_sends_the_bytes_and_gives_the_reply(reply: bytes) -> None:
    async with serving(tcp_talk(reply)) as heard:
        assert await tcp.send("127.0.0.1", heard.port, b"{}\r\n") == reply
    assert heard.items == [b"{}\r\n"]


async def test_tcp_without_a_reply_is_no_failure() -> None:
    async with serving(tcp_talk()) as heard:
        assert await tcp.send("127.0.0.1", heard.port, b"{}", deadline_s=0.05) == b""
        assert heard.items == [b"{}"]


async def test_tcp_closed_without_a_reply_is_no_failure() -> None:
    async def take(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)

    async with serving(take) as heard:
        assert await tcp.send("127.0.0.1", heard.port, b"{}") == b""


async def test_tcp_that_is_reset_is_not_answered() -> None:
    async def reset(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        end = writer.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with serving(reset) as heard:
        with pytest.raises(NotAnswered, match="connection reset"):
            await tcp.send("127.0.0.1", heard.port, b"{}")


@pytest.mark.parametrize(
    ("rule", "taken", "refused"),
    [
        (answers.exactly_200, (200, "", b""), (204, "No Content", b"")),
        (answers.no_content, (204, "No Content", b""), (200, "OK", b"")),
        (answers.accepted, (202, "Accepted", b""), (200, "OK", b"")),
        (answers.any_2xx, (204, "No Content", b""), (302, "Found", b"")),
        (answers.text_200_ok, (200, "OK", b""), (200, "", b"")),
        (answers.result_or_beername, (200, "OK", b'{"result":"x"}'), (200, "OK", b'["result"]')),
        (answers.result_or_beername, (200, "OK", b'{"beername":""}'), (200, "OK", b"ok")),
        (answers.result_success, (200, "OK", b'{"result":"success"}'), (200, "OK", b'{"result":"no"}')),
        (answers.result_success, (200, "OK", b'{"result":"ok"}'), (201, "Created", b'{"result":"ok"}')),
    ],
)
def test_each_firmware_takes_its_own_answers(
    rule: answers.Rule, taken: tuple[int, str, bytes], refused: tuple[int, str, bytes]
) -> None:
    assert rule(*taken)
    assert not rule(*refused)


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("gravitymon-influx", b"HTTP/1.1 204 No Content\r\n\r\n", "204 No Content"),
        ("ispindel-prometheus", b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "202 Accepted"),
    ],
)
async def test_a_report_is_answered_by_its_own_rule(kind: str, answer: bytes, said: str) -> None:
    async with serving(http_talk(answer)) as heard:
        device = simulate(kind, Place(1), Targets(Address("127.0.0.1", heard.port)))
        assert await device.send(device.report(0)) == said
    async with serving(http_talk()) as heard:
        device = simulate(kind, Place(1), Targets(Address("127.0.0.1", heard.port)))
        with pytest.raises(NotAnswered, match="answered 200 OK"):
            await device.send(device.report(0))
