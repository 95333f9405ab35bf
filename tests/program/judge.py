"""What was answered against what is stored, by a fleet, and by a load that keeps a ledger of its own."""

import asyncio
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import aiohttp
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.drivers import BY_NAME
from gateway.transports.mqtt_link import MqttUrl
from tests.pure.drivers.said import Values, differences, values_said

MQTT_EVERY_S = 0.01
AGAIN_S = 0.02

SHOWN_MISREAD = 5

SILENT = {"measured_at": None}
"""What a line has not where it is so."""

SAID = ("kind", "name", "gravity", "gravity_unit", "temp", "temp_unit")

ARRIVES_WITHIN_S = 20.0
"""After it was sent: the slowest transport's deadline, and what comes in single values waits for more."""

THINNED = {
    "esphome-mqtt": "esphome", "smartpid-mqtt": "smartpid", "tiltbridge-junior": "tiltbridge_junior",
    "theengs": "theengs", "theengs-rapt": "theengs", "openmqttgateway": "theengs",
}  # fmt: skip
"""Kinds that push every few seconds, and the driver that does not keep all of it."""

NAMELESS = frozenset({"brewpiless-get", "home-assistant"})
"""Two of a kind that say the same send the same bytes: nobody can tell them from one that says it twice.

The same goes for Tilts of one colour behind two bridges.
"""

Line = dict[str, Any]


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

    `misread` are those whose values somebody said, but nobody with this id, further values and time.
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
    misread: Sequence[str] = ()

    def __str__(self) -> str:
        lost, wrong = sum(self.missing.values()), self.invented.total() + len(self.misread)
        return (
            f"{self.sent} sent, {self.answered} answered, {self.due} due, {self.stored} stored, "
            f"{self.thinned} thinned, {self.twins} twins, {lost} lost, {wrong} misread or invented"
            + "".join(f"\n{each}" for each in self.misread[:SHOWN_MISREAD])
        )


def judge_fleet(fleets: Sequence[Iterable[Line]], stored: Iterable[Line]) -> FleetVerdict:
    """Compare lines of `fleet --json` with those of `readings --json`; an unanswered report may be stored."""
    due: Counter[Values] = Counter()
    maybe: Counter[Values] = Counter()
    speakers: dict[Values, set[tuple[int, str]]] = defaultdict(set)
    lines_of: dict[Values, list[Line]] = defaultdict(list)
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
            lines_of[values].append(line)
    readings = list(stored)
    there = Counter(map(_values, readings))
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
        misread=[
            trouble for reading in readings for trouble in _misread(reading, lines_of[_values(reading)])
        ],
    )


def _values(reading: Line) -> Values:
    return Values(*(reading[member] or "" for member in SAID[1:]))


def _misread(reading: Line, lines: Iterable[Line]) -> Iterator[str]:
    """What it has other than the one of these lines that it is most like."""
    created_at = datetime.fromisoformat(reading["created_at"]).timestamp()
    found = reading | {"created_at": created_at}
    troubles = [
        list(differences(line["kind"], SILENT | line, found, line["sent_at"], ARRIVES_WITHIN_S))
        for line in lines
    ]
    if troubles and all(troubles):
        fewest = min(troubles, key=len)
        yield f"{reading['source']} {_values(reading)}: {'; '.join(fewest)}"


NOT_SIMULATED = frozenset({"craftbeerpi"})
"""Drivers without a kind: the user has to name each topic of theirs."""


def thinning() -> set[str]:
    """The drivers that do not keep every reading, as far as there are kinds for them."""
    return {name for name, driver in BY_NAME.items() if driver.spacing_s} - NOT_SIMULATED


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
