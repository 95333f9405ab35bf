"""M5 and M6: ten thousand retained topics, and a flood on a slow disk."""

import asyncio
import json
import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path

from gateway.store.sqlite.engine.database import DATABASE_NAME
from sample_devices.transports.mqtt import publish_packet
from sample_devices.wire.report import Message
from tests.faults.devices import connected
from tests.faults.drain import until
from tests.faults.frame import Run, Scenario, program
from tests.faults.gateways import Gateway, prepare, running
from tests.faults.mqtt_brokers import AT_EACH_CHANGE, Mosquitto, MqttGateway, connected_within, publish_all
from tests.faults.mqtt_crowd import Crowd
from tests.faults.readings import body_of, mark_of

MEMORY_KB = 20 * 1024
"""More than before, at most."""

PATIENCE_S = 60.0

FLOOD_CLIENTS = 20
PER_SECOND = 5_000
IN_FLIGHT = 250
"""Of a client that floods, unacknowledged; together five times what the gateway takes."""

WARM = 500
"""Messages before memory is measured: what every gateway has grown by after its first ones."""

SLOW_US = 50_000
SLOW_DISK = (
    *("strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"),
    *("-e", f"inject=fdatasync:delay_enter={SLOW_US}"),
)


async def play_m5(run: Run) -> None:
    """`n` topics with a reading each, retained; the gateway is started after them, twice."""
    async with AsyncExitStack() as stack:
        mosquitto = Mosquitto(run.sub("mosquitto"), AT_EACH_CHANGE)
        await mosquitto.start()
        stack.push_async_callback(mosquitto.kill)
        data = run.sub("data")
        await prepare(data)
        marks = [mark_of(f"r{number}", 1) for number in range(run.n)]
        retained = [
            Message(f"hydrometer/{mark}", body_of(mark, mark), qos=1, retain=not run.mutated)
            for mark in marks
        ]
        if not run.mutated:
            await publish_all(mosquitto.port, retained)
        gateway = Gateway(data, options=("--mqtt-url", mosquitto.url))
        for _ in range(2):
            async with running(gateway):
                before = gateway.memory_kb()
                began = asyncio.get_running_loop().time()
                run.expect(await connected_within(gateway, PATIENCE_S) is not None, "never connected")
                if run.mutated:
                    await publish_all(mosquitto.port, retained)
                await _all_seen(run, gateway, run.n)
                run.highest("seconds", round(asyncio.get_running_loop().time() - began, 1))
                grown = gateway.memory_kb("VmHWM") - before
                run.highest("grown_mb", round(grown / 1024, 1))
                run.expect(grown <= MEMORY_KB, f"{grown} kB more memory")
        run.step(run.n)


async def _all_seen(run: Run, gateway: Gateway, wanted: int) -> None:
    """Retained readings count as duplicates; a fresh one passes behind them."""
    page: dict[str, int] = {}
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while (
        page.get("duplicates", 0) + page.get("stored", 0) < wanted
        and asyncio.get_running_loop().time() < deadline
    ):
        _, page = await gateway.get("/healthz")
        await asyncio.sleep(0.05)
    # More, where the broker sends again what was under way when the gateway was killed.
    run.expect(page["duplicates"] >= wanted, f"{page['duplicates']} of {wanted} known as old")
    run.expect(page["stored"] == 0, f"{page['stored']} retained messages became readings")


async def play_m6(run: Run) -> None:
    """For `n` seconds more than the disk takes, from clients that do not wait, in a crowd; then kill -9."""
    async with AsyncExitStack() as stack:
        data = run.sub("data")
        await prepare(data)
        gateway = MqttGateway(data, prefix=SLOW_DISK, weak="impatient" if run.mutated else "")
        await stack.enter_async_context(running(gateway))
        await publish_all(gateway.mqtt_port, [small_reading("warm", number) for number in range(WARM)])
        before, acknowledged = gateway.memory_kb(), set[str]()
        crowd = await stack.enter_async_context(Crowd(gateway.mqtt_port))
        each = run.n * PER_SECOND // FLOOD_CLIENTS
        floods = [
            asyncio.create_task(_flood(gateway, name, each, acknowledged)) for name in range(FLOOD_CLIENTS)
        ]
        if run.mutated:
            await until(lambda: len(acknowledged) > each, PATIENCE_S)
            await gateway.kill()
        results = await asyncio.gather(*floods, return_exceptions=True)
        failed = [result for result in results if isinstance(result, BaseException)]
        if not run.mutated:
            run.expect(not failed, f"{len(failed)} clients failed: {failed[:1]!r}")
            grown = gateway.memory_kb("VmHWM") - before
            run.figure("grown_mb", round(grown / 1024, 1))
            run.figure("filters", crowd.filters)
            run.figure("sessions", crowd.sessions)
            run.expect(grown <= MEMORY_KB, f"{grown} kB more memory")
            await gateway.kill()
        stored = stored_marks(data)
        lost = acknowledged - stored
        run.figure("acknowledged", len(acknowledged))
        run.figure("lost", len(lost))
        run.expect(not lost, f"{len(lost)} lost: {sorted(lost)[:3]}")
        run.step(run.n)


async def _flood(gateway: Gateway, name: int, count: int, acknowledged: set[str]) -> None:
    """As many as may be in flight, and one more for each PUBACK."""
    device = f"f{name}"
    async with connected(gateway.mqtt_port, device) as line:
        marks = [mark_of(device, number) for number in range(1, count + 1)]
        room = asyncio.Semaphore(IN_FLIGHT)

        async def listen() -> None:
            for mark in marks:
                await line.reader.readexactly(4)
                acknowledged.add(mark)
                room.release()

        listening = asyncio.create_task(listen())
        try:
            for mid in range(1, count + 1):
                await room.acquire()
                line.writer.write(publish_packet(small_reading(device, mid), mid))
                await line.writer.drain()
            await listening
        finally:
            listening.cancel()


def small_reading(device: str, number: int) -> Message:
    mark = mark_of(device, number)
    return Message(f"hydrometer/{device}", body_of(mark, device), qos=1)


def stored_marks(data: Path) -> set[str]:
    """The marks of all rows, as a reader of its own sees them after the kill."""
    with sqlite3.connect(data / DATABASE_NAME) as database:
        rows = database.execute("SELECT raw FROM readings WHERE raw IS NOT NULL").fetchall()
    database.close()
    return {str(json.loads(raw).get("comment")) for (raw,) in rows}


SCENARIOS = (
    Scenario(
        "M5",
        "retained topics when we subscribe",
        unit="topics",
        full=10_000,
        small=500,
        play=play_m5,
        mutation="messages that are not retained",
        mutation_n=20,
        needs=(program("mosquitto"),),
    ),
    Scenario(
        "M6",
        "5,000 messages a second on a slow disk, by our listener, in a crowd of hostile neighbours",
        unit="seconds",
        full=60,
        small=1,
        play=play_m6,
        mutation="PUBACK before the commit",
        mutation_n=1,
        needs=(program("strace"),),
    ),
)
