"""The MQTT listener with the clients that there are: paho and mosquitto's."""

import asyncio
import json
import os
import shutil
import socket
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.cli.client import ask_running
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.tls.self_signed import CERTIFICATE_NAME, KEY_NAME, make
from tests.cases import each
from tests.faults.readings import body_of, mark_of
from tests.mqtt_client import HOST, Client
from tests.mqtt_wire import LEVELS, MQTT_3_1, MQTT_3_1_1, MQTT_5
from tests.patience import PATIENCE_S
from tests.program.program import FREE_PORTS, LOCAL, Server, serving, until

MQTTS = r"^MQTT.* mqtts://\S+?:(\d+)\b"

MOSQUITTO_VERSIONS = {MQTT_3_1: "mqttv31", MQTT_3_1_1: "mqttv311", MQTT_5: "mqttv5"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path / "data", *FREE_PORTS) as server:
        yield server


def stored(data: Path) -> Counter[str]:
    """How often each mark is in the store."""
    with sqlite3.connect(data / DATABASE_NAME) as database:
        rows = database.execute("SELECT raw FROM readings").fetchall()
    database.close()
    return Counter(str(json.loads(raw).get("comment")) for (raw,) in rows)


def rows(data: Path) -> int:
    with sqlite3.connect(data / DATABASE_NAME) as database:
        count: int = database.execute("SELECT count(*) FROM readings").fetchone()[0]
    database.close()
    return count


async def all_stored_once(server: Server, marks: Sequence[str]) -> None:
    """Wait for these marks; each must be there once."""
    wanted = set(marks)
    # Their number first: to read thousands of rows at each look would take the time that the gateway needs.
    with suppress(AssertionError):
        await until(
            lambda: rows(server.data) >= len(wanted) and wanted <= stored(server.data).keys(), 2 * PATIENCE_S
        )
    missing = sorted(wanted - stored(server.data).keys())
    assert not missing, (len(missing), missing[:3], await ask_running(server.data, "/healthz"))
    twice = {mark: number for mark, number in stored(server.data).items() if number > 1}
    assert not twice


def readings(device: str, count: int) -> list[tuple[str, bytes]]:
    """Marks and bodies."""
    marks = [mark_of(device, number) for number in range(1, count + 1)]
    return [(mark, body_of(mark, device)) for mark in marks]


def paho_client(level: int, name: str = "", *, keeps: bool = False) -> paho.Client:
    version = MQTTProtocolVersion(level)
    clean = None if level == MQTT_5 else not keeps
    return paho.Client(CallbackAPIVersion.VERSION2, name, clean, protocol=version)


def paho_connect(client: paho.Client, port: int, level: int, *, keeps: bool = False) -> None:
    properties = None
    if level == MQTT_5 and keeps:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = 600
    client.connect(HOST, port, properties=properties)
    client.loop_start()


def publish_by_paho(port: int, level: int, qos: int, topic: str, bodies: Sequence[bytes]) -> None:
    """Half of them retained; with 1,000 in flight, whatever the server asks for."""
    client = paho_client(level, f"paho-{level}-{qos}")
    client.max_inflight_messages_set(1000)
    paho_connect(client, port, level)
    infos = [client.publish(topic, body, qos, number % 2 == 0) for number, body in enumerate(bodies)]
    for info in infos:
        info.wait_for_publish(PATIENCE_S)
        assert info.is_published()
    client.disconnect()
    client.loop_stop()


async def test_paho_in_all_versions_and_qualities(server: Server) -> None:
    marks = []
    for level in LEVELS:
        for qos in (0, 1, 2):
            device = f"p{level}{qos}"
            those = readings(device, 2_000)
            marks += [mark for mark, _ in those]
            bodies = [body for _, body in those]
            topic = f"hydrometer/{device}"
            await asyncio.to_thread(publish_by_paho, server.mqtt_port, level, qos, topic, bodies)
    await all_stored_once(server, marks)


@pytest.mark.broker
@pytest.mark.parametrize("by_tls", [False, True])
async def test_mosquitto_pub_in_all_versions_and_qualities(tmp_path: Path, by_tls: bool) -> None:
    options: tuple[str, ...] = ()
    if by_tls:
        make(tmp_path, [HOST], days=2)
        certificate, key = str(tmp_path / CERTIFICATE_NAME), str(tmp_path / KEY_NAME)
        options = ("--tls-cert", certificate, "--tls-key", key, "--tls-port", "0", "--mqtt-tls-port", "0")
    marks = []
    async with serving(tmp_path / "data", *FREE_PORTS, *options) as server:
        where = ["-p", str(server.mqtt_port)]
        if by_tls:
            where = ["-p", str(server.found(MQTTS)), "--cafile", certificate]
        for level, version in MOSQUITTO_VERSIONS.items():
            for qos in (0, 1, 2):
                device = f"m{level}{qos}"
                those = readings(device, 300)
                marks += [mark for mark, _ in those]
                words = ("-V", version, "-q", str(qos), "-t", f"hydrometer/{device}", "-l")
                await mosquitto_pub([*where, *words], [body for _, body in those])
        await all_stored_once(server, marks)


async def mosquitto_pub(words: Sequence[str], bodies: Sequence[bytes]) -> None:
    """Publish a line each; it must end well."""
    program = shutil.which("mosquitto_pub")
    if program is None:
        pytest.skip("mosquitto_pub is not installed: apt-get install mosquitto-clients")
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(program, "-h", HOST, *words, stdin=pipe, stderr=pipe)
    async with asyncio.timeout(PATIENCE_S):
        _, errors = await child.communicate(b"".join(body + b"\n" for body in bodies))
    assert (child.returncode, errors) == (0, b"")


class Cutter:
    """A way to the server that is cut each time so many bytes went through it."""

    def __init__(self, port: int, every: int, cuts: int) -> None:
        self._to, self._every, self._left = port, every, cuts
        self._bytes = 0
        self.cuts = 0
        self.port = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Cutter"]:
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(HOST, self._to)
        near, far = Client(reader, writer), Client(far_reader, far_writer)

        async def back() -> None:
            while data := await far_reader.read(65_536):
                writer.write(data)

        task = asyncio.create_task(back())
        try:
            while data := await reader.read(4_096):
                far_writer.write(data)
                self._bytes += len(data)
                if self._bytes > self._every and self.cuts < self._left:
                    self._bytes, self.cuts = 0, self.cuts + 1
                    break
        except OSError:
            pass
        finally:
            task.cancel()
            # One side is told at once, the other by the end of its stream: as a router that is switched off.
            for end in (near, far) if self.cuts % 2 else (far, near):
                end.reset()


@each("level, qos", [(level, qos) for level in (MQTT_3_1_1, MQTT_5) for qos in (1, 2)])
async def test_a_connection_that_is_cut_twenty_times(server: Server, level: int, qos: int) -> None:
    device = f"c{level}{qos}"
    those = readings(device, 3_000)
    before = await counted(server, "duplicates")
    size = sum(len(body) for _, body in those)

    def send(port: int) -> None:
        client = paho_client(level, device, keeps=True)
        client.reconnect_delay_set(0.02, 0.02)  # type: ignore[arg-type] # seconds need not be whole
        paho_connect(client, port, level, keeps=True)
        infos = [client.publish(f"hydrometer/{device}", body, qos) for _, body in those]
        for info in infos:
            info.wait_for_publish(2 * PATIENCE_S)
            assert info.is_published()
        client.disconnect()
        client.loop_stop()

    async with Cutter(server.mqtt_port, size // 25, 20).open() as cutter:
        await asyncio.to_thread(send, cutter.port)
    assert cutter.cuts == 20
    await all_stored_once(server, [mark for mark, _ in those])
    if qos == 2:
        assert await counted(server, "duplicates") == before, "the listener handed a message on twice"


async def counted(server: Server, name: str) -> int:
    """A counter of the running program."""
    value: int = (await ask_running(server.data, "/healthz"))[name]
    return value


BRIDGE_CONF = """\
listener {listener} 127.0.0.1
allow_anonymous true
max_queued_messages 0
max_inflight_messages 100
connection gateway
address 127.0.0.1:{gateway}
topic hydrometer/# out 1
cleansession false
restart_timeout 1
{user}
"""


@asynccontextmanager
async def mosquitto_bridge(folder: Path, gateway_port: int) -> AsyncIterator[int]:
    """A mosquitto that hands on to the gateway what it takes; its port."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed: apt-get install mosquitto")
    with socket.create_server((HOST, 0)) as probe:
        port = probe.getsockname()[1]
    conf = folder / "mosquitto.conf"
    user = "user root" if os.geteuid() == 0 else ""
    conf.write_text(BRIDGE_CONF.format(listener=port, gateway=gateway_port, user=user))
    with (folder / "mosquitto.log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(program, "-c", str(conf), stderr=log)
    try:
        yield int(port)
    finally:
        child.terminate()
        await child.wait()


@pytest.mark.broker
async def test_mosquitto_as_a_bridge_and_the_gateway_killed(tmp_path: Path) -> None:
    those = readings("b1", 3_000)
    data = tmp_path / "data"
    async with serving(data, *FREE_PORTS) as server:
        port = server.mqtt_port
        async with mosquitto_bridge(tmp_path, port) as bridge:
            await until(lambda: listens(bridge))
            bodies = [body for _, body in those]
            sending = asyncio.create_task(
                asyncio.to_thread(publish_by_paho, bridge, MQTT_3_1_1, 1, "hydrometer/b1", bodies)
            )
            await until(lambda: rows(data) > 300)
            await server.kill()
            assert 300 < rows(data) < 3_000
            async with serving(data, *LOCAL, "--mqtt-port", str(port)) as again:
                await sending
                await all_stored_once(again, [mark for mark, _ in those])


def listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 1).close()
    except OSError:
        return False
    return True
