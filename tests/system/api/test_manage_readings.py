"""`/manage/readings` and a brew session's readings over HTTP: lines, parts of a file, edits taken back."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.api.everything import Filled, Running, fill, running

READINGS = "/manage/readings"
OF_SESSION = "/manage/brewsessions/{brew_session_id}/readings"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


@pytest.fixture
async def mine(service: Running) -> Filled:
    return await fill(service.services, "owner", "MARK")


async def lines(service: Running, query: str = "", key: str | None = None) -> list[dict[str, Any]]:
    answer = await service.ask("GET", READINGS + query, key)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
    return [json.loads(line) for line in answer.body.splitlines()]


async def test_readings_are_lines_the_newest_last(service: Running, mine: Filled) -> None:
    device, session = mine.ids["device_id"], mine.ids["brew_session_id"]
    found = await lines(service)
    of_device = [reading for reading in found if reading["device_id"] == "1"]
    assert (found[-1]["brewevent_id"], found[-1]["name"]) == (int(session), "MARK")
    assert {reading["brewevent_id"] for reading in found[:-1]} == {None}
    assert await lines(service, "?last=1") == found[-1:]
    assert (await lines(service, f"?device_id={device}"), of_device[0]["name"]) == (of_device, "device1")
    assert await lines(service, f"?brew_session_id={session}") == found[-1:]
    assert await lines(service, "?last=0") == []


async def test_readings_of_another_account_are_not_among_them(service: Running, mine: Filled) -> None:
    await service.services.access.add_account("other")
    other = await fill(service.services, "other", "OTHERMARK")
    assert "OTHERMARK" not in str(await lines(service, "?last=100"))
    for query in (f"?brew_session_id={other.ids['brew_session_id']}", "?device_id=4711"):
        assert (await service.ask("GET", READINGS + query)).status == 404
    assert (await service.ask("GET", READINGS, other.key)).status == 403
    assert (await service.ask("GET", READINGS, mine.key)).status == 200
    read = await service.services.access.add("reads", frozenset({"read"}))
    for key in ("", read):
        assert (await service.ask("GET", READINGS, key)).status == 401


async def test_readings_that_cannot_be_asked_for(service: Running) -> None:
    for query in ("?last=x", "?device_id=x", "?brew_session_id=-1"):
        assert (await service.ask("GET", READINGS + query)).status == 400


async def post(service: Running, path: str, *, key: str | None = None, **body: Any) -> tuple[int, Any]:
    answer = await service.ask("POST", path, key, json=body)
    return answer.status, json.loads(answer.body)


def row(number: int, gravity: str) -> str:
    return f"{number:024x},{gravity},2026-03-0{number}\n"


HEADER = "_id,gravity,created_at\n"


async def test_a_file_in_parts_replaces_what_there_was(service: Running, mine: Filled) -> None:
    path = mine.path(OF_SESSION)
    first, second = HEADER + row(1, "1.050"), HEADER + row(2, "1.040")
    assert (await post(service, path, csv=second))[1]["imported"] == {"count": 1}
    status, answer = await post(service, path, csv=first, reset=True, later=[f"{2:024x}"])
    assert (status, answer["imported"]) == (200, {"count": 1})
    found = json.loads((await service.ask("GET", path)).body)
    assert [reading["gravity"] for reading in found] == ["1.050", "1.040"]


async def test_a_part_with_a_bad_row_changes_nothing(service: Running, mine: Filled) -> None:
    path = mine.path(OF_SESSION)
    before = (await service.ask("GET", path)).body
    bad: list[dict[str, Any]] = [
        {"csv": HEADER + row(1, "1.050") + row(2, "x"), "reset": True},
        {"csv": HEADER, "later": ["x"]},
        {"csv": HEADER, "rest": True},
        {},
    ]
    for body in bad:
        assert (await post(service, path, **body))[0] == 400
    assert (await service.ask("POST", path, data=b"{", headers={"Content-Type": "text/csv"})).status == 415
    assert (await service.ask("GET", path)).body == before


async def test_edits_are_taken_back(service: Running, mine: Filled) -> None:
    path = mine.path(OF_SESSION)
    await post(service, path, csv=HEADER + row(1, "1.050") + row(2, "1.040"), reset=True)
    await post(service, path, csv=HEADER + row(1, "1.060") + row(2, "1.030"))
    back = f"{path}/take-back"
    assert (await post(service, back, ids=[f"{1:024x}"]))[1]["readings"] == 1
    found = json.loads((await service.ask("GET", path)).body)
    assert [reading["gravity"] for reading in found] == ["1.050", "1.030"]
    status, refused = await post(service, back, ids=[f"{7:024x}"])
    assert (status, refused["detail"]) == (
        400,
        f"brew session {mine.ids['brew_session_id']} has no reading {7:024x}",
    )
    assert (await post(service, back, ids=["7"]))[0] == 400
    assert (await post(service, back))[1]["readings"] == 1
    assert (await post(service, back))[1]["readings"] == 0
