"""M3 and M4: somebody takes our client id; messages that come again, at once and a day later."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

from gateway.app import client_id
from gateway.clock import SystemClock
from gateway.services.build import Services, build_services
from gateway.store.sqlite.readings import SqliteReadings
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.mqtt import MqttIngest
from gateway.transports.mqtt_link import TAKEOVER_CAP_S, MqttUrl
from gateway.transports.paho_bridge import Bridge
from gateway.transports.topics import TopicMap
from sample_devices.transports.mqtt import connect_packet, publish_packet
from sample_devices.wire.report import Login, Message
from tests.faults.devices import DUP, Fleet
from tests.faults.drain import drained, until
from tests.faults.frame import Run, Scenario, program
from tests.faults.mqtt_brokers import Mosquitto, bench, connected_within
from tests.faults.mqtt_hostile import Hostile
from tests.faults.readings import body_of, mark_of

RECONNECT_S = 30.0
"""For a connection to come back, where nobody hinders it."""

DAY_S = 86_400.0

OURS = "as hydrometer-gateway-"
"""In Mosquitto's log, of every connection of ours; of the thief's too."""


async def play_m3(run: Run) -> None:
    """Somebody connects with our id, again and again, for `n` seconds, and acknowledges nothing."""
    async with AsyncExitStack() as stack:
        mosquitto = Mosquitto(run.sub("mosquitto"))
        await mosquitto.start()
        stack.push_async_callback(mosquitto.kill)
        gateway, upstream, ledger = await bench(run, stack, "data", mosquitto)
        run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}")
        run.expect(await connected_within(gateway, RECONNECT_S) is not None, "never connected")
        before = mosquitto.log.count(OURS)
        thief = asyncio.create_task(
            _steal(mosquitto.port, "other" if run.mutated else client_id(gateway.data))
        )
        async with Fleet(ledger, gateway.http_port, mosquitto.port, http_devices=0, pause_s=0.2):
            for _ in range(run.n):
                await asyncio.sleep(1.0)
                run.step()
        thief.cancel()
        await asyncio.gather(thief, return_exceptions=True)
        connects = mosquitto.log.count(OURS) - before
        told = [line for line in gateway.lines if "another client" in line]
        run.figure("connects", connects)
        run.expect(len(told) == 1, f"a takeover is told {len(told)} times")
        run.expect(connects <= run.n, f"{connects} connections in {run.n} s")
        # Each theft doubles the wait for the next attempt, up to this.
        back = await connected_within(gateway, TAKEOVER_CAP_S + RECONNECT_S)
        run.expect(back is not None, "never came back")
        await drained(run, gateway, upstream, ledger)


async def _steal(port: int, name: str) -> None:
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        connect = bytearray(connect_packet(Login(client_id=name, keep_alive_s=60)))
        connect[9] &= ~0x02 & 0xFF  # not a clean session, else ours were lost with it
        try:
            writer.write(bytes(connect))
            while await reader.read(65_536):
                pass
        except OSError:
            pass
        finally:
            writer.close()
        await asyncio.sleep(0.1)


class Days(SystemClock):
    """The machine's, but for whole days that pass when they are told to."""

    days = 0

    def now(self) -> float:
        return super().now() + self.days * DAY_S

    def monotonic(self) -> float:
        return super().monotonic() + self.days * DAY_S

    def since_boot(self) -> float:
        return super().since_boot() + self.days * DAY_S


async def play_m4(run: Run) -> None:
    """Three messages, `n` copies each, with DUP and without, in any order; all of them again a day later."""
    clock, broker = Days(), Hostile()
    await broker.start()
    async with _in_process(run.sub("data"), broker.port, clock) as services:
        await until(lambda: broker.subscriptions == 1, RECONNECT_S)
        copies = [(number, dup) for number in (1, 2, 3) for dup in (False, True) * (run.n // 2)]
        run.random.shuffle(copies)
        await _copies(broker, copies)
        run.expect(services.stats.stored == 3, f"{services.stats.stored} rows of 3 messages")
        await broker.drop()
        clock.days += 1
        with patch.object(SqliteReadings, "holds_delivery", _forgetful) if run.mutated else nullcontext():
            await _copies(broker, [(number, True) for number, _ in copies])
        run.expect(services.stats.stored == 3, f"{services.stats.stored} rows of 3 messages after a day")
        clock.days += 1
        await _copies(broker, [(1, False)])
        run.expect(services.stats.stored == 4, "what is sent anew a day later is no copy")
        run.figure("copies", services.stats.duplicates)
    await broker.stop()
    run.step(run.n)


async def _forgetful(*_: object) -> bool:
    return False


async def _copies(broker: Hostile, copies: list[tuple[int, bool]]) -> None:
    before = len(broker.acknowledged)
    for number, dup in copies:
        body = body_of(mark_of("m0", number), "m0")
        packet = publish_packet(Message("hydrometer/m0", body, qos=1), number)
        await broker.send(bytes([packet[0] | (DUP if dup else 0)]) + packet[1:])
    assert await until(lambda: len(broker.acknowledged) - before == len(copies), 60.0) is not None


@asynccontextmanager
async def _in_process(data: Path, port: int, clock: Days) -> AsyncIterator[Services]:
    """The gateway's MQTT side on a store, in this process, whose clock can be set."""
    store, topics = SqliteStore(data), TopicMap()
    services = build_services(store, data, clock)
    await store.open()
    await services.access.start()
    await services.intake.start()
    bridge = Bridge(MqttUrl("127.0.0.1", port), "faults-m4", topics.filters, clock)
    listener = MqttIngest(bridge, topics, services.intake, store, services.stats, clock)
    bridge.start()
    task = asyncio.create_task(listener.run())
    try:
        yield services
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await bridge.stop()
        await store.close()


SCENARIOS = (
    Scenario(
        "M3",
        "somebody else connects with our client id, again and again",
        unit="seconds",
        full=300,
        small=8,
        play=play_m3,
        mutation="a thief with another id",
        mutation_n=3,
        mutation_small=False,
        needs=(program("mosquitto"),),
    ),
    Scenario(
        "M4",
        "three messages, each so often: DUP on and off, out of order, and a day later",
        unit="copies",
        full=1000,
        small=200,
        play=play_m4,
        mutation="no memory of packet ids",
        mutation_n=20,
    ),
)
