"""A TiltBridge 2 with the Fermentrack 2 target, over real sockets: it goes on only after right answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.system.transports import test_http
from tests.system.transports.test_http import Bench

bench = test_http.bench
from_the_internet = test_http.from_the_internet

GUID = "64B708A1C3F02D11"
ID_CHARACTERS, RESPONSE_BYTES = 39, 1_023

TILT = {
    "color": "Red", "temp": "68.0", "tempUnit": "F", "uncalibratedGravity": "1.0450",
    "calibratedGravity": "1.0462", "latestGravity": "1.0451", "weeks_on_battery": 3, "sends_battery": True,
    "high_resolution": False, "fwVersion": 1005, "rssi": -71, "mac": "f6:bd:02:01:00:00",
    "gsheets_name": "", "gsheets_link": "",
}  # fmt: skip

PATH = "/api/tiltbridge/device"


class Bridge:
    """The state machine of src/targets/fermentrack_2.cpp: registers until it has an id, then reports."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.device_id = self.api_key = ""
        self.has_messages = False

    async def ask(self, method: str, path: str, said: dict[str, Any]) -> dict[str, Any]:
        answer = await self._bench.client.request(method, PATH + path, json=said)
        text = await answer.text()
        assert 200 <= answer.status <= 204
        assert len(text) <= RESPONSE_BYTES
        found: dict[str, Any] = json.loads(text)
        return found

    async def send(self, *tilts: dict[str, Any]) -> bool:
        """One round; whether the bridge takes its reading for taken."""
        if not self.device_id:
            said = {"guid": GUID, "username": "anna", "hardware": "D32 Pro TFT", "version": "2.0.0"}
            answer = await self.ask("PUT", "/register/", said)
            if answer["success"] is not True:
                return False
            self.device_id, self.api_key = answer["deviceID"], answer["apiKey"]
        ids = {"apiKey": self.api_key, "deviceID": self.device_id}
        answer = await self.ask("PUT", "/status/", {**ids, "tilts": tilts, "version": "2.0.0"})
        self.has_messages = answer["has_messages"]
        return answer["success"] is True


async def test_it_registers_and_its_readings_are_stored(bench: Bench) -> None:
    bridge = Bridge(bench)
    assert await bridge.send(TILT)
    assert 0 < len(bridge.device_id) <= ID_CHARACTERS
    assert 0 < len(bridge.api_key) <= ID_CHARACTERS
    assert bridge.has_messages is False
    assert await bridge.send(TILT | {"calibratedGravity": "1.0440", "temp": "67.0"})
    lines = await bench.lines()
    assert [(line["gravity"], line["temp"], line["temp_unit"]) for line in lines] == [
        ("1.0462", "68.0", "F"), ("1.0440", "67.0", "F"),
    ]  # fmt: skip
    (device,) = await bench.store.devices.all()
    assert device.key == "mac:f6bd02010000"


async def test_the_same_bridge_gets_the_same_id_again(bench: Bench) -> None:
    first, second = Bridge(bench), Bridge(bench)
    assert await first.send()
    assert await second.send()
    assert first.device_id == second.device_id


async def test_what_holds_no_reading_is_a_yes_too(bench: Bench) -> None:
    assert await Bridge(bench).send()
    assert await bench.lines() == []
    assert await bench.store.quarantine.count() == 0


async def test_what_is_not_understood_is_kept_and_a_yes(bench: Bench) -> None:
    assert await Bridge(bench).send({"color": "Red"})
    assert await bench.store.quarantine.count() == 1


@pytest.mark.parametrize("said", ["{}", "", "no JSON", '{"guid": ""}', "[]"])
async def test_a_registration_without_a_guid_is_refused_in_the_bridges_words(bench: Bench, said: str) -> None:
    answer = await bench.client.put(f"{PATH}/register/", data=said)
    found = await answer.json()
    assert (answer.status, found["success"], found["msg_code"]) == (200, False, 1)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/messages/?deviceID=x&apiKey=y"),
        ("PATCH", "/messages/"),
        ("GET", "/tilt/cal/coefficients/?deviceID=x&apiKey=y&color=Red"),
        ("PATCH", "/tilt/cal/coefficients/"),
        ("GET", "/tilt/cal/points/?deviceID=x&apiKey=y&color=Red"),
        ("PUT", "/tilt/cal/points/"),
        ("POST", "/tilt/cal/point/"),
        ("DELETE", "/tilt/cal/point/"),
    ],
)
async def test_its_other_questions_leave_nothing_behind(bench: Bench, method: str, path: str) -> None:
    found = await Bridge(bench).ask(method, path, {"apiKey": "y", "deviceID": "x", "color": "Red"})
    assert isinstance(found["success"], bool)
    assert found.get("coefficients") is None
    assert found.get("points") is None
    assert await bench.lines() == []
    assert await bench.store.quarantine.count() == 0


async def test_a_stranger_gets_no_id(bench: Bench, from_the_internet: None) -> None:
    answer = await bench.client.put(f"{PATH}/register/", json={"guid": GUID})
    assert answer.status == 401


async def test_google_sheets_hears_doclongurl_whatever_becomes_of_the_reading(bench: Bench) -> None:
    """The bridge compares it with `strcmp`, and a null pointer restarts it."""
    sheet = {"Beer": "IPA", "Temp": "abc", "SG": "", "Color": "Red", "Comment": "", "tzOffset": 1}
    answer = await bench.client.post("/ingest/tilt", json=sheet)
    assert (await answer.json())["doclongurl"] == ""
    assert await bench.store.quarantine.count() == 1


def test_the_cases_hold_what_this_bridge_sends() -> None:
    case = json.loads(
        (
            Path(__file__).parents[2]
            / "pure/drivers/cases/tiltbridge/v2_fermentrack_2_two_of_one_colour.json"
        ).read_text()
    )
    assert json.loads(case["body"])["tilts"][0].keys() == TILT.keys()
