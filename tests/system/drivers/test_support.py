"""What `docs/devices.md` says is so, and the example of a new family in `docs/developing.md` works."""

import json
import re
import runpy
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
import typer.main
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from typer.core import TyperCommand, TyperGroup, TyperOption

from gateway import drivers
from gateway.cli.main import app
from gateway.config import HTTP_PORT, MQTT_PORT, TCP_PORT
from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.drivers import DRIVERS, decode, wire
from gateway.drivers.recognise import recognise
from gateway.intake.normalise import normalise
from gateway.transports.http import aliases, own_paths
from gateway.transports.topics import TopicMap, chosen_route
from gateway.ui.views.help import FLAGS
from tests.pure.drivers import support
from tests.pure.drivers.messages import ARRIVAL
from tests.pure.drivers.support import (
    BEGIN,
    END,
    MANUAL,
    SUPPORTED,
    device_of,
    devices_of,
    settings_of,
    table,
    with_table,
    written,
)
from tests.pure.drivers.test_cases import FILES, actual, payloads, wanted

ROOT = MANUAL.parents[1]
TEXT, TABLE = MANUAL.read_text("utf-8"), SUPPORTED.read_text("utf-8")
PROSE = TEXT + TABLE.partition(BEGIN)[0] + TABLE.partition(END)[2]
DEVELOPING = ROOT / "docs" / "developing.md"
NEW_FAMILY = (
    DEVELOPING.read_text("utf-8").partition("\n## A new family of devices\n")[2].partition("\n## ")[0]
)

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCES = FENCE.findall(PROSE)
SPANS = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", FENCE.sub("", PROSE))]

PAGE = "/ui/"
URL = re.compile(r"https?://(?:GATEWAY:(\d+)|YOUR-HOST)([^\s`\"',;)]*)")
TOPIC = re.compile(r"\$?\w[\w.-]*(/[\w.-]+)+/?")
PROGRAM = "hydrometer-gateway "

SENDING = {
    "iSpindel", "GravityMon", "GravityMon Gateway", "PressureMon", "Chamber controller", "Tilt Pi",
    "Tilt app", "Tilt Pico 2", "TiltBridge", "TiltBridge Junior", "tilt-pitch", "tilty", "pytilt",
    "tilt2mqtt", "brewblox-tilt", "RAPT Pill", "Plaato", "raptpill2mqtt", "RaptPill-To-MeadTools",
    "BrewPiLess", "Fermentrack", "Brew Bubbles", "eManometer", "Nautilis iRelay", "iSpindel-TCP-Server",
    "Torpedo", "iTilt", "ESPHome", "SmartPID M5", "Home Assistant", "Hydrom", "Floaty",
    "Brewfather custom stream", "Brewer's Friend stream",
}  # fmt: skip
"""Devices and bridges that push readings anywhere at all."""

NO_CASES = {"Floaty"}
"""Those whose format nobody knows."""


def test_the_table_is_made_of_the_cases_of_today() -> None:
    assert with_table(TABLE, TEXT) == TABLE, "run python -m tests.pure.drivers.support --write"


def test_every_driver_is_in_the_table() -> None:
    read_by = {line.split(" | ")[1] for line in table(TEXT).splitlines()[2:]}
    assert read_by == {f"`{driver.name}`" for driver in DRIVERS}


def test_every_device_that_sends_has_a_section_and_cases() -> None:
    devices = devices_of(TEXT)
    in_table = set(re.findall(r"^\| \[(.+?)\]", table(TEXT), re.MULTILINE))
    assert devices.keys() >= SENDING
    assert SENDING - in_table == NO_CASES


def test_a_device_without_a_section_is_not_passed_over() -> None:
    assert device_of("TiltBridge Junior 2", ["TiltBridge", "TiltBridge Junior"]) == "TiltBridge Junior"
    with pytest.raises(LookupError, match="'Cellar Float' has cases and no section"):
        device_of("Cellar Float", ["TiltBridge"])


def test_a_captured_case_has_no_row_until_somebody_names_its_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = json.loads(FILES[0].read_text("utf-8")) | {"device": "InfluxDB line protocol"}
    path = tmp_path / FILES[0].parent.name / "captured.json"
    path.parent.mkdir()
    before = table(TEXT)
    monkeypatch.setattr(support, "FILES", [*FILES, path])
    path.write_text(json.dumps(case | {"variant": "captured", "expected": {"name": "x"}}), "utf-8")
    assert table(TEXT) == before
    path.write_text(json.dumps(case | {"variant": "HTTP", "expected": {"name": "x"}}), "utf-8")
    with pytest.raises(LookupError, match="InfluxDB line protocol"):
        table(TEXT)


def test_the_list_at_the_top_has_every_section_once() -> None:
    contents = TEXT.partition("\n## Find your device\n")[2].partition("\n## ")[0]
    listed = re.findall(r"\[([^\]]+)\]\(#([^)]+)\)", contents)
    headings = re.findall(r"^### (.+)$", settings_of(TEXT), re.MULTILINE)
    assert sorted(words for words, _ in listed) == sorted(headings)
    assert {anchor for _, anchor in listed} == set(devices_of(TEXT).values())


def test_the_topics_are_those_of_the_drivers() -> None:
    chapter = TEXT.partition("\n### MQTT topics\n")[2].partition("Your own programs")[0]
    patterns = {pattern for driver in DRIVERS for pattern in driver.topics}
    patterns |= {values.pattern for driver in DRIVERS for values in driver.values}
    assert set(re.findall(r"`([^`]+)`", chapter)) == {*map(written, patterns), "hydrometer/NAME"}


def test_the_flags_are_those_of_the_page() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", TEXT.partition("**Flags.**")[2].partition("\n## ")[0], re.M)
    assert listed == [*FLAGS]


@pytest.fixture(scope="module")
def router() -> web.UrlDispatcher:
    """The device paths as the gateway has them."""
    found = web.Application().router
    for path in [*own_paths(), *aliases()]:
        found.add_route("POST", path.path, _nobody)
    return found


async def _nobody(_: web.Request) -> web.Response:
    raise AssertionError


async def is_path(router: web.UrlDispatcher, text: str) -> bool:
    path = text.partition("?")[0] or "/"
    return (await router.resolve(make_mocked_request("POST", path))).http_exception is None


def is_topic(text: str) -> bool:
    return TopicMap().place_of(text) is not None


async def test_every_url_is_a_path_and_a_port_of_the_gateway(router: web.UrlDispatcher) -> None:
    found = URL.findall(PROSE)
    assert len(found) > 20
    for port, path in found:
        assert not port or int(port) == HTTP_PORT
        assert path == PAGE or await is_path(router, path), path


async def test_every_path_and_topic_is_the_gateways(router: web.UrlDispatcher) -> None:
    others = {"/ingest/", "/NAME"}  # the beginning of paths, and a topic of one level
    paths = [span for span in SPANS if span.startswith("/") and span not in others]
    topics = [s for s in SPANS if TOPIC.fullmatch(s) and s not in FOREIGN and not (ROOT / s).exists()]
    assert len(paths) > 20
    assert len(topics) > 10
    for path in paths:
        assert await is_path(router, path) or (path.count("/") > 1 and is_topic(path)), path
    for topic in topics:
        assert is_topic(topic), topic


FOREIGN = {
    "application/json",
    "HTTP/HTTPS",
    "brewery/bpl1",
    "rapt-pill/Yellow",
    "791402d5ac0fe1/CH1",
    "homeassistant/",
}
"""What looks like a topic and is none, or is one that the user has to name in an option."""


async def test_every_path_of_the_cases_is_served(router: web.UrlDispatcher) -> None:
    cases = [json.loads(path.read_text("utf-8")) for path in FILES]
    targets = {case["path"].partition("?")[0].strip("/") for case in cases if case["transport"] == "http"}
    assert [path for path in targets if not await is_path(router, f"/{path}")] == []


async def test_a_wrong_path_and_a_wrong_topic_would_be_found(router: web.UrlDispatcher) -> None:
    assert not await is_path(router, "/ingest/nobody")
    assert not is_topic("nobody/says/this")


def test_every_port_is_one_that_the_gateway_listens_to() -> None:
    ports = {int(span) for span in SPANS if re.fullmatch(r"\d{4,5}", span)}
    assert ports == {HTTP_PORT, MQTT_PORT, TCP_PORT}
    [serve] = [block for _, block in FENCES if block.startswith("HTTP on ")]
    printed = re.findall(r":(\d+)(?= \(|$)", serve, re.MULTILINE)
    assert [int(port) for port in printed] == [HTTP_PORT, MQTT_PORT, TCP_PORT]


def commands() -> list[str]:
    """Every command line in the manual, without the program's name."""
    root = cast("TyperGroup", typer.main.get_command(app))
    blocks = [line for language, block in FENCES if language == "sh" for line in block.splitlines()]
    lines = [text.removeprefix(PROGRAM) for text in [*SPANS, *blocks] if text.startswith(PROGRAM)]
    lines += [span for span in SPANS if span.split()[0] in root.commands and " " in span]
    lines += [f"serve {span}" for span in SPANS if span.startswith("--")]
    return [line.partition(" #")[0].strip() for line in lines]


@pytest.mark.parametrize("line", sorted({*commands()}))
def test_every_command_and_option_exists(line: str) -> None:
    command = cast("TyperGroup | TyperCommand", typer.main.get_command(app))
    words = shlex.split(line)
    while isinstance(command, TyperGroup) and words[0] in command.commands:
        command = cast("TyperGroup | TyperCommand", command.commands[words.pop(0)])
    assert not isinstance(command, TyperGroup) or command.invoke_without_command, words[0]
    options = {name for option in command.params if isinstance(option, TyperOption) for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= options
    for option, value in pairwise(words):
        if option == "--mqtt-topic":
            chosen_route(value)


FILLED = {
    r"%b|@temperature|\{\{[^}]*(?:temp|beer)[^}]*\}\}": "19.6",
    r"%g|@gravity|\{\{[^}]*gravity[^}]*\}\}": "1.0456",
    r"\{\{ color \}\}": "RED",
    r"\{\{ timestamp \}\}|%u": "1741980600",
    r"@device_id": "12345678-abcd",
    r"@device_type": "Hydrometer",
    r"@created_date": "2025-03-14T19:30:00Z",
    r"@\w+": "50",
    r"%U": "C",
    r"%H": "bpl1",
    r"%[a-zA-Z]": "null",
}
"""What devices put into the templates that the manual tells people to paste."""


@pytest.mark.parametrize(
    ("section", "driver"),
    [
        ("RAPT Pill, RAPT temperature controller", "rapt"),
        ("BrewPiLess", "brewpiless"),
        ("tilty", "tilt_tools"),
        ("Home Assistant", "stream"),
        ("Brewfather custom stream", "stream"),
    ],
)
def test_a_template_to_paste_gives_a_reading(section: str, driver: str) -> None:
    text = PROSE.partition(f"### {section}\n")[2].partition("\n### ")[0]
    found = re.search(
        r"^```json\n(.*?)^```$|payload(?:_template)?\s*[:=]\s*'?(\{[^\n]*\})", text, re.M | re.S
    )
    assert found is not None
    template = found[1] or found[2]
    for variable, value in FILLED.items():
        template = re.sub(variable, value, template)
    payload = Payload(template.encode(), ARRIVAL, f"http /ingest/{driver}", driver=driver)
    [report] = decode(payload).reports
    reading, _ = normalise(report, Device.first_seen(report, 0), payload)
    assert report.name
    assert (reading.gravity, reading.gravity_unit, reading.temp) == ("1.0456", "G", "19.6")
    assert reading.temp_unit == ("F" if section == "tilty" else "C")


def run(tmp_path: Path, code: str) -> dict[str, Any]:
    path = tmp_path / "cellar_float.py"
    path.write_text(code, "utf-8")
    return runpy.run_path(str(path))


def example(language: str) -> list[str]:
    return [block for written, block in FENCE.findall(NEW_FAMILY) if written == language]


def test_the_example_driver_reads_its_example_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver_code, _ = example("python")
    case: dict[str, Any] = json.loads(example("json")[0])
    driver = run(tmp_path, driver_code)["DRIVER"]
    monkeypatch.setitem(drivers.BY_NAME, driver.name, driver)
    [payload] = payloads(case)
    [report] = decode(payload).reports
    reading, _ = normalise(report, Device.first_seen(report, 0), payload)
    for key, value in case["expected"].items():
        assert actual(key, report, reading) == wanted(key, value), key
    inline = re.search(r"posts\s+`(\{.*\})`", NEW_FAMILY)
    assert inline is not None
    assert inline[1] == case["body"]


def test_the_example_row_shows_the_example_payload_and_no_row_before_it_does(tmp_path: Path) -> None:
    _, row_code = example("python")
    [row] = run(tmp_path, f"from gateway.drivers.recognise import Row\nROWS = (\n{row_code})\n")["ROWS"]
    fields = wire.json_object(json.loads(example("json")[0])["body"].encode())
    assert row.fits(fields)
    before = recognise(fields)
    assert before is None or before.generic or before.driver == row.driver


def test_the_files_that_it_names_are_there() -> None:
    named = re.findall(r"`((?:gateway|tests|sample_devices|deploy)/[\w./]+)`", PROSE + NEW_FAMILY)
    assert len(named) > 5
    assert [name for name in named if "cellar_float" not in name and not (ROOT / name).exists()] == []
