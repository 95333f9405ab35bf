"""Golden cases: every file in `cases/<driver>/` through driver and normalisation, against what it expects."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.drivers import DRIVERS, decode
from gateway.errors import DriverError
from gateway.ingest.assembler import Assembler
from gateway.normalise import normalise
from tests.drivers.messages import as_messages

CASES = Path(__file__).parent / "cases"
FILES = sorted(CASES.glob("*/*.json"))

READING_TEXT = ("name", "gravity", "gravity_unit", "temp", "temp_unit", "beer", "comment")
REPORT_ONLY = {"device_id": "stable_id", "token": "token", "interval_s": "interval_s"}


def payload_of(driver: str, case: dict[str, Any]) -> Payload:
    if "messages" in case:
        assembler = Assembler()
        groups = [
            group
            for message, (name, key) in as_messages(case["messages"])
            for group in assembler.add(name, key, message, 0.0)
        ]
        groups += assembler.due(1e9)
        assert len(groups) == 1
        return groups[0].payload()
    return Payload(case["body"].encode(), 1_741_980_600.5, "test", driver, query=case["query"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    payload = payload_of(path.parent.name, case)
    if "expected_error" in case:
        with pytest.raises(DriverError, match=case["expected_error"]):
            decode(payload)
        return
    (report,) = decode(payload)
    reading = normalise(report, Device.first_seen(report, 0), payload)
    for key, value in case["expected"].items():
        assert actual(key, report, reading) == wanted(key, value), key
    assert json.loads(reading.flags or "[]") == case["expected"].get("flags", [])


def actual(key: str, report: Report, reading: Reading) -> Any:
    if key in READING_TEXT:
        return getattr(reading, key)
    if key in REPORT_ONLY:
        return getattr(report, REPORT_ONLY[key])
    if key == "flags":
        return json.loads(reading.flags or "[]")
    return json.loads(reading.facts or "{}").get(key)


def wanted(key: str, value: Any) -> Any:
    """The specification has no null in these members: what a device did not say is empty text."""
    return "" if value is None and key in READING_TEXT else value


def test_every_driver_has_cases_and_a_broken_one() -> None:
    for driver in DRIVERS:
        files = [path for path in FILES if path.parent.name == driver.name]
        assert len(files) >= 3, driver.name
        assert any("expected_error" in path.read_text("utf-8") for path in files), driver.name
