"""A gateway's publisher at a real mosquitto, figures and alarms that a test sets, and one who listens."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, cast

import pytest
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.subscribeoptions import SubscribeOptions

from gateway.domain.alarm import Alarm, AlarmEvent
from gateway.domain.brewsession import BrewSession
from gateway.domain.payload import Payload
from gateway.insight.records import Insight
from gateway.integrations.home_assistant import publisher as module
from gateway.services.build import Services
from gateway.transports.mqtt_link import MqttUrl, Reconnects
from tests.clock import FakeClock
from tests.system.transports.conftest import Mosquitto, mosquitto, wait_for

__all__ = ["mosquitto"]

INSTANCE = "7f3a91c2"
OWN = f"hydrometer_gateway/{INSTANCE}"
CONFIGS = "homeassistant/device"


class FakeInsight:
    """Figures by the id of a brew."""

    def __init__(self) -> None:
        self.figures: dict[int, Insight] = {}
        self.leading: int | None = None

    async def of_all(self, sessions: Sequence[BrewSession]) -> dict[int, Insight]:
        return {session.id: self.figures.get(session.id, Insight(0)) for session in sessions}

    async def leading_device(self, session_id: int) -> int | None:
        return self.leading


class FakeAlarms:
    """Alarms that fire, and what happened to alarms, the newest last."""

    def __init__(self) -> None:
        self.open: list[Alarm] = []
        self.events: list[tuple[Alarm, AlarmEvent]] = []

    def firing(self) -> list[Alarm]:
        return self.open

    async def history(self, *, limit: int) -> list[tuple[Alarm, AlarmEvent]]:
        return self.events[::-1][:limit]


class Listener:
    """Hears everything at a broker, as Home Assistant would: live messages in order, and what is retained."""

    def __init__(self, url: MqttUrl) -> None:
        self.live: list[tuple[str, str]] = []
        self.retained: dict[str, str] = {}
        self._subscribed = False
        self._client = client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        if url.user is not None:
            client.username_pw_set(url.user, url.password)
        client.on_message = self._on_message
        client.on_subscribe = lambda *_: setattr(self, "_subscribed", True)
        client.reconnect_delay_set(0.1, 0.1)  # type: ignore[arg-type]
        options = SubscribeOptions(qos=1, retainAsPublished=True)
        client.on_connect = lambda client, *_: client.subscribe("#", options=options)
        client.connect(url.host, url.port)
        client.loop_start()

    async def start(self) -> None:
        await wait_for(lambda: self._subscribed)

    def stop(self) -> None:
        client = self._client
        client.disconnect()
        client.loop_stop()
        client.on_connect = client.on_subscribe = client.on_message = None  # no cycle keeps its sockets open

    def say(self, topic: str, payload: str, *, retain: bool = False) -> None:
        self._client.publish(topic, payload, qos=1, retain=retain)

    def _on_message(self, _client: Any, _userdata: Any, message: Any) -> None:
        text = message.payload.decode()
        self.live.append((message.topic, text))
        if message.retain:
            self.retained[message.topic] = text
            if not text:
                del self.retained[message.topic]

    def state(self, slug: str, kind: str = "device") -> dict[str, Any]:
        text = self.retained.get(f"{OWN}/{kind}/{slug}/state".replace("//", "/"), "{}")
        return dict(json.loads(text))

    def config(self, slug: str = "") -> dict[str, Any]:
        suffix = f"_{slug}" if slug else ""
        return dict(json.loads(self.retained.get(f"{CONFIGS}/hg_{INSTANCE}{suffix}/config", "{}")))

    def topics(self) -> list[str]:
        return [topic for topic, _ in self.live]


class House:
    """A gateway's services with its publisher, a broker, and a listener."""

    def __init__(self, services: Services, mosquitto: Mosquitto, listener: Listener) -> None:
        self.real, self.insight, self.alarms = services, FakeInsight(), FakeAlarms()
        self.services = replace(services, insight=cast("Any", self.insight), alarms=cast("Any", self.alarms))
        self.mosquitto, self.listener = mosquitto, listener

    async def report(self, name: str = "Red", number: int = 7, gravity: float = 1.05, **more: Any) -> None:
        """A reading of an iSpindel."""
        body = {"name": name, "ID": number, "angle": 40.5, "temperature": 20.0, "gravity": gravity, **more}
        now = self.services.clock.now()
        await self.services.intake.take(Payload(json.dumps(body).encode(), now, "http /ingest"))

    async def forget(self, device_id: int) -> None:
        await self.services.forgetting.forget(await self.services.devices.find(device_id))

    @asynccontextmanager
    async def publishing(
        self,
        prefix: str = "homeassistant",
        *,
        brews: bool = False,
        instance: str = INSTANCE,
        services: Services | None = None,
    ) -> AsyncIterator[None]:
        """Until the end of the block, then with a clean stop."""
        work = module.publish(services or self.services, self.mosquitto.url, instance, prefix, brews=brews)
        task = asyncio.create_task(work)
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def settled(self) -> None:
        """Until all is published."""
        await wait_for(lambda: self.listener.retained.get(f"{OWN}/status") == "online")


@pytest.fixture
async def listener(mosquitto: Mosquitto) -> AsyncIterator[Listener]:
    listener = Listener(mosquitto.url)
    await listener.start()
    yield listener
    listener.stop()


@pytest.fixture
async def house(
    services: Services, mosquitto: Mosquitto, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> House:
    monkeypatch.setattr(Reconnects, "delay_s", lambda _: 0.1)
    services.page.address = "http://192.168.1.20:8080"
    return House(services, mosquitto, listener)


@pytest.fixture
def passed(clock: FakeClock) -> Any:
    """Lets time pass for sleepers, until a condition holds."""

    async def until(true: Any, step_s: float = 1.0) -> float:
        began = clock.monotonic()
        while not true():
            clock.advance(step_s)
            await asyncio.sleep(0)
            await clock.someone_sleeps()  # the publisher has published what was due, and is acknowledged
            await asyncio.sleep(0.02)
            assert clock.monotonic() - began < 200_000
        return clock.monotonic() - began

    return until
