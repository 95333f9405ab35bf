"""M8: hostile neighbours of our listener, all at once. M9: mutated packets."""

import asyncio
import itertools
import random
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from gateway.transports.mqtt_limits import MqttLimits
from tests.faults.drain import until
from tests.faults.endurance import cgroup, has_cgroup
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import prepare, running
from tests.faults.mqtt_brokers import MqttGateway, publish_all
from tests.faults.mqtt_crowd import CROWD, KEEPERS, SILENT, Crowd
from tests.faults.mqtt_floods import WARM, small_reading, stored_marks
from tests.faults.readings import body_of, mark_of
from tests.hostile import mqtt_packets as fuzz
from tests.mqtt_client import opened
from tests.mqtt_wire import LEVELS, connect, publish

MEMORY_KB = 20 * 1024
"""More than before at most."""

LIMIT_BYTES = 160 * 1024 * 1024
"""Memory of the gateway's group of processes, where there are such groups."""

FLOODERS, BY_HTTP, BY_MQTT = ("127.0.0.15", "127.0.0.16"), "127.0.0.21", "127.0.0.22"
"""Addresses: two neighbours that flood, and two honest devices."""

FLOOD_CONNECTIONS = 8
"""Of each of the two, at full size; else a quarter, because what is held is read on for a minute."""

UNHELD = (SILENT, KEEPERS, BY_HTTP, BY_MQTT)
"""Addresses of those that are never held for their rate for long."""

PADDING = 59_000
"""Characters that make a reading of 60 kB."""

PAUSE_S = 0.6
"""Between two readings of an honest device: below the rate of a source."""

P99_S = 0.3
"""An honest device's wait, at full size."""

FULL_S = 60
CROWDED = 520
"""Silent connections, more than there may be of all sources."""

OF_ONE_SOURCE = 2 * MqttLimits().per_source
"""Connections of a source at most, with those that are being refused."""

LINES_A_MINUTE = 100
PATIENCE_S = 180.0

CONNACK = b"\x20\x02\x00\x00"

AT_ONCE = 8
"""M9: connections with mutants."""


@dataclass
class Honest:
    """Marks that were acknowledged, and how long each took."""

    acknowledged: set[str] = field(default_factory=set)
    waits_s: list[float] = field(default_factory=list)
    refused: int = 0

    def take(self, mark: str, waited_s: float, *, yes: bool) -> None:
        """Note an answer."""
        if yes:
            self.acknowledged.add(mark)
            self.waits_s.append(waited_s)
        else:
            self.refused += 1

    @property
    def p99_s(self) -> float:
        """The wait that one in a hundred exceeds."""
        waits_s = sorted(self.waits_s) or [0.0]
        return waits_s[len(waits_s) * 99 // 100]


async def play_m8(run: Run) -> None:
    """For `n` seconds, under a limit of memory if this machine has one; then kill -9."""
    async with AsyncExitStack() as stack:
        prefix: Sequence[str] = ()
        if has_cgroup() is None:
            group = stack.enter_context(cgroup(LIMIT_BYTES))
            prefix = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
        data = run.sub("data")
        await prepare(data)
        gateway = MqttGateway(data, prefix=prefix, weak="crowded" if run.mutated else "")
        await stack.enter_async_context(running(gateway))
        honest, flooded = Honest(), Honest()
        await publish_all(gateway.mqtt_port, [small_reading("warm", number) for number in range(WARM)])
        await _honest(gateway, honest, 1)
        before, descriptors, lines = gateway.memory_kb(), gateway.descriptors(), len(gateway.lines)
        size = CROWD if run.n < FULL_S and not run.mutated else CROWDED
        each = FLOOD_CONNECTIONS if run.n >= FULL_S else FLOOD_CONNECTIONS // 4
        port = gateway.mqtt_port
        phases = (
            ("crowd", Crowd(port, silent=size), False, 10),
            ("flood", Crowd(port, silent=0, filterers=0, keepers=0), True, 20),
            ("all", Crowd(port, silent=size), True, 30),
        )
        for name, crowd, floods, most_mb in phases:
            async with crowd, _flooding(port, flooded, each) if floods else nullcontext():
                if run.mutated:
                    await until(lambda: _open_of((SILENT,), port) >= CROWDED - 30, PATIENCE_S)
                open_ = _open_of((SILENT,), port)
                run.expect(open_ <= OF_ONE_SOURCE, f"{name}: {open_} connections of one source")
                await _honest(gateway, honest, max(2, round(run.n / len(phases) / PAUSE_S)))
            grown_mb = (gateway.memory_kb("VmHWM") - before) / 1024
            run.figure(f"{name}_mb", round(grown_mb, 1))
            run.expect(grown_mb <= most_mb, f"{name}: {grown_mb:.1f} MB more memory")
            run.count("filters", crowd.filters)
            run.count("sessions", crowd.sessions)
            run.count("cut", crowd.ended)
            if run.mutated:
                break
        run.step(run.n)
        run.expect(not honest.refused, f"an honest device was refused {honest.refused} times")
        run.figure("honest_p99_s", round(honest.p99_s, 3))
        run.expect(run.n < FULL_S or honest.p99_s <= P99_S, f"an honest device waits {honest.p99_s:.2f} s")
        ended = await until(lambda: not _open_of(UNHELD, port), PATIENCE_S)
        run.expect(ended is not None, f"{_open_of(UNHELD, port)} connections are left behind")
        if run.n >= FULL_S:  # alone: what is held of those that flood is read on for minutes
            gone = await until(lambda: gateway.descriptors() <= descriptors, 2 * PATIENCE_S)
            run.expect(gone is not None, f"{gateway.descriptors() - descriptors} descriptors are left behind")
        new = gateway.lines[lines:]
        run.expect(len(new) <= LINES_A_MINUTE * max(1, run.n // 60), f"{len(new)} log lines: {new[-3:]}")
        run.expect(not any("Traceback" in line for line in gateway.lines), "a traceback in the log")
        await gateway.kill()
        acknowledged = honest.acknowledged | flooded.acknowledged
        lost = acknowledged - stored_marks(data)
        run.figure("acknowledged", len(acknowledged))
        run.figure("lost", len(lost))
        run.expect(not lost, f"{len(lost)} lost: {sorted(lost)[:3]}")


async def _honest(gateway: MqttGateway, honest: Honest, count: int) -> None:
    """Readings of one device by HTTP and of one by MQTT, each on a connection of its own."""
    first = len(honest.acknowledged) + honest.refused + 1
    connector = aiohttp.TCPConnector(local_addr=(BY_HTTP, 0), force_close=True)
    async with aiohttp.ClientSession(connector=connector) as http:
        for number in range(first, first + count):
            pause = asyncio.create_task(asyncio.sleep(PAUSE_S))
            mark, began = mark_of("h0", number), time.monotonic()
            yes = False
            with suppress(aiohttp.ClientError, TimeoutError):
                async with http.post(f"{gateway.url}/ingest", data=body_of(mark, "h0")) as answer:
                    yes = answer.status == 200
            honest.take(mark, time.monotonic() - began, yes=yes)
            mark, began = mark_of("m0", number), time.monotonic()
            yes = await _published(gateway.mqtt_port, mark)
            honest.take(mark, time.monotonic() - began, yes=yes)
            await pause


async def _published(port: int, mark: str) -> bool:
    """Connect, publish at QoS 1 and leave, as a device that sleeps; whether there was a PUBACK."""
    packet = publish("hydrometer/m0", body_of(mark, "m0"), 1, 1)
    with suppress(OSError):
        async with opened(port, connect(client_id="m0"), packet, source=BY_MQTT) as client:
            return await client.packet() == CONNACK and await client.packet() == b"\x40\x02\x00\x01"
    return False


@asynccontextmanager
async def _flooding(port: int, flooded: Honest, each: int) -> AsyncIterator[None]:
    """Two neighbours that publish 60 kB each time, and do not wait before they publish again."""
    numbers = itertools.count(1)

    async def flood(source: str, place: int) -> None:
        async with opened(port, connect(client_id=f"flood{place}"), source=source) as client:
            await client.packet()
            sent: list[str] = []

            async def listen() -> None:
                for place in itertools.count():
                    if (await client.packet())[:1] != b"\x40":
                        return
                    flooded.take(sent[place], 0.0, yes=True)

            listening = asyncio.create_task(listen())
            try:
                while True:
                    sent.append(mark_of("flood", next(numbers)))
                    body = body_of(sent[-1], "flood", PADDING)
                    await client.send(publish("hydrometer/flood", body, 1, len(sent)))
            finally:
                listening.cancel()

    async def again_and_again(source: str, place: int) -> None:
        while True:
            with suppress(OSError, EOFError, TimeoutError):
                await flood(source, place)
            await asyncio.sleep(PAUSE_S)

    tasks = [
        asyncio.create_task(again_and_again(source, place)) for source in FLOODERS for place in range(each)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _open_of(sources: Sequence[str], port: int) -> int:
    """Connections of these addresses that the listener has not closed."""
    peers = {socket.inet_aton(source)[::-1].hex().upper() for source in sources}
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(
        row[1].endswith(f":{port:04X}") and row[2].partition(":")[0] in peers and row[9] != "0"
        for row in rows
    )


async def play_m9(run: Run) -> None:
    """Streams of packets with changes, each on a connection; then a good reading has to pass."""
    data = run.sub("data")
    await prepare(data)
    gateway = MqttGateway(data, weak="fragile" if run.mutated else "")
    good = [
        (stream, fuzz.packets_of(stream)) for level in LEVELS for stream in fuzz.streams(level, "nobody/m9")
    ]
    chance, left = random.Random(run.seed), run.n  # noqa: S311 - no secrets
    async with running(gateway), opened(gateway.mqtt_port, connect(client_id="m0", keep_alive=0)) as well:
        await well.packet()
        before, descriptors, lines = gateway.memory_kb(), gateway.descriptors(), len(gateway.lines)

        async def attack() -> None:
            nonlocal left
            while left > 0:
                stream, packets = chance.choice(good)
                left -= packets
                with suppress(OSError):
                    async with opened(gateway.mqtt_port, fuzz.mutant(stream, chance)) as client:
                        client.writer.write_eof()
                        await client.rest()
                run.count("connections")
                run.step(packets)

        await asyncio.gather(*(attack() for _ in range(AT_ONCE)))
        await well.send(publish("hydrometer/m0", body_of(mark_of("m0", 1), "m0"), 1, 1))
        await well.hears(b"\x40\x02\x00\x01")
        gone = await until(lambda: gateway.descriptors() <= descriptors, PATIENCE_S)
        run.expect(gone is not None, f"{gateway.descriptors() - descriptors} descriptors are left behind")
        run.figure("grown_mb", round((gateway.memory_kb("VmHWM") - before) / 1024, 1))
        run.expect(gateway.memory_kb("VmHWM") - before <= MEMORY_KB, "too much memory")
        run.expect(len(gateway.lines) == lines, f"log lines: {gateway.lines[lines:][:3]}")


SCENARIOS = (
    Scenario(
        "M8",
        "neighbours that flood, read nothing, leave filters and sessions, and are silent, all at once",
        unit="seconds",
        full=FULL_S,
        small=3,
        play=play_m8,
        mutation="all connections for one source",
        mutation_n=1,
    ),
    Scenario(
        "M9",
        "mutated packets",
        unit="packets",
        full=1_000_000,
        small=5_000,
        play=play_m9,
        mutation="a parser that raises what nobody expects",
        mutation_n=1_000,
    ),
)
