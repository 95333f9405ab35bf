"""What holds for every driver: simulated devices are read as they speak, and no bytes do any harm."""

import json
import math
import re
import sqlite3
import string
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime, timedelta, timezone
from operator import add, itemgetter
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.drivers import BY_NAME, DRIVERS, decode
from gateway.errors import DriverError
from gateway.intake.normalise import OLDEST_S, normalise
from sample_devices.devices import KINDS, Targets, simulate
from sample_devices.fermentation import DAY_S
from sample_devices.wire.report import Address, HttpReport, MqttReport, Place, Report, Said
from tests.cases import examples
from tests.pure.drivers.messages import ARRIVAL, payloads_of
from tests.pure.drivers.said import SOURCE, Values, differences, values_said
from tests.pure.drivers.test_cases import FILES, payloads

HERE = Targets(http=Address("192.168.1.50", 8080))

BEGINNINGS = st.sampled_from(string.ascii_letters)
NAMES = st.none() | st.builds(add, BEGINNINGS, st.text(string.ascii_letters + string.digits + "-äößéøč"))
"""What can be written in a topic, a path and a query as it is; other names are no matter of the device's."""

PLACES = st.builds(Place, st.integers(1, 99), st.integers(0, 900), st.integers(0, 30), NAMES)
ELAPSED_S = st.sampled_from((0.0, 900.0)) | st.floats(0, 14 * DAY_S)
EARLIER_S = st.sampled_from((-100.0, 0.0, DAY_S, 2 * OLDEST_S, ARRIVAL - 60)) | st.floats(0, OLDEST_S)
"""How much earlier than its arrival a report was made, by the device's clock."""

ZONES = st.sampled_from((-570, -300, 0, 60, 765)).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(0.4))
@given(place=PLACES, elapsed_s=ELAPSED_S, earlier_s=EARLIER_S, zone=ZONES)
def test_what_a_simulated_device_says_is_read(
    kind: str, place: Place, elapsed_s: float, earlier_s: float, zone: timezone
) -> None:
    report = simulate(kind, place, HERE).report(elapsed_s, datetime.fromtimestamp(ARRIVAL - earlier_s, zone))
    found = sorted(read(kind, report), key=itemgetter(0))
    wanted = sorted(((said_values(kind, said), asdict(said)) for said in report.said), key=itemgetter(0))
    assert [values for values, _ in found] == [values for values, _ in wanted]
    for (_, reading), (_, said) in zip(found, wanted, strict=True):
        assert list(differences(kind, said, reading, ARRIVAL, tolerance_s=0)) == []


def said_values(kind: str, said: Said) -> Values:
    return values_said(kind, said.name, said.gravity, said.gravity_unit, said.temp, said.temp_unit)


def read(kind: str, report: Report) -> Iterator[tuple[Values, dict[str, Any]]]:
    """What becomes of it, with the further members that `readings --json` gives."""
    for payload in delivered(kind, report):
        for one in decode(payload).reports:
            reading, _ = normalise(one, Device.first_seen(one, 0), payload)
            said = (reading.gravity, reading.gravity_unit, reading.temp, reading.temp_unit)
            words = {"device_id": one.stable_id, "beer": reading.beer, "comment": reading.comment}
            yield (
                Values(reading.name, *said),
                json.loads(reading.facts or "{}") | words | {"created_at": reading.created_at},
            )


def delivered(kind: str, report: Report) -> list[Payload]:
    """As HTTP, TCP and MQTT parts hand it over, with no options but those that the kind needs."""
    if isinstance(report, MqttReport):
        sent = [{"topic": m.topic, "payload": m.payload.decode()} for m in report.messages]
        return payloads_of(sent, KINDS[kind].needs.split()[1::2])
    if isinstance(report, HttpReport):
        return [as_taken(report.request)]
    (payload,) = payloads({"transport": "tcp", "body": report.data.decode()})
    return [replace(payload, source=SOURCE)]


def as_taken(request: bytes) -> Payload:
    """As the HTTP part takes it: a key of a service and RAPT's parameters may come as headers."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    headers = dict(field.split(": ", 1) for field in fields)
    path = line.partition(" ")[2].rpartition(" ")[0]
    (payload,) = payloads({"transport": "http", "path": path, "body": body.decode()})
    driver = BY_NAME.get(payload.driver or payload.hint or "")
    beside = {} if driver is None else {name: headers[name] for name in headers.keys() & driver.parameters}
    return replace(
        payload,
        source=SOURCE,
        token=payload.token or headers.get("X-THINGSPEAKAPIKEY", ""),
        query="&".join(filter(None, (payload.query, urlencode(beside, quote_via=quote)))),
    )


KEYS = (Path(__file__).parent / "keys.txt").read_text("utf-8").split()
"""devices section 13, and the words by which payloads are recognised."""

NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from(
        ["", "null", "nan", "1,050", "1e999", "-127", "185", "9" * 31, "1.2.3", "45730.8", "٣", "\x00"]
    ),
    st.decimals().map(str),
)
WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["RED", "red:F6:BD", "C", "F", "K", "P", "SG", "iSpindel [SG]", "2025-03-14T18:30:00", "\ud800"]
    ),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=12)
PAIRS = st.lists(st.tuples(st.sampled_from(KEYS), st.one_of(NUMBERS, WORDS)), max_size=10)

BODIES = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
    OBJECTS.map(lambda value: json.dumps(value).encode()),
    OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    st.lists(OBJECTS, max_size=4).map(lambda value: json.dumps(value).encode()),
    PAIRS.map(
        lambda pairs: "&".join(f"{key}={value}" for key, value in pairs).encode("utf-8", "surrogatepass")
    ),
    PAIRS.map(
        lambda pairs: ("m,host=a " + ",".join(f"{k}={v}" for k, v in pairs)).encode("utf-8", "replace")
    ),
    PAIRS.map(
        lambda pairs: "".join(f"# TYPE {key} gauge\n{key} {value}\n" for key, value in pairs).encode(
            "utf-8", "replace"
        )
    ),
    PAIRS.map(lambda pairs: ("T: 20 " + " ".join(f"{k}: {v}" for k, v in pairs)).encode("utf-8", "replace")),
)
ANY_DRIVER = st.sampled_from([None, *(driver.name for driver in DRIVERS)])

SOUND = [
    payload
    for path in FILES
    for payload in payloads(json.loads(path.read_text("utf-8")))
    if payload.body or payload.query
]
"""What the golden cases are made of."""

COLUMNS = Reading._fields
TABLE = sqlite3.connect(":memory:", check_same_thread=False)
TABLE.execute(f"CREATE TEMP TABLE readings ({', '.join(COLUMNS)})")
INSERT = f"INSERT INTO readings VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608

NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")


@example(body=b"angle=0", driver=None, hint="ispindel", label="\x00", query="")
@example(body=b"angle=0", driver=None, hint="ispindel", label="\ud800", query="")
@given(
    body=BODIES, driver=ANY_DRIVER, hint=ANY_DRIVER, label=st.text(max_size=10), query=st.text(max_size=30)
)
def test_any_bytes_give_what_can_be_stored_or_a_driver_error(
    body: bytes, driver: str | None, hint: str | None, label: str, query: str
) -> None:
    storable(Payload(body, ARRIVAL, "test", driver, query=query, label=label, hint=hint))


@given(sound=st.sampled_from(SOUND), data=st.data())
def test_golden_cases_with_a_fault_give_what_can_be_stored_or_a_driver_error(
    sound: Payload, data: st.DataObject
) -> None:
    body = bytearray(sound.body or sound.query.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(0, len(body) - 1)))
        match data.draw(st.sampled_from(["flip", "cut", "insert", "number"])):
            case "flip" if body:
                body[place] = data.draw(st.integers(0, 255))
            case "cut":
                del body[place : place + data.draw(st.integers(1, 20))]
            case "insert":
                body[place:place] = data.draw(st.binary(max_size=5))
            case "number" if found := NUMBER.search(bytes(body), place):
                body[found.start() : found.end()] = str(data.draw(NUMBERS)).encode("utf-8", "surrogatepass")
    broken(sound, bytes(body))


@pytest.mark.parametrize("driver", sorted(BY_NAME))
def test_golden_cases_cut_at_any_byte_give_what_can_be_stored_or_a_driver_error(driver: str) -> None:
    for path in FILES:
        if path.parent.name == driver:
            for sound in payloads(json.loads(path.read_text("utf-8"))):
                whole = sound.body or sound.query.encode()
                for length in range(len(whole)):
                    broken(sound, whole[:length])


def broken(sound: Payload, body: bytes) -> None:
    """The same delivery with these bytes in the place of its own."""
    if sound.body:
        storable(replace(sound, body=body, fields=None))
    else:
        storable(replace(sound, query=body.decode("utf-8", "replace"), fields=None))


def storable(payload: Payload) -> None:
    """Decode it; what comes out is text and numbers that SQLite and JSON keep."""
    try:
        reports = decode(payload).reports
    except DriverError:
        return
    for report in reports:
        for device in (Device.first_seen(report, 0), replace(Device.first_seen(report, 0), gravity_unit="P")):
            reading, _ = normalise(report, device, payload)
            TABLE.execute(INSERT, reading)
            for text in (reading.gravity, reading.temp):
                assert text == "" or math.isfinite(float(text))
            assert (reading.gravity_unit in "GP", reading.temp_unit in "CF") == (True, True)
            for number in (reading.sg, reading.celsius):
                assert number is None or math.isfinite(number)
            for members in (reading.facts, reading.flags, reading.extra):
                assert members is None or json.loads(members, parse_constant=refused) is not None
            assert ARRIVAL - OLDEST_S - 1 <= reading.created_at <= ARRIVAL + OLDEST_S
            assert not any(isinstance(value, str) and "\x00" in value for value in reading)
        assert "\x00" not in report.stable_id.encode().decode()


def refused(word: str) -> NoReturn:
    raise AssertionError(f"{word} is no JSON")


BODY_BYTES = 64 * 1024
LONGEST_S = 0.05
BUSY = 5
"""How much slower a machine may be that runs other things, too."""

OWN_PARSERS = (None, "esphome", "fhem", "influx", "ispindel", "prometheus", "rapt", "tcontrol", "tilt")

HOSTILE = {
    "quotes": (b'{"a":', b'"'),
    "escaped quotes": (b'{"a":"', b'\\"'),
    "objects in a list": (b"[", b'{"gravity":1.05,"temperature":20,"angle":30},'),
    "brackets": (b'{"a":', b"["),
    "members": (b"{", b'"gravity":nan,'),
    "per cent": (b"Color=RED&SG=1.05&Temp=68&Comment=", b"%"),
    "ampersands": (b"Color=RED", b"&Comment"),
    "escaped blanks": (b"m ", b"a\\ =1,"),
    "tags": (b"m", b",a=b"),
    "lines": (b"", b"m,host=a gravity=1.05,temp=20\n"),
    "commas and blanks": (b"m,h=a g=", b", "),
    "samples": (b"# TYPE gravity gauge\n", b'gravity{a="b"} 1\n'),
    "labels": (b"# TYPE gravity gauge\ngravity{", b'a="b",'),
    "words": (b"cmd.Test=set ", b"a "),
    "letters": (b"", b"T: 1 D: 2 "),
}
"""How a body begins and what it repeats: the worst found among some thousand beginnings, pieces and ends."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_large_body_takes_no_long_time(name: str) -> None:
    beginning, piece = HOSTILE[name]
    body = beginning + piece * (BODY_BYTES // len(piece))
    for driver in OWN_PARSERS:
        shortest = math.inf
        for _ in range(3):
            shortest = min(shortest, seconds_for(body, driver))
            if shortest < LONGEST_S:
                break
        assert shortest < BUSY * LONGEST_S, driver


def seconds_for(body: bytes, driver: str | None) -> float:
    begun = time.process_time()
    storable(Payload(body[:BODY_BYTES], ARRIVAL, "http /ingest", driver))
    return time.process_time() - begun
