"""What came to nothing by MQTT is named; on topics that the user named it is a reading or in quarantine."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import SystemClock
from gateway.intake.replay import Replay
from gateway.network import Admission
from gateway.services.build import Services, build_services
from gateway.stats import TOPIC_CHARACTERS, UNREAD_TOPICS, UnreadTopicLog
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.mqtt import MqttIngest, whole_payload
from gateway.transports.mqtt_listener import MqttListener
from gateway.transports.topics import TopicMap
from sample_devices.transports.mqtt import deliver
from sample_devices.wire.report import Login, Message
from tests.system.transports import test_mqtt_ingest
from tests.system.transports.conftest import open_port, wait_for
from tests.system.transports.test_mqtt_ingest import Parts as Scripted
from tests.system.transports.test_mqtt_ingest import message

scripted = test_mqtt_ingest.parts

CHOSEN = (
    "beer/SG/=fermenter 1:gravity",
    "cellar/sensor/+/state=esphome",
    "brewery/bpl1=brewpiless",
    "spindles/+=stream",
)


class Bench:
    """The MQTT listener and all behind it, with a real store."""

    def __init__(self, services: Services) -> None:
        self.parts = services
        self.topics = TopicMap(CHOSEN, unread=services.stats.unread)
        self.bridge = MqttListener(self.topics, SystemClock(), Admission(SystemClock()), services.stats)
        self.port = 0
        self.listener = MqttIngest(
            self.bridge, self.topics, services.intake, services.store, services.stats, SystemClock()
        )

    async def publish(self, *sent: tuple[str, str]) -> None:
        """At QoS 1, and with the readings that wait for further values stored."""
        messages = [Message(topic, text.encode(), qos=1) for topic, text in sent]
        await deliver("127.0.0.1", self.port, Login("device", 60), messages)
        await asyncio.sleep(0.05)
        await self.listener.store_open()

    async def lines(self) -> list[dict[str, Any]]:
        found = self.parts.store.readings.json_lines(last=1000, device_id=None, session_id=None)
        return [json.loads(line) async for line in found]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, SystemClock())
    await services.intake.start()
    bench = Bench(services)
    bench.port = await open_port(bench.bridge)
    task = asyncio.create_task(bench.listener.run())
    yield bench
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await bench.bridge.stop()
    await store.close()


async def test_topics_that_nobody_listens_to_are_counted(bench: Bench) -> None:
    await bench.publish(("attic/wort", "1.050"), ("attic/wort", "1.049"), ("cbpi/sensordata/Xy", "{}"))
    assert bench.parts.stats.unread.messages == {"attic/wort": 2, "cbpi/sensordata/Xy": 1}
    assert bench.parts.stats.received == 0


async def test_what_is_said_to_home_assistant_is_no_news(bench: Bench) -> None:
    await bench.publish(
        ("homeassistant/sensor/tiltbridge_tilt_Red/temperature/config", "{}"),
        ("homeassistant/status", "online"),
        ("hydrometer_gateway/7f3a91c2/device/ispindel_7/state", '{"sg":1.05,"angle":40}'),
    )
    assert bench.parts.stats.unread.messages == {}
    assert (bench.parts.stats.received, bench.parts.stats.quarantined) == (0, 0)


async def test_an_external_brokers_message_that_was_not_asked_for_is_counted(scripted: Scripted) -> None:
    scripted.bridge.put(message("attic/wort"))
    await wait_for(lambda: scripted.bridge.acknowledged)
    assert scripted.listener._topics.unread.messages == {"attic/wort": 1}


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("beer/SG/", "hello"),
        ("beer/SG/", "[1]"),
        ("cellar/sensor/humidity/state", "55"),
        ("brewery/bpl1", '{"door": 1}'),
        ("spindles/red", '{"temp": null, "gravity": null}'),
        ("spindles/red", "1.050"),
    ],
)
async def test_what_came_on_a_named_topic_is_at_least_in_quarantine(
    bench: Bench, topic: str, text: str
) -> None:
    await bench.publish((topic, text))
    assert await bench.lines() == []
    assert await bench.parts.store.quarantine.count() == 1


async def test_a_temperature_alone_is_a_reading_on_a_named_topic_and_none_elsewhere(bench: Bench) -> None:
    await bench.publish(("cellar/sensor/shelf_temperature/state", "19.5"))
    await bench.publish(("garage/sensor/shelf_temperature/state", "19.5"))
    assert [(line["name"], line["temp"]) for line in await bench.lines()] == [("cellar", "19.5")]
    assert await bench.parts.store.quarantine.count() == 0


@pytest.mark.parametrize("text", ["", "nan", "unavailable"])
async def test_no_value_on_a_named_topic_is_named(bench: Bench, text: str) -> None:
    """Sensors say it again and again: in quarantine it would push out what somebody wants to see."""
    await bench.publish(("beer/SG/", text), ("spindles/red", text))
    assert bench.parts.stats.unread.messages == {"beer/SG/": 1, "spindles/red": 1}
    assert await bench.parts.store.quarantine.count() == 0


async def test_replay_leaves_what_still_has_no_reading_in_it(bench: Bench) -> None:
    await bench.publish(("spindles/red", '{"temp": null}'))
    services = bench.parts
    replay = Replay(services.store, services.intake, services.notices)
    [kept] = await services.store.quarantine.newest(10)
    assert await replay.settle(kept) is not None
    assert await replay.settle(replace(kept, body=b'{"temp": 20.5}')) is None
    assert len(await bench.lines()) == 1


def test_the_list_is_bounded_and_keeps_what_was_heard_last() -> None:
    unread = UnreadTopicLog()
    for number in range(1_000):
        unread.count(f"house/{number}")
        unread.count("beer/red\x1b[31m" + "x" * 1_000)
    assert len(unread.messages) == UNREAD_TOPICS
    assert sum(unread.messages.values()) + unread.others == 2_000
    *_, last = unread.messages
    assert last.startswith("beer/red\ufffd")
    assert len(last) == TOPIC_CHARACTERS
    assert unread.messages[last] == 1_000


TILT = '{"id":"F6:BD:41:01:00:00","model_id":"TILT","color":"red","tempf":67,"tempc":19.4,"gravity":1.012}'
THERMOMETER = '{"id":"A4:C1:38:0A:0B:0C","model_id":"LYWSD03MMC_ATC","tempc":21.4,"tempf":70.52,"hum":45}'


async def test_of_what_is_heard_by_bluetooth_only_hydrometers_are_kept(bench: Bench) -> None:
    """Heard by two gateways it is one device, and one reading a minute."""
    for gateway in ("TheengsGateway", "OMG_ESP32_BLE"):
        await bench.publish(
            (f"home/{gateway}/BTtoMQTT/F6BD41010000", TILT),
            (f"home/{gateway}/BTtoMQTT/A4C1380A0B0C", THERMOMETER),
        )
    (device,) = await bench.parts.store.devices.all()
    assert device.key == "mac:f6bd41010000"
    assert len(await bench.lines()) == 1
    assert bench.parts.stats.thinned == 1
    assert await bench.parts.store.quarantine.count() == 0


async def test_a_house_on_a_named_topic_fills_no_quarantine_and_is_counted(tmp_path: Path) -> None:
    unread = UnreadTopicLog()
    topics = TopicMap(["ble/{label}=theengs"], unread=unread)
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, SystemClock())
    services.stats.unread = unread
    place = topics.place_of("ble/A4C1380A0B0C")
    assert place is not None
    await services.intake.take(whole_payload(place, message("ble/A4C1380A0B0C", THERMOMETER)))
    assert (unread.messages, await store.quarantine.count()) == ({"ble/A4C1380A0B0C": 1}, 0)
    await store.close()
