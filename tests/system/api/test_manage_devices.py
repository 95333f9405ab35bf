"""`/manage/devices`: with an admin key of the owner's, and never with another."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.payload import Payload
from tests.keys import allow_wrong_keys
from tests.system.api.everything import running
from tests.system.api.test_manage import Desk

MOMENT = 1_772_616_600.0
ISO = "2026-03-04T09:30:00+00:00"
LATER = "2026-03-04T09:30:30Z"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """Two iSpindels: `red` (1) with three readings, a minute apart, and `blue` (2) with one."""
    async with running(tmp_path) as service:
        for number, (name, key) in enumerate([("red", 11), ("red", 11), ("red", 11), ("blue", 12)]):
            report = {"name": name, "ID": key, "angle": 30 + number, "temperature": 20, "gravity": 1.05}
            body, at = json.dumps(report).encode(), MOMENT + 60 * number
            await service.services.intake.take(Payload(body, at, "http /ingest", driver="ispindel"))
        yield Desk(service)


async def test_devices_are_listed_and_found(desk: Desk) -> None:
    listed = await desk.done("GET", "/manage/devices")
    assert listed["count"] == 2
    red, blue = listed["devices"]
    assert (red["id"], red["key"], red["name"], red["readings"]) == (1, "ispindel:11", "red", 3)
    assert (blue["first_seen_at"], blue["last_gravity"]) == ("2026-03-04T09:33:00+00:00", "1.05")
    for word in ("red", "11", "ispindel:11", "1"):
        assert (await desk.done("GET", f"/manage/devices?find={word}"))["devices"] == [red]
    assert (await desk.refused("GET", "/manage/devices?find=green"))[0] == 404
    await desk.done("PATCH", "/manage/devices/2", {"label": "red"})
    status, detail = await desk.refused("GET", "/manage/devices?find=red")
    assert (status, detail.startswith("'red' is ambiguous")) == (409, True)


async def test_what_is_set_is_shown_and_taken_back(desk: Desk) -> None:
    done = await desk.done("PATCH", "/manage/devices/1", {"label": "fermenter 1", "gravity_unit": "P"})
    assert done == {"readings": 3, "changed": 3}
    shown = (await desk.done("GET", "/manage/devices/1"))["device"]
    assert (shown["label"], shown["settings"]["gravity_unit"], shown["kind"]) == (
        "fermenter 1",
        "P",
        "iSpindel",
    )
    assert shown["inferred"]["gravity_unit"]["value"] == "P"
    await desk.done("PATCH", "/manage/devices/1", {"label": "", "gravity_unit": "auto"})
    settings = (await desk.done("GET", "/manage/devices/1"))["device"]["settings"]
    assert (settings["label"], settings["gravity_unit"], settings["interval_s"]) == ("", None, None)
    assert await desk.done("PATCH", "/manage/devices/1", {}) == {"readings": 0, "changed": 0}


@pytest.mark.parametrize(
    ("method", "path", "body", "detail"),
    [
        ("PATCH", "1", {"gravity_unit": "X"}, "gravity_unit must be G, P or auto, not 'X'"),
        ("PATCH", "1", {"label": None}, "label is null; leave it out instead"),
        ("PATCH", "1", {"labl": "x"}, "labl: "),
        ("PATCH", "1", {"label": "x" * 65}, "a label is text of at most 64 characters"),
        ("PATCH", "1", {"interval_s": 5}, "an interval is more than 10 and less than 86400 seconds"),
        ("PATCH", "1/calibration", {"temp_offset": 90}, "The temperature offset is between -20 and 20"),
        ("PATCH", "1/calibration", {"curve": [1, 2], "points": [[1, 1]]}, "a curve is given, or points"),
        ("PATCH", "1/calibration", {"points": [[25, 1.0]]}, "A curve needs at least two points"),
        ("POST", "1/calibration/fit", {"points": [[25, 5]]}, "A gravity is between 0.95 and 1.25 SG"),
        ("POST", "1/exclusions", {"to": ISO}, "from: "),
        ("POST", "1/exclusions", {"from": "soon"}, "from must be a time"),
        ("POST", "1/exclusions", {"from": LATER, "to": ISO}, "the span ends before it begins"),
        ("DELETE", "1/exclusions?from=soon", None, "from must be a time"),
        ("DELETE", "1/exclusions", None, "nothing is excluded there"),
        ("PUT", "1/brewsession", {}, "brew_session_id: "),
        ("POST", "1/merge", {"other": 1}, "device 1 is one device already"),
    ],
)
async def test_what_cannot_be_set_is_refused(
    desk: Desk, method: str, path: str, body: object, detail: str
) -> None:
    status, words = await desk.refused(method, f"/manage/devices/{path}", body)
    assert (status, words[: len(detail)]) == (400, detail)


async def test_a_calibration_is_fitted_set_and_cleared(desk: Desk) -> None:
    points = [[25, 1.0], [45, 1.04], [65, 1.08]]
    fit = await desk.done("POST", "/manage/devices/1/calibration/fit", {"points": points, "degree": 1})
    assert (fit["points"], fit["valid_deg"]) == (points, [25, 65])
    assert fit["curve"] == pytest.approx([0.95, 0.002])
    assert (await desk.done("GET", "/manage/devices/1"))["device"]["settings"]["calibration"]["curve"] == []
    path = "/manage/devices/1/calibration"
    assert (await desk.done("PATCH", path, {"points": points, "degree": 1}))["changed"] == 3
    # A new point at an old angle replaces it, and the degree stays.
    again = await desk.done("POST", f"{path}/fit", {"points": [[25, 1.001]]})
    assert again["points"] == [[25, 1.001], *points[1:]]
    assert len(again["curve"]) == 2
    await desk.done("PATCH", path, {"gravity_offset": 0.001, "corrected_at_c": 20})
    settings = (await desk.done("GET", "/manage/devices/1"))["device"]["settings"]["calibration"]
    assert (settings["points"], settings["corrected_at_c"]) == (points, 20)
    await desk.done("PATCH", path, {"corrected_at_c": "off"})
    await desk.done("PATCH", path, {"curve": [-1.0, 0.5], "curve_unit": "P"})
    settings = (await desk.done("GET", "/manage/devices/1"))["device"]["settings"]["calibration"]
    assert (settings["points"], settings["degree"], settings["corrected_at_c"]) == ([], None, None)
    assert (settings["gravity_offset"], settings["curve_unit"]) == (0.001, "P")
    await desk.done("PATCH", path, {"clear": True})
    settings = (await desk.done("GET", "/manage/devices/1"))["device"]["settings"]["calibration"]
    assert (settings["curve"], settings["gravity_offset"]) == ([], 0)


async def test_spans_are_excluded_and_taken_back(desk: Desk) -> None:
    path = "/manage/devices/1/exclusions"
    assert (await desk.done("POST", path, {"from": ISO, "to": LATER}))["changed"] == 1
    assert (await desk.done("POST", path, {"from": "2026-03-04T09:32:00"}))["changed"] == 1
    spans = (await desk.done("GET", "/manage/devices/1"))["device"]["settings"]["excluded"]
    assert spans == [[1_772_616_600, 1_772_616_630], [1_772_616_720, 2**40]]
    assert (await desk.done("DELETE", f"{path}?to={LATER}"))["changed"] == 1
    assert (await desk.done("DELETE", path))["changed"] == 1


async def test_a_device_is_put_into_a_brew_session_and_out_of_it(desk: Desk) -> None:
    first, second = await desk.session(), await desk.session(batchcode="HP002")
    path = "/manage/devices/1/brewsession"
    done = await desk.done("PUT", path, {"brew_session_id": first["id"]})
    assert done == {
        "device": "red",
        "brew_session": {"id": 1, "batchcode": "HP001"},
        "before": None,
        "claimed": 0,
        "unassigned": 3,
        "nowhere": None,
    }
    since = "2026-03-04T09:31:00Z"
    done = await desk.done("PUT", path, {"brew_session_id": second["id"], "since": since})
    assert (done["before"]["id"], done["claimed"], done["unassigned"]) == (1, 2, 1)
    assert (await desk.done("GET", "/manage/devices/1"))["device"]["session"] == 2
    assert await desk.done("POST", "/manage/devices/1/resend", {"since": since}) == {"readings": 2}
    assert await desk.done("DELETE", path) == {}
    assert (await desk.done("GET", "/manage/devices/1"))["device"]["session"] is None
    assert (await desk.refused("PUT", path, {"brew_session_id": 9}))[0] == 404


async def test_two_devices_become_one(desk: Desk) -> None:
    path = "/manage/devices/1/merge"
    plan = await desk.done_without_message("POST", path, {"other": 2, "dry_run": True})
    assert (plan["into"]["id"], plan["other"]["key"]) == (1, "ispindel:12")
    assert (await desk.done("GET", "/manage/devices"))["count"] == 2
    assert await desk.done_without_message("POST", path, {"other": 2}) == plan
    [device] = (await desk.done("GET", "/manage/devices"))["devices"]
    assert (device["merged_in"], device["readings"]) == (["ispindel:12"], 4)
    assert (await desk.refused("POST", path, {"other": 2}))[0] == 404


EVERY = [
    ("GET", "", None),
    ("GET", "/1", None),
    ("PATCH", "/1", {}),
    ("POST", "/1/calibration/fit", {}),
    ("PATCH", "/1/calibration", {}),
    ("POST", "/1/exclusions", {"from": ISO}),
    ("DELETE", "/1/exclusions", None),
    ("PUT", "/1/brewsession", {"brew_session_id": 1}),
    ("DELETE", "/1/brewsession", None),
    ("POST", "/1/resend", {}),
    ("POST", "/1/merge", {"other": 2}),
]


async def test_only_the_owner_with_an_admin_key_may(desk: Desk) -> None:
    allow_wrong_keys(desk.service.services.access)
    theirs = await desk.account("anna")
    made = await desk.done("POST", "/manage/keys", {"name": "phone", "scopes": ["read", "ingest"]})
    narrow, wrong = made["keys"][0]["key"], []
    for method, path, body in EVERY:
        for key, status in ((theirs, 403), (narrow, 401), ("", 401)):
            answer = await desk.send(method, f"/manage/devices{path}", body, key=key)
            if answer.status != status:
                wrong.append((method, path, key, answer.status))
        if "1" in path:
            there = await desk.send(method, f"/manage/devices{path.replace('1', '9', 1)}", body)
            if there.status != 404:
                wrong.append((method, path, "no such device", there.status))
    assert wrong == []
    listed = (await desk.done("GET", "/manage/devices"))["devices"]
    assert [(one["readings"], one["session"]) for one in listed] == [(3, None), (1, None)]


async def test_a_preview_of_a_calibration_is_what_is_stored_afterwards(desk: Desk) -> None:
    path, body = "/manage/devices/1/calibration", {"points": [[25, 1.0], [65, 1.08]], "temp_offset": -0.5}
    shown = await desk.done("PATCH", path, {**body, "preview": True})
    assert (shown["readings"], shown["changed"], len(shown["fit"]["residuals"])) == (3, 3, 2)
    assert shown["before"] == {
        "t": [1_772_616_600, 1_772_616_660, 1_772_616_720],
        "sg": [1.05] * 3,
        "temp": [20.0] * 3,
    }
    assert (await desk.done("GET", "/manage/devices/1"))["device"]["settings"]["calibration"]["points"] == []
    await desk.done("PATCH", path, body)
    again = await desk.done("PATCH", path, {"preview": True, "gravity_offset": 0.0})
    assert (again["changed"], again["before"]) == (0, shown["after"])
    assert (await desk.done("GET", "/manage/devices/1"))["device"]["last_facts"]["angle"] == 32
    taken_back = await desk.done("PATCH", path, {"clear": True, "preview": True})
    assert taken_back["after"] == shown["before"]


async def test_a_preview_of_a_span_counts_its_readings(desk: Desk) -> None:
    path, span = "/manage/devices/1/exclusions", {"from": ISO, "to": LATER}
    shown = await desk.done("POST", path, {**span, "preview": True})
    assert (shown["left_out"], shown["changed"], shown["after"]["sg"]) == (1, 1, [None, 1.05, 1.05])
    assert (await desk.done("GET", "/manage/devices/1"))["device"]["settings"]["excluded"] == []
    assert (await desk.done("POST", path, span))["changed"] == 1
    assert (await desk.refused("POST", path, {"from": LATER, "to": ISO, "preview": True}))[0] == 400
