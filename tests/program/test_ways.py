"""Each way to add a device: what a device with those very settings sends is heard by a running gateway."""

import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from gateway.drivers.families import Family, Way, families, fill
from sample_devices.devices import KINDS, Broker, Targets, simulate
from sample_devices.transports import mqtt
from sample_devices.transports.errors import NotAnswered
from sample_devices.wire.report import Address, Login, Message, MqttReport, Place
from tests.program.program import FREE_PORTS, MANY_NAMES, Server, serving, until
from tests.system.transports.conftest import free_port

WAYS = [(family, way) for family in families().values() for way in family.ways]

URL = re.compile(r"https?://[^\s\"']+")
TOPIC = re.compile(r"topic|base path|Path / URI", re.IGNORECASE)
OUTSIDE = "YOUR-HOST"

SHOWN = 300

SECONDS = 2 * 86_400.0
"""Into the fermentation: every simulated device has all of its values by then."""

STEP_S = 900.0
"""Of the curve between two ways: the same words twice would be one report."""


FIXED_NAMES = {"brewpiless"}
"""Families whose topic is an example: the device has to be the one that the options name."""


@dataclass
class Running:
    """A gateway with every way open: its addresses as the page fills them in, and its key."""

    server: Server
    key: str
    values: dict[str, str]
    ports: dict[int, int]
    http: aiohttp.ClientSession

    async def ask(self, path: str) -> dict[str, Any]:
        async with self.http.get(f"{self.server.url}{path}", headers={"X-API-KEY": self.key}) as answer:
            assert answer.status == 200, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Running]:
    """Start a gateway with all options that any way names; built-in ports are other ones here."""
    options = [word for _, way in WAYS for option in way.options for word in shlex.split(option)]
    pairs = zip(options[::2], options[1::2], strict=True)
    topics = [word for name, value in pairs if name == "--mqtt-topic" for word in (name, value)]
    built_in = {way.port for _, way in WAYS if way.port and KINDS[way.simulate].transport == "http"}
    ports = {port: free_port() for port in built_in}
    also = [word for port in ports.values() for word in ("--also-listen", str(port))]
    async with serving(folder, *FREE_PORTS, *MANY_NAMES, *topics, *also) as server:
        tcp = server.found(r"^TCP on (\S+)")
        assert tcp
        values = {
            "host": "127.0.0.1",
            "http_port": str(server.port),
            "mqtt_port": str(server.mqtt_port),
            "tcp_port": tcp.rpartition(":")[2],
        }
        async with aiohttp.ClientSession() as http:
            assert server.first_key
            yield Running(server, server.first_key, {**values, "key": server.first_key}, ports, http)


def targets_of(way: Way, gateway: Running) -> Targets:
    """Where a device reports to that has nothing but these settings; its firmware knows the rest."""
    host, transport = gateway.values["host"], KINDS[way.simulate].transport
    typed = {field.name: fill(field.text, gateway.values) for field in way.fields}
    told = " ".join(typed.values())
    url, authority = URL.search(told), re.search(rf"{host}:(\d+)", told)
    if transport == "http":
        if url is not None:
            parts = urlsplit(url[0])
            port = gateway.ports[80] if way.port == 80 else int(gateway.values["http_port"])
            if parts.hostname not in {host, OUTSIDE.lower()}:
                raise AssertionError(f"{url[0]} is not the gateway's")
            assert parts.port in {None, port}
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            return Targets(http=Address(host, port, path if path not in {"", "/"} else None))
        paths = [text for text in typed.values() if text.startswith("/")]
        if (instance := typed.get("Prometheus instance")) is not None:
            paths = [f"/metrics/job/ispindel/instance/{instance}"]
        if way.port is not None:
            return Targets(http=Address(host, gateway.ports[way.port], *paths))
        assert {host, gateway.values["http_port"]} <= {*typed.values()}
        return Targets(http=Address(host, int(gateway.values["http_port"]), *paths))
    own = gateway.values[f"{transport}_port"]
    if "dns" not in way.needs and "own broker" not in way.needs and way.port is None and authority is None:
        assert {host, own} <= {*typed.values()} or "{mqtt_port}" in " ".join(way.notes)
    if authority is not None:
        assert authority[1] == own
    if transport == "tcp":
        return Targets(tcp=Address(host, int(own)))
    return Targets(mqtt=Broker(host, int(own)))


def topics_fit(way: Way, report: MqttReport) -> bool:
    """Whether the topics are those that the settings and notes name."""
    typed = [field.text for field in way.fields if TOPIC.search(field.name)]
    if not typed:
        return True
    pattern = re.escape(typed[0]).replace("NAME", r"[^/]+")
    return any(re.match(rf"{pattern}(/|$)", message.topic) for message in report.messages)


async def test_every_way_is_heard(tmp_path: Path) -> None:
    wrong: list[str] = []
    async with running(tmp_path) as gateway:
        for number, (family, way) in enumerate(WAYS, 1):
            fixed = family.id in FIXED_NAMES and way.options
            place = Place(0, 1, number) if fixed else Place(7, number, number)
            prefixes = [field.text for field in way.fields if field.name == "topic_prefix"]
            place = place._replace(name=prefixes[0]) if prefixes else place
            try:
                await report_by(way, family, place, gateway)
            except (AssertionError, NotAnswered) as error:
                wrong.append(f"{family.id}.{way.id}: {error!r}"[:SHOWN])
    assert not wrong, "\n".join(wrong)


async def test_what_the_settings_say_to_send_is_understood_as_it_stands(tmp_path: Path) -> None:
    """The family for programs of one's own has the content itself among its fields."""
    family = families()["other"]
    async with running(tmp_path) as gateway:
        for way in family.ways:
            typed = {field.name: fill(field.text, gateway.values) for field in way.fields}
            before = await heard(gateway, family)
            if "URL" in typed:
                async with gateway.http.post(typed["URL"], data=typed["Content"]) as answer:
                    assert answer.status == 200
            else:
                message = Message(typed["Topic"], typed["Content"].encode(), 1)
                await mqtt.deliver(typed["Broker"], int(typed["Port"]), Login("x", 60), [message])

            async def is_heard(before: set[tuple[int, str, str]] = before) -> bool:
                return bool(await heard(gateway, family) - before)

            await until(is_heard)
            [newest, *_] = (await gateway.ask("/manage/heard?since=2020-01-01"))["devices"]
            assert (newest["gravity"], newest["gravity_unit"], newest["temp_unit"]) == ("1.0456", "G", "C")


async def report_by(way: Way, family: Family, place: Place, gateway: Running) -> None:
    """Report once by these settings, and wait until step 3 shows the device."""
    device = simulate(way.simulate, place, targets_of(way, gateway))
    report = device.report(SECONDS + STEP_S * place.ordinal)
    if isinstance(report, MqttReport):
        assert topics_fit(way, report), f"reports to {report.messages[-1].topic}"
    before = await heard(gateway, family)
    await device.send(report)

    async def is_heard() -> bool:
        return bool(await heard(gateway, family) - before)

    await until(is_heard)


async def heard(gateway: Running, family: Family) -> set[tuple[int, str, str]]:
    """What step 3 shows of this family: each device with its last reading."""
    found = await gateway.ask(f"/manage/heard?since=2020-01-01&family={family.id}")
    return {
        (each["id"], each["at"], str(each["gravity"]))
        for each in found["devices"]
        if each["family"] in family.drivers or family.id == "other"
    }
