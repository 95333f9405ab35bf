"""A broker as a target: Debian's mosquitto, with the configuration that we ship."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.domain.target import Target
from gateway.errors import ConfigError, InvalidInput
from gateway.forward.kinds.mqtt import TOPIC, Mqtt, checked, meets, topic_of
from gateway.forward.kinds.table import Surroundings
from gateway.outward.guard import Guard
from gateway.transports.topics import TopicMap
from tests.system.forward.mapped import Mapped, forwarding, mapped
from tests.system.transports.conftest import Mosquitto, wait_for
from tests.system.transports.conftest import mosquitto as mosquitto  # the fixture

URL = "mqtt:out"


class Listener:
    """A subscriber; `heard` are topic, body and the retained mark of each message."""

    def __init__(self, broker: Mosquitto, name: str) -> None:
        self.heard: list[tuple[str, Any, bool]] = []
        self.client = paho.Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=paho.MQTTv311)
        self.client.username_pw_set(broker.url.user, broker.url.password)
        self.client.on_connect = lambda client, *_: client.subscribe("brewery/#", 1)
        self.subscribed = False
        self.client.on_subscribe = lambda *_: setattr(self, "subscribed", True)
        self.client.on_message = lambda _client, _data, message: self.heard.append(
            (message.topic, json.loads(message.payload), message.retain)
        )
        self.client.connect(broker.url.host, broker.url.port)
        self.client.loop_start()

    def stop(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Mapped]:
    async with mapped(tmp_path) as made:
        yield made


async def add(made: Mapped, broker: Mosquitto, **options: Any) -> None:
    address = f"mqtt://{broker.url.host}:{broker.url.port}"
    await made.add("out", "mqtt", address, key=broker.url.password or "", user=broker.url.user, **options)
    await made.map("out")


@pytest.mark.broker
async def test_readings_go_in_order_and_the_newest_is_retained(made: Mapped, mosquitto: Mosquitto) -> None:
    await add(made, mosquitto)
    listener = Listener(mosquitto, "listener")
    try:
        await wait_for(lambda: listener.subscribed)
        await made.send("Red", 1.050, 1.049, 1.048)
        async with forwarding(made):
            await made.settled(URL, 3)
            await wait_for(lambda: len(listener.heard) == 3)
    finally:
        await asyncio.to_thread(listener.stop)
    assert [body["sg"] for _, body, _ in listener.heard] == [1.050, 1.049, 1.048]
    assert {topic for topic, _, _ in listener.heard} == {"brewery/ispindel:283/reading"}
    assert len({body["id"] for _, body, _ in listener.heard}) == 3
    later = Listener(mosquitto, "later")
    try:
        await wait_for(lambda: len(later.heard) == 1)
    finally:
        await asyncio.to_thread(later.stop)
    assert later.heard[0][1]["sg"] == 1.048
    assert later.heard[0][2]


@pytest.mark.broker
async def test_a_broker_that_is_away_loses_nothing(made: Mapped, mosquitto: Mosquitto) -> None:
    await add(made, mosquitto)
    async with forwarding(made):
        await made.send("Red", 1.050)
        await made.settled(URL, 1)
        mosquitto.kill()
        await made.send("Red", 1.049)
        await made.until(lambda: made.state("out").startswith("waits to try again"))
        assert (await made.totals(URL)).pending == 1
        mosquitto.start()
        await made.settled(URL, 2)


@pytest.mark.broker
async def test_a_wrong_password_pauses(made: Mapped, mosquitto: Mosquitto) -> None:
    await made.add(
        "out",
        "mqtt",
        f"mqtt://{mosquitto.url.host}:{mosquitto.url.port}",
        key="wr0ng",
        user=mosquitto.url.user,
    )
    await made.map("out")
    [finding] = await made.services.targets.test("out")
    assert not finding.ok
    await made.send("Red", 1.05)
    async with forwarding(made):
        await made.until(lambda: made.state("out").startswith("is paused"))
    assert "wr0ng" not in made.state("out")


@pytest.mark.broker
async def test_a_broker_is_found_behind_an_address_where_nobody_listens(mosquitto: Mosquitto) -> None:
    """Such as a name that has an IPv6 address, and a broker that has none."""
    options = {"url": f"mqtt://broker.lan:{mosquitto.url.port}", "user": mosquitto.url.user}

    async def found(_host: str, _port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]

    target = Target("out", URL, "", kind="mqtt", settings=json.dumps(options))
    kind = Mqtt(target, lambda: mosquitto.url.password or "", Guard(resolve=found))
    [check] = await kind.test()
    await kind.close()
    assert check.ok, check.words


async def test_a_topic_that_we_read_is_refused(made: Mapped) -> None:
    made.services.targets.around = Surroundings(hears=TopicMap(["mine/+/x=ispindel"]).filters)
    for topic in (
        "ispindel/{device}/gravity",
        "hydrometer/{name}",
        "mine/{batchcode}/x",
        "{name}/{name}/{name}",
    ):
        with pytest.raises(InvalidInput, match="we read"):
            await made.add("out", "mqtt", "mqtt://broker.lan", topic=topic)
    await made.add("out", "mqtt", "mqtt://broker.lan")


def test_no_name_leads_to_a_topic_that_we_read() -> None:
    topics = TopicMap()
    for word in ("feeds", "sensor/x", "../#", "+", "$SYS", "ispindel", "", "a/b/c/d"):
        for device in ("ispindel:1", "import", f"mac:{word}", f"tilt:{word}"):
            values = {"device": device, "name": word, "brew_id": None, "batchcode": word}
            topic = topic_of(TOPIC, values)
            assert not topics.is_heard(topic), topic
            assert topic.count("/") == 2
            assert not {"+", "#", "\0"} & set(topic)


@pytest.mark.parametrize("topic", ["a/#", "a/+/b", "$SYS/x", "a/{gravity}", "x" * 2000, " "])
def test_what_is_no_topic_to_publish_to(topic: str) -> None:
    with pytest.raises(ConfigError):
        checked({"url": "mqtt://broker", "topic": topic}, ())


@pytest.mark.parametrize(
    "url", ["http://broker", "mqtt://", "mqtt://u:p@broker", "mqtt://broker/path", "broker"]
)
def test_what_is_no_broker(url: str) -> None:
    with pytest.raises(ConfigError):
        checked({"url": url}, ())


def test_filters_that_meet() -> None:
    for one, other in (("a/+", "a/b"), ("+/x", "a/+"), ("#", "a/b"), ("a/#", "+/b"), ("a/b", "a/b")):
        assert meets(one, other)
        assert meets(other, one)
    for one, other in (("a/+", "b/x"), ("+/x", "a/y"), ("a", "a/b"), ("a/b/c", "a/+")):
        assert not meets(one, other)
        assert not meets(other, one)
