"""The firmwares' rules for a yes: over status number, reason phrase and body of an HTTP answer."""

import json
from collections.abc import Callable

Rule = Callable[[int, str, bytes], bool]


def exactly_200(status: int, phrase: str, body: bytes) -> bool:
    """Take 200 and nothing else, as GravityMon does; our default also where a firmware does not look."""
    return status == 200


def no_content(status: int, phrase: str, body: bytes) -> bool:
    """Take 204 only: GravityMon's InfluxDB target."""
    return status == 204


def accepted(status: int, phrase: str, body: bytes) -> bool:
    """Take 202 only: iSpindel's Prometheus target."""
    return status == 202


def any_2xx(status: int, phrase: str, body: bytes) -> bool:
    """Take every 2xx: what raises for status, as tilt-pitch does with requests."""
    return status // 100 == 2


def entry_number(status: int, phrase: str, body: bytes) -> bool:
    """Take 200 with a number that is not 0: mathworks/thingspeak-arduino, `finishWrite`."""
    return status == 200 and body.strip().isdigit() and int(body) != 0


def text_200_ok(status: int, phrase: str, body: bytes) -> bool:
    """Take the status line's text `200 OK` only: TiltBridge 1.0 and Brew Bubbles."""
    return (status, phrase) == (200, "OK")


def result_or_beername(status: int, phrase: str, body: bytes) -> bool:
    """Take a JSON object with `result` or `beername`, whatever the status: the Tilt app."""
    try:
        said = json.loads(body)
    except ValueError:
        return False
    return isinstance(said, dict) and not said.keys().isdisjoint({"result", "beername"})


def result_success(status: int, phrase: str, body: bytes) -> bool:
    """Take 200 with `result` being `ok` or `success`: Home Assistant's Brewfather add-on."""
    try:
        said = json.loads(body)
    except ValueError:
        return False
    return status == 200 and isinstance(said, dict) and said.get("result") in {"ok", "success"}
