"""Golden cases: every file in `cases/<driver>/` by its address through driver and normalisation."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.drivers import BY_NAME, DRIVERS, decode
from gateway.drivers.addresses import of_path
from gateway.errors import DriverError
from gateway.intake.normalise import normalise
from tests.pure.drivers.messages import ARRIVAL, payloads_of

CASES = Path(__file__).parent / "cases"
FILES = sorted(CASES.glob("*/*.json"))

READING_TEXT = ("name", "gravity", "gravity_unit", "temp", "temp_unit", "beer", "comment")
REPORT_ONLY = {"device_id": "stable_id", "token": "token", "interval_s": "interval_s"}


def payloads(case: dict[str, Any]) -> list[Payload]:
    """As HTTP, TCP and MQTT parts build them from what is on the wire."""
    if case["transport"] == "mqtt":
        return payloads_of(case["messages"])
    body = (case["body"] or "").encode()
    if case["transport"] == "tcp":
        return [Payload(body, ARRIVAL, "tcp", hint="ispindel")]
    path, _, query = case["path"].partition("?")
    payload = Payload(body, ARRIVAL, f"http {path}", query=query)
    own, _, driver = path.strip("/").partition("/")
    if own == "ingest" or not own:
        payload.driver = driver or None
        return [payload]
    address = of_path(DRIVERS, "/" + path.lstrip("/"))
    assert address is not None, f"no driver has the path {path}"
    payload.hint, payload.label, payload.token = address.driver.name, address.label, address.token
    return [payload]


def expected_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    expected = case["expected"]
    if expected is None:
        return []
    return expected if isinstance(expected, list) else [expected]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    delivered = payloads(case)
    if "expected_error" in case:
        with pytest.raises(DriverError, match=case["expected_error"]):
            decode(delivered[0])
        return
    found = [(report, payload) for payload in delivered for report in decode(payload).reports]
    assert len(found) == len(expected_of(case))
    for (report, payload), expected in zip(found, expected_of(case), strict=True):
        assert report.family == path.parent.name
        reading, _ = normalise(report, Device.first_seen(report, 0), payload)
        for key, value in expected.items():
            if key == "temp_unit" and value is None:
                assert report.temp_unit is None  # the wire does not say it, the reading needs one
                continue
            assert actual(key, report, reading) == wanted(key, value), key
        assert json.loads(reading.flags or "[]") == expected.get("flags", [])
        again = read_again(report, payload)
        assert (again.gravity, again.temp, again.name) == (report.gravity, report.temp, report.name)


def read_again(report: Report, payload: Payload) -> Report:
    """As history is read again: from the raw bytes, for the device that they were of."""
    raw = Payload(
        payload.body or payload.query.encode(), ARRIVAL, "", driver=report.family, label=report.stable_id
    )
    [again] = [other for other in decode(raw).reports if other.device_key == report.device_key]
    return again


def actual(key: str, report: Report, reading: Reading) -> Any:
    if key in READING_TEXT:
        return getattr(reading, key)
    if key in REPORT_ONLY:
        return getattr(report, REPORT_ONLY[key])
    if key == "flags":
        return json.loads(reading.flags or "[]")
    if key == "created_at":
        return datetime.fromtimestamp(reading.created_at, UTC).isoformat().replace("+00:00", "Z")
    return json.loads(reading.facts or "{}").get(key)


def wanted(key: str, value: Any) -> Any:
    """The specification has no null in these members: what a device did not say is empty text."""
    return "" if value is None and key in READING_TEXT else value


def test_every_driver_has_cases_and_a_broken_one() -> None:
    for driver in DRIVERS:
        files = [path for path in FILES if path.parent.name == driver.name]
        assert len(files) >= 2, driver.name
        assert any("expected_error" in path.read_text("utf-8") for path in files), driver.name


def test_every_folder_of_cases_has_its_driver() -> None:
    assert {path.parent.name for path in FILES} == set(BY_NAME)
