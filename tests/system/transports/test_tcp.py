"""The iSpindel's TCP service over real sockets: what is an object, what is answered, and the bounds."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway import network
from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.errors import QuotaFull, ShareUsedUp, StoreUnavailable
from gateway.intake.intake import Intake
from gateway.intake.ordinary import Taken
from gateway.network import Admission
from gateway.services.build import build_services
from gateway.store.sqlite.store import SqliteStore
from gateway.transports import tcp
from gateway.transports.json_stream import JsonSplitter
from gateway.transports.tcp import ACK, NAK, TcpLimits, TcpListener
from tests.cases import examples
from tests.patience import PATIENCE_S

from .conftest import RESETS, wait_for, wait_until

QUIET = TcpLimits(quiet_s=0.05)
NEIGHBOUR = "127.0.0.2"
"""An address of this machine that is limited as others are."""

SPINDLE = (
    b'{"name":"iSpindel042","ID":5312877,"token":"s3cr3t","angle":52.33711,"temperature":19.8125,'
    b'"temp_units":"C","battery":3.961264,"gravity":12.48312,"interval":900,"RSSI":-67}'
)
GRAVITYMON = (
    b'{"name": "g", "ID": "7f3a2c", "token": "", "interval": 900, "temperature": 20.56, "temp_units": "C", '
    b'"gravity": 1.0456, "angle": 45.123, "battery": 3.98, "RSSI": -70, "corr-gravity": 1.0450, '
    b'"gravity-unit": "G", "run-time": 4.21 }'
)


def spindle(number: int) -> bytes:
    return SPINDLE.replace(b"5312877", str(number).encode())


class Bench:
    """The listener on a real socket, with a real store behind it."""

    def __init__(self, store: SqliteStore, folder: Path) -> None:
        self.store = store
        self.intake: Intake = build_services(store, folder, SystemClock()).intake
        self.listeners: list[TcpListener] = []

    async def start(self, bounds: TcpLimits | None = None) -> TcpListener:
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        self.tcp = TcpListener(self.intake, SystemClock(), Admission(SystemClock()), bounds)
        await self.tcp.start(listener)
        self.listeners.append(self.tcp)
        return self.tcp

    async def connect(self, address: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))

    async def ask(self, *segments: bytes, address: str = "127.0.0.1") -> bytes:
        """All answers to these segments, after which the client has nothing more to say."""
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await self.connect(address)
            for segment in segments:
                writer.write(segment)
                await writer.drain()
            writer.write_eof()
            answer = await reader.read()
            writer.close()
            return answer

    async def lines(self) -> list[dict[str, Any]]:
        found = self.store.readings.json_lines(last=1000, device_id=None, session_id=None)
        return [json.loads(line) async for line in found]

    async def counts(self) -> tuple[int, int]:
        """Readings, and payloads in quarantine."""
        return len(await self.lines()), await self.store.quarantine.count()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path)
    await store.open()
    bench = Bench(store, tmp_path)
    await bench.intake.start()
    yield bench
    for listener in bench.listeners:
        await listener.stop()
    await store.close()


ONE_READING = {
    "iSpindel": SPINDLE + b"\r\n",
    "no line end": SPINDLE,
    "line feed": SPINDLE + b"\n",
    "bom": b"\xef\xbb\xbf" + SPINDLE,
    "trailing nul": SPINDLE + b"\0",
    "blank lines around": b"\r\n\r\n" + SPINDLE + b"\r\n\r\n",
    "trailing comma": SPINDLE.replace(b"-67}", b"-67, }"),
    "bare nan": SPINDLE.replace(b"3.961264", b"nan"),
    "indented": json.dumps(json.loads(SPINDLE), indent=4).replace("\n", "\r\n").encode(),
    "brackets in the name": SPINDLE.replace(b"iSpindel042", rb"}{][\"\\"),
}


@pytest.mark.parametrize("sent", ONE_READING.values(), ids=ONE_READING)
async def test_one_object_is_one_reading_and_one_byte(bench: Bench, sent: bytes) -> None:
    await bench.start()
    assert await bench.ask(sent) == ACK
    [line] = await bench.lines()
    assert (line["gravity"], line["temp"], line["rssi"]) == ("12.48312", "19.8125", -67)
    assert await bench.counts() == (1, 0)
    [device] = await bench.store.devices.all()
    assert device.key == "ispindel:5312877"


async def test_the_answer_comes_while_the_device_still_waits(bench: Bench) -> None:
    """GravityMon sends no line end and keeps the connection open."""
    await bench.start()
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await bench.connect()
        writer.write(GRAVITYMON)
        assert await reader.readexactly(1) == ACK
        assert (await bench.lines())[0]["corr_gravity"] == "1.0450"
        writer.write(GRAVITYMON.replace(b"1.0456", b"1.0455"))
        assert await reader.readexactly(1) == ACK
        writer.close()
    assert await bench.counts() == (2, 0)


async def test_every_byte_in_a_segment_of_its_own(bench: Bench) -> None:
    await bench.start()
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await bench.connect()
        for place in range(len(SPINDLE)):
            writer.write(SPINDLE[place : place + 1])
            await asyncio.sleep(0)
        assert await reader.readexactly(1) == ACK
        writer.close()
    assert await bench.counts() == (1, 0)


@pytest.mark.parametrize("between", [b"", b"\n", b"\r\n", b"\r\n\r\n", b" ", b"\0"])
async def test_several_objects_on_one_connection(bench: Bench, between: bytes) -> None:
    await bench.start()
    assert await bench.ask(between.join(spindle(number) for number in range(1, 6))) == ACK * 5
    assert await bench.counts() == (5, 0)


async def test_a_list_is_as_many_readings_and_one_byte(bench: Bench) -> None:
    await bench.start()
    assert await bench.ask(b"[" + spindle(1) + b", " + spindle(2) + b"]\r\n") == ACK
    assert await bench.counts() == (2, 0)


async def test_what_was_sent_before_a_reset_is_taken(bench: Bench) -> None:
    """A device that closes with our answer unread resets the connection."""
    await bench.start()
    for number in range(0, 20, 2):
        with socket.create_connection(("127.0.0.1", bench.port)) as device:
            device.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
            device.sendall(spindle(number) + b"\r\n" + spindle(number + 1))

    async def all_are_there() -> bool:
        return len(await bench.lines()) == 20

    await wait_until(all_are_there)


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"\n\n", b" \r\n\0"])
async def test_an_empty_line_is_nothing(bench: Bench, sent: bytes) -> None:
    await bench.start()
    assert await bench.ask(sent) == b""
    assert await bench.counts() == (0, 0)


@pytest.mark.parametrize(
    ("sent", "answer", "counts"),
    [
        (SPINDLE[:-30], ACK, (0, 1)),
        (SPINDLE[:-30] + b"\n" + SPINDLE + b"\n", ACK * 2, (1, 1)),
        (SPINDLE[:15] + b"\r\n" + SPINDLE, ACK * 2, (1, 1)),
        (b"hello\nworld\n" + SPINDLE, ACK * 2, (1, 1)),
        (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n" + SPINDLE, ACK * 2, (1, 1)),
        (b"}}}" + SPINDLE + b"]", ACK * 3, (1, 2)),
        (b"\xff\xfe\x00binary", ACK, (0, 1)),
    ],
)
async def test_what_is_no_object_is_kept_and_hurts_no_other(
    bench: Bench, sent: bytes, answer: bytes, counts: tuple[int, int]
) -> None:
    await bench.start()
    assert await bench.ask(sent) == answer
    assert await bench.counts() == counts


async def test_half_an_object_and_silence_is_kept(bench: Bench) -> None:
    await bench.start(QUIET)
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await bench.connect()
        writer.write(SPINDLE[:50])
        assert await reader.readexactly(1) == ACK
        writer.write(SPINDLE)
        assert await reader.readexactly(1) == ACK
        writer.close()
    assert await bench.counts() == (1, 1)


async def test_nothing_stored_is_another_byte(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.start()
    for error in (StoreUnavailable, QuotaFull, ShareUsedUp):

        async def refuse(*_: object, error: type[StoreUnavailable] = error) -> None:
            raise error

        monkeypatch.setattr(bench.store, "take", refuse)
        assert await bench.ask(SPINDLE) == NAK, error


@pytest.mark.parametrize(
    ("interval", "answer"),
    [(None, ACK), (10, ACK), (11, b'{"interval":11}'), (86_399, b'{"interval":86399}'), (86_400, ACK)],
)
async def test_the_users_interval_is_told_where_a_device_takes_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, interval: int | None, answer: bytes
) -> None:
    take = bench.intake.take_in_steps

    async def with_interval(payload: Payload) -> Taken:
        return replace(await take(payload), interval_s=interval)

    monkeypatch.setattr(bench.intake, "take_in_steps", with_interval)
    await bench.start()
    assert await bench.ask(SPINDLE) == answer


async def test_an_object_that_is_too_long_is_refused(bench: Bench) -> None:
    await bench.start(TcpLimits(object_bytes=500))
    assert await bench.ask(b'{"name":"' + b"x" * 600 + b'"}') == NAK
    assert await bench.ask(b'{"name":"' + b"x" * 600) == NAK
    assert await bench.counts() == (0, 0)


async def test_connections_are_bounded_for_each_address_and_all(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.start(TcpLimits(connections=4, per_source=2))
    open_ones = [await bench.connect(NEIGHBOUR) for _ in range(2)]
    assert await bench.ask(address=NEIGHBOUR) == b""
    open_ones += [await bench.connect() for _ in range(2)]
    assert await bench.ask(address="127.0.0.3") == b""
    assert len(bench.tcp.connections) == 4
    assert [record.getMessage() for record in caplog.records if record.name == tcp.__name__] == [
        f"tcp: connections of {NEIGHBOUR} are refused: too many are open"
    ]
    for _, writer in open_ones:
        writer.close()
        await writer.wait_closed()
    await wait_for(lambda: not bench.tcp.connections)
    assert await bench.ask(SPINDLE) == ACK


async def test_connections_of_loopback_are_bounded_with_all_others_only(bench: Bench) -> None:
    await bench.start(TcpLimits(per_source=2))
    open_ones = [await bench.connect() for _ in range(5)]
    assert await bench.ask(SPINDLE) == ACK
    for _, writer in open_ones:
        writer.close()
        await writer.wait_closed()


async def test_a_connection_that_says_nothing_is_closed(bench: Bench) -> None:
    await bench.start(TcpLimits(life_s=0.05))
    reader, writer = await bench.connect()
    async with asyncio.timeout(PATIENCE_S):
        assert await reader.read() == b""
    writer.close()


async def test_neighbours_are_limited_and_loopback_is_not(bench: Bench) -> None:
    await bench.start()
    many = b"".join(spindle(number) for number in range(70))
    answer = await bench.ask(many, address=NEIGHBOUR)
    assert (answer[:60], answer[-1:]) == (ACK * 60, NAK)
    assert await bench.ask(many) == ACK * 70


async def test_strangers_are_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.start()
    monkeypatch.setattr(network, "is_local", lambda _: False)
    for _ in range(3):
        reader, writer = await bench.connect()
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()
    assert [record.getMessage() for record in caplog.records] == [
        "tcp: 127.0.0.1 is refused: not an address of the local network"
    ]


async def test_what_is_being_stored_is_answered_when_we_stop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, began, go_on = bench.intake.take_in_steps, asyncio.Event(), asyncio.Event()

    async def slowly(payload: Payload) -> Taken:
        began.set()
        await go_on.wait()
        return await take(payload)

    monkeypatch.setattr(bench.intake, "take_in_steps", slowly)
    await bench.start()
    async with asyncio.timeout(PATIENCE_S):
        busy, writer = await bench.connect()
        idle, other = await bench.connect()
        writer.write(SPINDLE + spindle(2))
        await began.wait()
        stopping = asyncio.create_task(bench.tcp.stop())
        assert await idle.read() == b""
        go_on.set()
        assert await busy.read() == ACK
        await stopping
        writer.close()
        other.close()
    assert await bench.counts() == (1, 0)
    with pytest.raises(OSError, match="onnect"):
        await bench.connect()


async def test_what_a_device_sent_before_a_reset_is_read_even_if_we_had_stopped_reading(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, began, go_on = bench.intake.take_in_steps, asyncio.Event(), asyncio.Event()

    async def slowly(payload: Payload) -> Taken:
        began.set()
        await go_on.wait()
        return await take(payload)

    monkeypatch.setattr(bench.intake, "take_in_steps", slowly)
    monkeypatch.setattr(tcp, "AHEAD_BYTES", 100)
    await bench.start()
    with socket.create_connection(("127.0.0.1", bench.port)) as device:
        device.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
        device.sendall(spindle(0) + spindle(1))
        await began.wait()
        device.sendall(b"".join(spindle(number) for number in range(2, 20)) + SPINDLE[:50])
    go_on.set()

    async def all_are_there() -> bool:
        return await bench.counts() == (20, 1)

    await wait_until(all_are_there)
    await wait_for(lambda: not bench.tcp.connections)


async def test_a_device_that_reads_no_answer_is_ended_after_a_while(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "UNREAD_BYTES", 0)
    monkeypatch.setattr(tcp, "ACK", b"x" * 10_000_000)  # more than the sockets keep
    await bench.start(TcpLimits(quiet_s=0.2))
    with socket.create_connection(("127.0.0.1", bench.port)) as device:
        device.sendall(spindle(1) + spindle(2))
        await wait_for(lambda: bench.tcp.connections)
        await wait_for(lambda: not bench.tcp.connections)
    assert await bench.counts() == (1, 0)


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(0.4))
@given(st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=3), max_size=4), st.data())
def test_objects_come_out_as_they_went_in_however_they_are_cut(
    sent: list[dict[str, Any]], data: st.DataObject
) -> None:
    indent = data.draw(st.sampled_from([None, 1, 4]))
    stream = b"\n".join(json.dumps(one, indent=indent, ensure_ascii=False).encode() for one in sent)
    objects, found = JsonSplitter(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += objects.feed(stream[:size])
        stream = stream[size:]
    assert [json.loads(piece) for piece in found] == sent
    assert objects.flush() == []


@given(
    st.lists(
        st.sampled_from([b"{", b"}", b"[", b"]", b'"', b"\\", b"\n", b":", b",", b"x", b" "]), max_size=30
    )
)
def test_no_byte_is_lost(pieces: list[bytes]) -> None:
    objects = JsonSplitter()
    found = [piece for part in pieces for piece in objects.feed(part)] + objects.flush()
    sent = b"".join(pieces)
    assert b"".join(b"".join(found).split()) == b"".join(sent.split())
