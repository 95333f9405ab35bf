"""What was answered against what is stored, and a load that keeps the ledger of what was answered."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import aiohttp
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.ingest.mqtt_link import MqttUrl

MQTT_EVERY_S = 0.01
AGAIN_S = 0.02


@dataclass(frozen=True)
class Verdict:
    """Readings that were answered and are not there, and readings that are there twice."""

    missing: frozenset[str]
    doubled: frozenset[str]


def judge(answered: Iterable[str], stored: Iterable[str]) -> Verdict:
    """Compare by the mark that each reading carries."""
    copies = Counter(stored)
    return Verdict(
        missing=frozenset(answered) - copies.keys(),
        doubled=frozenset(mark for mark, count in copies.items() if count > 1),
    )


def marked(device: str, mark: str) -> str:
    """A reading that no other is like."""
    reading = {"name": device, "ID": device, "angle": 45.5, "temperature": 20.5, "gravity": 12.5}
    return json.dumps({**reading, "interval": 900, "comment": mark})


@dataclass
class HttpLoad:
    """Keep-alive connections that post one reading after the other; none is sent twice."""

    url: str
    connections: int
    answered: list[str] = field(default_factory=list)
    sent: int = 0
    _senders: list[asyncio.Task[None]] = field(default_factory=list)

    async def __aenter__(self) -> "HttpLoad":
        self._senders = [asyncio.create_task(self._send(number)) for number in range(self.connections)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for sender in self._senders:
            sender.cancel()
        await asyncio.wait(self._senders)

    async def _send(self, sender: int) -> None:
        async with aiohttp.ClientSession() as http:
            while True:
                self.sent += 1
                mark = f"http {self.sent}"
                try:
                    async with http.post(self.url, data=marked(f"h{sender}", mark).encode()) as response:
                        await response.read()
                        if response.status == 200:
                            self.answered.append(mark)
                except aiohttp.ClientError:
                    await asyncio.sleep(AGAIN_S)


@dataclass
class MqttLoad:
    """One client that publishes at QoS 1; answered is what the broker acknowledged."""

    broker: MqttUrl
    answered: list[str] = field(default_factory=list)
    _enough: threading.Event = field(default_factory=threading.Event)

    async def __aenter__(self) -> "MqttLoad":
        self._publishing = asyncio.create_task(asyncio.to_thread(self._publish))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._enough.set()
        await self._publishing

    def _publish(self) -> None:
        client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
        if self.broker.user is not None:
            client.username_pw_set(self.broker.user, self.broker.password)
        client.connect(self.broker.host, self.broker.port)
        client.loop_start()
        number = 0
        while not self._enough.wait(MQTT_EVERY_S):
            number += 1
            mark = f"mqtt {number}"
            info = client.publish(f"hydrometer/m{number % 3}", marked(f"m{number % 3}", mark), 1)
            info.wait_for_publish(10)
            if info.is_published():
                self.answered.append(mark)
        client.disconnect()
        client.loop_stop()
