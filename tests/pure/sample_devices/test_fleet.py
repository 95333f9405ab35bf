"""The beat of a fleet, and how its devices introduce themselves."""

import json

from sample_devices.devices import Targets, simulate_fleet
from sample_devices.fleet import REAL_EVERY_S, Beat, introductions


def test_devices_begin_within_one_interval_or_so_far_apart() -> None:
    assert [Beat(4, 900).head_start_s(number, 8) for number in (0, 1, 7)] == [0, 0.5, 3.5]
    assert [Beat(4, 900, apart_s=2).head_start_s(number, 8) for number in (0, 1, 7)] == [0, 2, 14]


def test_simulated_time_is_real_time_after_the_lapse() -> None:
    beat = Beat(1, 7200, lapse_s=84)
    assert beat.at(83.9) == (1, 7200)
    assert beat.at(84) == (REAL_EVERY_S, REAL_EVERY_S)
    assert Beat(1, 7200).at(1e9) == (1, 7200)


def test_devices_introduce_themselves_as_their_reports_do() -> None:
    devices = simulate_fleet(["ispindel-http", "tiltbridge-2"], 2, 4, Targets())
    said = [json.loads(line)["device"] for line in introductions(devices)]
    assert [each["kind"] for each in said] == ["ispindel-http", "tiltbridge-2", "tiltbridge-2"]
    assert said[0]["name"] == "iSpindel400"
    assert said[1]["device_id"] != said[2]["device_id"]
