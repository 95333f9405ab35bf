"""What was answered against what is stored, by a fleet, and by a load that keeps a ledger of its own."""

import asyncio
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.drivers import BY_NAME
from gateway.ingest.mqtt_link import MqttUrl
from tests.drivers.said import Values, values_said

MQTT_EVERY_S = 0.01
AGAIN_S = 0.02

SAID = ("kind", "name", "gravity", "gravity_unit", "temp", "temp_unit")

THINNED = {
    "esphome-mqtt": "esphome", "smartpid-mqtt": "smartpid", "tiltbridge-junior": "tiltbridge_junior",
}  # fmt: skip
"""Kinds that push every few seconds, and the driver that does not keep all of it."""

NAMELESS = frozenset({"brewpiless-get", "home-assistant"})
"""Two of a kind that say the same send the same bytes: nobody can tell them from one that says it twice.

The same goes for Tilts of one colour behind two bridges.
"""

Line = Mapping[str, Any]


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


@dataclass(frozen=True)
class FleetVerdict:
    """Readings that were answered and are not there, and readings that nobody said: by what they say.

    `thinned` are those that are not kept because their kind pushes every few seconds; `twins` those that two
    devices of one name, or of none, said in the same words.
    """

    sent: int
    answered: int
    due: int
    stored: int
    thinned: int
    twins: int
    missing: Mapping[tuple[str, ...], int]
    invented: Counter[Values]

    def __str__(self) -> str:
        lost, wrong = sum(self.missing.values()), self.invented.total()
        return (
            f"{self.sent} sent, {self.answered} answered, {self.due} due, {self.stored} stored, "
            f"{self.thinned} thinned, {self.twins} twins, {lost} lost, {wrong} misread or invented"
        )


def judge_fleet(fleets: Sequence[Iterable[Line]], stored: Iterable[Line]) -> FleetVerdict:
    """Compare lines of `fleet --json` with those of `readings --json`; an unanswered report may be stored."""
    due: Counter[Values] = Counter()
    maybe: Counter[Values] = Counter()
    speakers: dict[Values, set[tuple[int, str]]] = defaultdict(set)
    sent = answered = 0
    for number, line in ((number, line) for number, lines in enumerate(fleets) for line in lines):
        if "kind" not in line:
            continue
        sent += 1
        answered += line["answered"]
        if line.get("expected", True):
            values = values_said(*(line[member] for member in SAID))
            (due if line["answered"] else maybe)[values] += 1
            speakers[values].add((number, line["kind"]))
    there = Counter(Values(*(line[member] or "" for member in SAID[1:])) for line in stored)
    lost = due - there
    kinds = {values: {kind for _, kind in speakers[values]} for values in lost}
    thinned = {values for values in lost if kinds[values] <= THINNED.keys()}
    twins = {v for v in lost if there[v] and (len(speakers[v]) > 1 or kinds[v] <= NAMELESS)} - thinned
    return FleetVerdict(
        *(sent, answered, due.total(), there.total()),
        thinned=sum(lost[values] for values in thinned),
        twins=sum(lost[values] for values in twins),
        missing={(*kinds[v], *v): count for v, count in lost.items() if v not in thinned | twins},
        invented=there - due - maybe,
    )


def thinning() -> set[str]:
    """The drivers that do not keep every reading."""
    return {name for name, driver in BY_NAME.items() if driver.spacing_s}


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
