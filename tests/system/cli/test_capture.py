"""`capture`: a device's payloads as golden cases that pass as such and tell nobody's name."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway import __version__
from gateway.capture import Capturing, NotCaptured, newest_payloads
from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.drivers import BY_NAME
from gateway.redact import Redactor
from gateway.services.build import Services, build_services
from gateway.store.records import RawReading
from gateway.store.sqlite.store import SqliteStore
from tests.program.program import answer, ispindel, post, refusal
from tests.pure.drivers import test_cases
from tests.pure.drivers.messages import ARRIVAL
from tests.pure.drivers.test_cases import CASES, payloads
from tests.system.cli.conftest import gateway

STEP_S = 4_000
"""Between arrivals: more than a delivery that comes again, and than any family's spacing."""

SECRET_WORDS = (
    "Annas",
    "Keller",
    "5312877",
    "s3cr3t",
    "3A:05",
    "3A05",
    "52.5163",
    "13.3777",
    "80417",
    "anna@",
    "192.168.178.23",
    "Hochzeit",
)


@asynccontextmanager
async def opened(data: Path) -> AsyncIterator[Services]:
    store = SqliteStore(data)
    await store.open()
    try:
        await store.keys.owner(int(ARRIVAL))
        yield build_services(store, data, SystemClock())
    finally:
        await store.close()


async def taken(data: Path, *bodies: str, **details: Any) -> None:
    """Have these stored, one after the other."""
    said: dict[str, Any] = {"channel": "http /ingest", **details}
    async with opened(data) as services:
        for place, body in enumerate(bodies):
            taken = await services.intake.take(Payload(body.encode(), ARRIVAL + place * STEP_S, **said))
            assert taken.quarantined is None, taken


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def case_in(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return case


NAMES_SAY_WHAT = {"craftbeerpi", "home_assistant", "theengs"}
"""Families whose names, or whose advertisements in hex, say what a value is: without them it is refused."""


async def every_case(services: Services) -> AsyncIterator[tuple[str, RawReading]]:
    """All golden cases there are, through the intake, and what is kept of each by the device's key."""
    await services.intake.start()
    for place, path in enumerate(sorted(CASES.glob("*/*.json"))):
        case = json.loads(path.read_text("utf-8"))
        if "expected_error" in case or path.parent.name not in BY_NAME:
            continue
        for payload in payloads(case):
            payload.received_at = ARRIVAL + place * STEP_S
            await services.intake.take(payload)
    for summary in await services.store.devices.summaries():
        assert summary.last_seen_at is not None
        for sent in await newest_payloads(services.store, summary.device, summary.last_seen_at, 10_000):
            yield summary.device.key, sent


async def test_what_any_family_sends_passes_as_a_case_after_it_was_captured(tmp_path: Path) -> None:
    capturing, families, left_out = Capturing(), set(), []
    async with opened(tmp_path / "data") as services:
        found = [pair async for pair in every_case(services)]
        devices = {device.key: device for device in await services.store.devices.all()}
    for key, sent in found:
        try:
            case = capturing.case(devices[key], sent)
        except NotCaptured as error:
            left_out.append((sent.reading.source, sent.channel, str(error)))
            continue
        families.add(devices[key].family)
        path = tmp_path / case.name
        path.parent.mkdir(exist_ok=True)
        path.write_text(case.text(), "utf-8")
        test_cases.test_case(path)
    assert {device.family for device in devices.values()} - families <= {"craftbeerpi", "esphome"}
    others = [one for one in left_out if one[0] not in NAMES_SAY_WHAT]
    assert len(others) * 50 <= len(found), others


WIRE = {
    "JSON": (
        '{"name":"Annas-Keller","ID":5312877,"token":"s3cr3tTok","angle":52.3,"temperature":19.8,'
        '"temp_units":"C","battery":3.96,"gravity":12.48,"interval":900,"RSSI":-67, }',
        {},
    ),
    "form": (
        "Timepoint=45730.8125&SG=1.0103&Temp=66.2&Color=BLACK:F6:BD:D3:46:3A:05&Beer=Annas Hochzeit,17"
        "&Comment=anna@example.org",
        {"channel": "http /tilt", "hint": "tilt"},
    ),
    "form with a MAC without colons": (
        "Timepoint=45730.8125&SG=1.0103&Temp=66.2&Color=BLACK_F6BDD3463A05&Beer=Annas Hochzeit,17&Comment=",
        {"channel": "http /tilt", "hint": "tilt"},
    ),
    "a place": (
        '{"name":"Annas-Keller","ID":5312877,"angle":52.3,"temperature":19.8,"temp_units":"C","gravity":12.48,'
        '"location":{"lat":52.5163,"lon":13.3777},"serial":80417}',
        {},
    ),
    "line protocol": (
        'measurements,source=Annas,Keller tilt=52.3,temperature=19.8,temp_units="C",gravity=12.48,RSSI=-67',
        {"channel": "http /write", "hint": "influx"},
    ),
    "Prometheus": (
        "# TYPE gravity gauge\ngravity 12.48\n# TYPE temperature gauge\ntemperature 19.80\n",
        {
            "channel": "http /metrics/job/{job}/instance/{label}",
            "hint": "prometheus",
            "label": "Annas/Keller",
        },
    ),
    "a key in the path": (
        '{"name":"Keller","temp":20.5,"gravity":1.05,"beer":"Hochzeit"}',
        {"channel": "http /stream/{token}", "hint": "stream", "token": "s3cr3t"},
    ),
    "MQTT, one value per topic": (
        '{"tilt":"52.3","temperature":"19.8","temp_units":"C","gravity":"12.48","RSSI":"-67"}',
        {"channel": "mqtt ispindel/Annas-Keller", "driver": "ispindel", "label": "Annas-Keller"},
    ),
    "MQTT": (
        '{"name":"Annas","ID":"5312877","angle":52.3,"temperature":19.8,"gravity":12.48}',
        {"channel": "mqtt hydrometer/Keller", "label": "Keller"},
    ),
    "MQTT on a topic of one's own": (
        '{"name":"Annas","ID":"5312877","angle":52.3,"temperature":19.8,"gravity":12.48}',
        {"channel": "mqtt Keller/anna@home/x", "driver": "ispindel"},
    ),
    "MQTT with values that somebody named": (
        '{"annas_keller_gravity":"1.0456","annas_keller_temperature_c":"19.8","hochzeit_rssi":"-60"}',
        {"channel": "mqtt keller/sensor", "driver": "esphome", "label": "keller"},
    ),
    "TCP": (
        '{"name":"Annas","ID":5312877,"angle":52.3,"temperature":19.8,"gravity":12.48,"ip":"192.168.178.23"}\r\n',
        {"channel": "tcp", "hint": "ispindel"},
    ),
}


@pytest.mark.parametrize("form", WIRE)
async def test_no_file_tells_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    # Once in a great while a random pseudonym is a word that the driver reads; such a payload is left out.
    salt = SimpleNamespace(token_bytes=lambda size: bytes(range(size)))
    monkeypatch.setattr("gateway.redact.pseudonyms.secrets", salt)
    body, details = WIRE[form]
    await taken(tmp_path / "data", body, source="192.168.178.23", **details)
    await answer(tmp_path / "data", "capture --device 1 --last 5 --out", str(tmp_path / "out"))
    (path,) = files(tmp_path / "out")
    text = path.read_text("utf-8") + str(path)
    assert not [word for word in SECRET_WORDS if word.casefold() in text.casefold()], text
    test_cases.test_case(path)


@pytest.mark.parametrize(
    ("query", "channel"),
    [
        ("name=Annas&id=7f3a2c&token=s3cr3t&temperature=20.56&gravity=1.0456&gravity-unit=G", "/gravitymon"),
        ("cmd.Test=set%20Keller%2052.33%2019.81%20C%203.96%2012.48%205312877&XHR=1", "/fhem"),
    ],
)
async def test_a_query_is_captured_as_a_get(tmp_path: Path, query: str, channel: str) -> None:
    details = {"query": query, "channel": f"http {channel}", "hint": channel.strip("/")}
    await taken(tmp_path / "data", "", **details)
    await answer(tmp_path / "data", "capture --device 1 --out", str(tmp_path / "out"))
    (path,) = files(tmp_path / "out")
    case = case_in(path)
    assert (case["method"], case["body"], case["path"].partition("?")[0]) == ("GET", None, channel)
    assert not [word for word in SECRET_WORDS if word in path.read_text("utf-8")]
    test_cases.test_case(path)


async def test_a_captured_case_says_what_came_and_what_was_understood(tmp_path: Path) -> None:
    await taken(tmp_path / "data", ispindel(5312877, name="Keller[SG]", gravity="1.0450"))
    done = await answer(tmp_path / "data", "capture --device 1 --out", str(tmp_path / "out"))
    (path,) = files(tmp_path / "out")
    assert path == tmp_path / "out" / "ispindel" / "captured_20250314T193000500_1.json"
    assert done.lines == [str(path)]
    assert "Look at them before you share them" in done.err
    case = case_in(path)
    name, number = json.loads(case["body"])["name"], json.loads(case["body"])["ID"]
    assert name.endswith("[SG]")
    assert case == {
        "device": "iSpindel",
        "variant": "captured",
        "source": f"captured by hydrometer-gateway {__version__}",
        "transport": "http",
        "method": "POST",
        "path": "/ingest",
        "body": ispindel(number, name=name, gravity="1.0450"),
        "expected": {
            "name": name.removesuffix("[SG]"), "device_id": str(number), "gravity": "1.0450",
            "gravity_unit": "G", "temp": "20.5", "temp_unit": "C", "battery": 3.95, "rssi": -61,
            "angle": 45.25, "interval_s": 900,
        },
    }  # fmt: skip


async def test_only_the_last_payloads_in_the_order_of_their_arrival(tmp_path: Path) -> None:
    await taken(tmp_path / "data", *(ispindel(angle=f"4{number}.25") for number in range(10)))
    await answer(tmp_path / "data", "capture --device spindle1 --last 3 --out", str(tmp_path / "out"))
    assert [case_in(path)["expected"]["angle"] for path in files(tmp_path / "out")] == [47.25, 48.25, 49.25]


async def test_several_readings_of_one_payload_are_one_case(tmp_path: Path) -> None:
    tilt = '{"color":"Red","temp":"68.0","tempUnit":"F","gravity":"1.0450"}'
    tilts = f'{{"Red":{tilt},"Black":{tilt.replace("Red", "Black")}}}'
    details = {"channel": "http /tiltbridge", "hint": "tiltbridge"}
    await taken(tmp_path / "data", f'{{"mdns_id":"tiltbridge","tilts":{tilts}}}', **details)
    await answer(tmp_path / "data", "capture --device 1 --out", str(tmp_path / "out"))
    (path,) = files(tmp_path / "out")
    assert len(case_in(path)["expected"]) == 2
    test_cases.test_case(path)


async def test_of_a_list_each_reading_is_a_case_of_its_own(tmp_path: Path) -> None:
    await taken(tmp_path / "data", f"[{ispindel(1)},{ispindel(2)}]")
    await answer(tmp_path / "data", "capture --device spindle2 --out", str(tmp_path / "out"))
    (path,) = files(tmp_path / "out")
    assert case_in(path)["expected"]["gravity"] == "12.5"
    test_cases.test_case(path)


async def test_no_file_is_overwritten(tmp_path: Path) -> None:
    await taken(tmp_path / "data", ispindel(angle="41"), ispindel(angle="42"))
    out = tmp_path / "out"
    await answer(tmp_path / "data", "capture --device 1 --last 1 --out", str(out))
    (path,) = files(out)
    before = path.read_text()
    said = await refusal(tmp_path / "data", "capture --device 1 --last 2 --out", str(out))
    assert said == f"{path} is there already; choose another --out, or remove it first"
    assert files(out) == [path]
    assert path.read_text() == before


async def test_what_cannot_be_shown_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await taken(tmp_path / "data", ispindel(gravity="12.5"), ispindel(gravity="13.5"))
    genuine = Redactor.body
    monkeypatch.setattr(Redactor, "body", lambda self, text: genuine(self, text).replace("12.5", "12.6"))
    done = await answer(tmp_path / "data", "capture --device 1 --out", str(tmp_path / "out"))
    assert len(files(tmp_path / "out")) == 1
    assert "1 of 2 payloads left out: without its names its gravity would be another" in done.err


async def test_where_nothing_can_be_captured_it_says_so(tmp_path: Path) -> None:
    await taken(tmp_path / "data", ispindel())
    out = tmp_path / "out"
    assert await refusal(tmp_path / "data", "capture --device 7 --out", str(out)) == (
        "no device '7'; `devices list` shows them"
    )
    assert files(out) == []


async def test_beside_a_running_gateway(tmp_path: Path) -> None:
    async with gateway(tmp_path / "data") as (server, http):
        assert await post(http, server, ispindel(5312877), "/ingest/ispindel") == 200
        await answer(tmp_path / "data", "capture --device 1 --out", str(tmp_path / "out"))
    (path,) = files(tmp_path / "out")
    assert case_in(path)["path"] == "/ingest/ispindel"
    assert "5312877" not in path.read_text("utf-8")
    test_cases.test_case(path)
