"""`/manage/brewsessions/{id}/events`, and what else the page does with one brew, for anybody."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.key import Scope
from tests.cases import each
from tests.program.program import ispindel
from tests.system.api.everything import running
from tests.system.api.test_manage import Desk

EVENTS = "/manage/brewsessions/1/events"
HAND = {"kind": "hand_reading", "at": "2026-03-03T10:00:00Z", "gravity": 1.024, "temp": "19.0", "text": "tap"}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with running(tmp_path) as service:
        desk = Desk(service)
        await desk.session()
        yield desk


async def key_for(desk: Desk, scope: Scope) -> str:
    made = await desk.done("POST", "/manage/keys", {"name": scope, "scopes": [scope]})
    return str(made["keys"][0]["key"])


async def test_a_hand_reading_goes_in_and_out_by_the_api(desk: Desk) -> None:
    event = (await desk.done("POST", EVENTS, HAND))["event"]
    assert (event["kind"], event["gravity"], event["temp"]) == ("hand_reading", "1.024", "19.0")
    assert (event["instrument"], event["author"], event["sent"]) == ("Hydrometer", "test", False)
    [reading] = (await desk.done("GET", "/v1/fermentation/1"))["readings"]
    assert (reading["_id"]["$oid"], reading["source"]) == (event["reading_id"], "hand")
    assert (reading["created_at"], reading["ip"]) == ("2026-03-03T10:00:00+00:00", "127.0.0.1")
    one = f"{EVENTS}/{event['id']}"
    changed = (await desk.done("PATCH", one, {"gravity": "1.022", "temp": ""}))["event"]
    assert (changed["gravity"], changed["temp"], changed["text"]) == ("1.022", "", "tap")
    listed = await desk.done("GET", EVENTS)
    assert [found["kind"] for found in listed["events"]] == ["begun", "hand_reading"]
    assert (await desk.done("DELETE", one))["event"]["id"] == event["id"]
    assert (await desk.done("GET", "/v1/fermentation/1"))["readings"] == []


@each(
    "method, path, body, status, words",
    [
        ("POST", EVENTS, {"kind": "begun"}, 400, "kind"),
        ("POST", EVENTS, {"kind": "note", "text": "n", "at": "9999-01-01T00:00:00Z"}, 400, "future"),
        ("POST", EVENTS, {"kind": "note", "text": "n", "gravity": 1.05}, 400, "hand reading only"),
        ("POST", EVENTS, {"kind": "note", "text": "n", "colour": "red"}, 400, "colour"),
        ("POST", EVENTS, {"kind": "hand_reading", "gravity": 1e999}, 400, "gravity"),
        ("POST", EVENTS, {"kind": "hand_reading", "gravity": True}, 400, "gravity"),
        ("PATCH", f"{EVENTS}/1", {"text": "mine"}, 400, "the gateway's own"),
        ("DELETE", f"{EVENTS}/1", None, 400, "the gateway's own"),
        ("PATCH", f"{EVENTS}/99", {"text": "n"}, 404, ""),
        ("DELETE", f"{EVENTS}/99", None, 404, ""),
        ("GET", "/manage/brewsessions/9/events", None, 404, ""),
        ("PATCH", "/manage/brewsessions/1", {"og": "thick"}, 400, "og must be a gravity"),
        ("PATCH", "/manage/brewsessions/1", {"og_unit": "P"}, 400, "og_unit goes with og"),
        ("PUT", "/manage/brewsessions/1/targets/nobody", {"upstream_id": 5}, 404, ""),
        ("POST", "/manage/brewsessions", {"batchcode": "B", "device_id": 9}, 404, ""),
    ],
)
async def test_what_is_wrong_is_refused(
    desk: Desk, method: str, path: str, body: object, status: int, words: str
) -> None:
    refused, detail = await desk.refused(method, path, body)
    assert (refused, words in detail) == (status, True), detail


async def test_the_original_gravity_the_end_and_notes_are_members_of_a_brew(desk: Desk) -> None:
    path = "/manage/brewsessions/1"
    await desk.done("PATCH", path, {"og": "12.4", "og_unit": "P", "send_notes": True})
    shown = (await desk.done("GET", path))["brewsession"]
    assert (shown["og"], shown["og_unit"], shown["send_notes"]) == ("12.4", "P", True)
    note = (await desk.done("POST", EVENTS, {"kind": "note", "text": "racked"}))["event"]
    assert note["reading_id"]
    await desk.done("PATCH", path, {"og": "", "ended": True})
    shown = (await desk.done("GET", path))["brewsession"]
    assert (shown["og"], shown["phase"], shown["ended_at"] is None) == (None, "Conditioning", False)
    await desk.done("PATCH", path, {"ended": False})
    shown = (await desk.done("GET", path))["brewsession"]
    assert (shown["phase"], shown["ended_at"]) == ("Primary Fermentation", None)


async def test_new_and_next_brews_take_a_device_and_its_readings(desk: Desk) -> None:
    answer = await desk.service.ask("POST", "/ingest", data=ispindel(1, gravity="1.05").encode())
    assert answer.status == 200
    since = "2000-01-01T00:00:00Z"
    await desk.done("POST", "/manage/brewsessions", {"batchcode": "B2", "device_id": 1, "since": since})
    assert len((await desk.done("GET", "/v1/fermentation/2"))["readings"]) == 1
    theirs = await desk.account("anna")
    status, _ = await desk.refused(
        "POST", "/manage/brewsessions", {"batchcode": "A1", "device_id": 1}, key=theirs
    )
    assert status == 403
    await desk.done("POST", "/manage/brewsessions/2/next", {"batchcode": "B3", "since": since})
    assert (await desk.done("GET", "/v1/fermentation/2"))["readings"] == []
    assert len((await desk.done("GET", "/v1/fermentation/3"))["readings"]) == 1
    events = (await desk.done("GET", "/manage/brewsessions/2/events"))["events"]
    ended = next(event for event in events if event["kind"] == "ended")
    assert ended["phase"] == "Conditioning"


async def test_who_may_only_read_changes_nothing(desk: Desk) -> None:
    reader, theirs = await key_for(desk, "read"), await desk.account("anna")
    event = (await desk.done("POST", EVENTS, HAND))["event"]
    one = f"{EVENTS}/{event['id']}"
    for method, path, body in (("POST", EVENTS, HAND), ("PATCH", one, {"text": "n"}), ("DELETE", one, None)):
        assert (await desk.refused(method, path, body, key=reader))[0] == 401
        assert (await desk.refused(method, path, body, key=theirs))[0] == 404
    assert (await desk.refused("PATCH", "/manage/brewsessions/1", {"ended": True}, key=reader))[0] == 401
    assert len((await desk.done("GET", "/v1/fermentation/1"))["readings"]) == 1
