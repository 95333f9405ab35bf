"""Every golden case of MQTT through a real broker into a real store; and what may not come twice."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.clock import SystemClock
from gateway.drivers import DRIVERS
from gateway.events import StoredNotices
from gateway.intake.intake import Intake
from gateway.network import Admission
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.mqtt import MqttIngest
from gateway.transports.mqtt_link import IN_FLIGHT_MESSAGES, MessageSource, MqttUrl
from gateway.transports.mqtt_listener import MqttListener
from gateway.transports.paho_bridge import Bridge
from gateway.transports.topics import TopicMap
from tests.pure.drivers.messages import topic_map
from tests.system.transports.conftest import (
    ScriptedBroker,
    open_port,
    publish_packet,
    wait_for,
    wait_until,
)

Case = dict[str, Any]
Line = dict[str, Any]

CASES = Path(__file__).parents[2] / "pure" / "drivers" / "cases"
SECONDS_PER_DAY = 86_400.0
QUIET_S = 0.3
"""Instead of 3 s: here nothing is slow but the test."""

PATIENCE_S = 3.0
"""For a case, many times what one takes; those that fail are told together at the end."""

NUMBERS = count(1)
"""For client ids: at a broker that is shared, no test has another's session."""

LAST = [{"topic": "hydrometer/last", "payload": '{"angle":45,"temperature":1.5}', "qos": 1, "retain": False}]
AGAIN = (
    ("hydrometer/red", '{"angle":45,"temperature":1.5}'),
    ("brewery/bpl2", '{"beerTemp":18.4}'),
    ("ispindel/blue/gravity", "12.3"),
    ("ispindel/blue/RSSI", "-61"),
    ("brewery/bpl1/gravity", "1.05"),
    ("brewery/bpl1/beerTemp", "18.4"),
)
BREWPILESS = '{"beerTemp":18.4,"gravity":1.0325}'


def cases() -> dict[str, Case]:
    """By family and name."""
    read = {
        f"{p.parent.name}/{p.stem}": json.loads(p.read_text("utf-8")) for p in sorted(CASES.glob("*/*.json"))
    }
    return {name: case for name, case in read.items() if case["transport"] == "mqtt"}


class DayClock(SystemClock):
    """The machine's, but for whole days that a test lets pass."""

    days = 0

    def now(self) -> float:
        return super().now() + self.days * SECONDS_PER_DAY

    def since_boot(self) -> float:
        return super().since_boot() + self.days * SECONDS_PER_DAY


class Bench:
    """An MQTT listener with a real store behind it, while `listening`."""

    def __init__(self, store: SqliteStore, url: MqttUrl, topics: TopicMap) -> None:
        self.store, self.url, self.topics = store, url, topics
        self.clock, self.stats = DayClock(), Stats()
        self.client_id = f"gateway-test-{next(NUMBERS)}"

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        bridge = Bridge(self.url, self.client_id, self.topics.filters, self.clock)
        bridge.start()
        try:
            async with self.taking_from(bridge):
                await wait_for(lambda: bridge.state.startswith("connected"))
                yield
        finally:
            await bridge.stop()

    @asynccontextmanager
    async def taking_from(self, source: MessageSource) -> AsyncIterator[None]:
        intake = Intake(
            self.store,
            StoredNotices(),
            self.stats,
            self.clock,
            names_an_hour=1_000,  # all cases in one go
        )
        await intake.start()
        listener = MqttIngest(source, self.topics, intake, self.store, self.stats, self.clock)
        task = asyncio.create_task(listener.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def lines(self) -> list[Line]:
        """All readings in order of arrival."""
        found = self.store.readings.json_lines(last=1000, device_id=None, session_id=None)
        return [json.loads(line) async for line in found]

    async def has(self, count: int) -> bool:
        """Whether so many readings are stored, soon."""

        async def enough() -> bool:
            return len(await self.lines()) >= count

        try:
            await wait_until(enough, PATIENCE_S)
        except AssertionError:
            return False
        return True

    async def send(self, messages: list[Line]) -> None:
        """As one client, each message in its own quality; returns when the broker has them."""
        await asyncio.to_thread(send, self.url, messages)

    async def send_last(self) -> None:
        """After what was sent before; returns when this, and so everything of whole messages, is stored."""
        self.clock.days += 1
        before = sum(map(is_last, await self.lines()))
        await self.send(LAST)

        async def one_more() -> bool:
            return sum(map(is_last, await self.lines())) > before

        await wait_until(one_more)


def send(url: MqttUrl, messages: list[Line]) -> None:
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
    if url.user is not None:
        client.username_pw_set(url.user, url.password)
    client.connect(url.host, url.port)
    client.loop_start()
    for one in messages:
        client.publish(one["topic"], one["payload"], one["qos"], one["retain"]).wait_for_publish(10)
    client.disconnect()
    client.loop_stop()


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    monkeypatch.setattr("gateway.transports.assembler.QUIET_S", QUIET_S)
    store = SqliteStore(tmp_path / "data")
    await store.open()
    yield store
    await store.close()


def expected_of(case: Case) -> list[Line]:
    """None where the device sends what is no reading, or cannot be understood."""
    expected = case.get("expected") or []
    return expected if isinstance(expected, list) else [expected]


async def run_cases(bench: Bench, wanted: dict[str, Case]) -> list[str]:
    """Send them one after the other, a day apart; what is wrong with which."""
    wrong = []
    for name, case in wanted.items():
        bench.clock.days += 1
        before, expected = len(await bench.lines()), sorted(map(told, expected_of(case)))
        await bench.send(case["messages"])
        if not await bench.has(before + len(expected)):
            wrong.append(f"{name}: not all arrived; {bench.stats.quarantined} in quarantine so far")
        await bench.send_last()
        found = [told(line) for line in (await bench.lines())[before:] if not is_last(line)]
        if sorted(found) != expected:
            wrong.append(f"{name}: {found} instead of {expected}")
    return wrong


def is_last(line: Line) -> bool:
    return bool(line["name"] == "last")


def told(line: Line) -> tuple[str, str]:
    """Gravity and temperature as sent; unit and name may come from what an earlier case has taught."""
    return line.get("gravity") or "", line.get("temp") or ""


def test_every_driver_with_topics_has_a_case() -> None:
    families = {name.partition("/")[0] for name in cases()}
    assert {driver.name for driver in DRIVERS if driver.topics or driver.values} <= families


async def test_every_case_by_the_listener(store: SqliteStore) -> None:
    bridge = MqttListener(topic_map(), SystemClock(), Admission(SystemClock()), Stats())
    port = await open_port(bridge)
    bench = Bench(store, MqttUrl("127.0.0.1", port), topic_map())
    bridge._clock = bench.clock
    first = {name.partition("/")[0]: name for name in reversed(cases())}  # one of each family
    taken = {name: case for name, case in cases().items() if name in first.values()}
    async with bench.taking_from(bridge):
        wrong = await run_cases(bench, taken)
    await bridge.stop()
    assert not wrong, "\n".join(wrong)
    assert bench.stats.quarantined == sum("expected_error" in case for case in taken.values())


@pytest.mark.parametrize("single_values", [False, True], ids=["whole", "single values"])
async def test_a_whole_window_that_comes_again_a_day_later_brings_nothing_new(
    store: SqliteStore, scripted_broker: ScriptedBroker, single_values: bool
) -> None:
    """All was stored, and no acknowledgement reached the broker before it dropped us."""
    chosen = ["ispindel/{label}/{key}=ispindel"]
    bench = Bench(store, scripted_broker.url, TopicMap(chosen, drivers=()))
    bodies = [b"%d.5" % n for n in range(IN_FLIGHT_MESSAGES // 2)]
    sent = [(b"ispindel/red/temperature", body) for body in bodies for _ in range(2)]
    if single_values:
        sent[1::2] = [(b"ispindel/red/RSSI", b"-61")] * len(bodies)
    else:
        sent = [(b"hydrometer/red", b'{"angle":45,"temperature":%d}' % n) for n in range(IN_FLIGHT_MESSAGES)]

    def deliver(*, dup: bool) -> None:
        for mid, (topic, text) in enumerate(sent, 1):
            scripted_broker.send(publish_packet(topic, text, mid, dup=dup))

    async with bench.listening():
        deliver(dup=False)
        await wait_for(lambda: len(scripted_broker.acknowledged) == IN_FLIGHT_MESSAGES)
        stored = bench.stats.stored
        assert stored == (IN_FLIGHT_MESSAGES // 2 if single_values else IN_FLIGHT_MESSAGES)
        scripted_broker.drop()
        await wait_for(lambda: scripted_broker.subscriptions == 2)
        bench.clock.days += 1
        deliver(dup=True)
        await wait_for(lambda: len(scripted_broker.acknowledged) == 2 * IN_FLIGHT_MESSAGES)
    assert bench.stats.stored == stored


async def test_what_a_broker_sends_again_is_one_reading(
    store: SqliteStore, scripted_broker: ScriptedBroker
) -> None:
    """A day later, so that only the packet ids can tell."""
    chosen = ["brewery/bpl1/+=brewpiless", "brewery/bpl2=brewpiless", "ispindel/{label}/{key}=ispindel"]
    bench = Bench(store, scripted_broker.url, TopicMap(chosen, drivers=()))

    def deliver(*, dup: bool) -> None:
        for mid, (topic, text) in enumerate(AGAIN, 1):
            scripted_broker.send(publish_packet(topic.encode(), text.encode(), mid, dup=dup))

    async with bench.listening():
        deliver(dup=False)
        await wait_for(lambda: len(scripted_broker.acknowledged) == len(AGAIN))
        names = sorted(line["name"] for line in await bench.lines())
        assert names == ["blue", "bpl1", "bpl2", "red"]
        scripted_broker.drop()
        await wait_for(lambda: scripted_broker.subscriptions == 2)
        bench.clock.days += 1
        deliver(dup=True)
        await wait_for(lambda: len(scripted_broker.acknowledged) == 2 * len(AGAIN))
    assert len(await bench.lines()) == len(names)
