"""Series over HTTP: columns of equal length, spans and points, and who may see which device."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.payload import Payload
from tests.program.program import ispindel
from tests.system.api.everything import Filled, Running, fill, running

OF_SESSION, OF_DEVICE = "/manage/brewsessions/{brew_session_id}/series", "/manage/devices/{device_id}/series"
NOON = 1_772_625_600
"""2026-03-04T12:00:00Z."""


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


@pytest.fixture
async def mine(service: Running) -> Filled:
    """An account with a brew, and a device in it that reported every hour for two days."""
    mine = await fill(service.services, "owner", "MARK")
    await service.services.brewsessions.assign(mine.ids["device_id"], int(mine.ids["brew_session_id"]), None)
    for hour in range(48):
        body = ispindel(1, name="device1", gravity=f"1.0{60 - hour}").encode()
        await service.services.intake.take(Payload(body, NOON + hour * 3600, "http /ingest"))
    return mine


async def get(service: Running, path: str, key: str | None = None) -> tuple[int, Any]:
    answer = await service.ask("GET", path, key)
    return answer.status, json.loads(answer.body)


async def test_a_series_is_made_of_columns(service: Running, mine: Filled) -> None:
    path = mine.path(OF_SESSION)
    status, found = await get(service, f"{path}?from=2026-03-04&to=2026-03-05")
    assert (status, found["message"], found["width_s"], found["interval_s"]) == (200, "success", 0, 3600)
    assert (found["from"], found["to"]) == (NOON - 12 * 3600, NOON + 36 * 3600 - 1), "the whole last day"
    (line,) = found["lines"]
    assert (line["device_id"], line["name"]) == (int(mine.ids["device_id"]), "device1")
    assert line["t"] == [NOON + hour * 3600 for hour in range(36)]
    assert {len(column) for column in line.values() if isinstance(column, list)} == {36}
    assert (line["sg"][:2], line["left_out"]) == ([1.06, 1.059], [0] * 36)
    status, found = await get(service, f"{path}?from=2026-03-04T12:00:00Z&points=10&to=2026-03-06T12:00:00Z")
    (line,) = found["lines"]
    assert (found["width_s"], sum(line["n"]), len(line["t"])) == (17281, 48, 11)
    assert (found["hand"], found["fg"], found["left_out"]) == ([], None, [])
    assert found["og"] == {"sg": 1.0575, "from": "measured"}


async def test_a_series_of_a_device_has_its_battery(service: Running, mine: Filled) -> None:
    status, found = await get(service, f"{mine.path(OF_DEVICE)}?to=2026-03-06")
    assert (status, sum(found["line"]["n"])) == (200, 48)
    assert {len(column) for column in found["signs"].values()} == {len(found["line"]["t"])}
    assert set(found["signs"]) == {"t", "battery", "battery_percent", "rssi", "angle"}
    assert isinstance(found["signs"]["battery"][0], float)


async def test_wrong_spans_and_points_are_400(service: Running, mine: Filled) -> None:
    wrong = {
        "points=9": "points must be a whole number from 10 to 2000",
        "points=2001": "points must be a whole number from 10 to 2000",
        "points=x": "points must be a whole number from 10 to 2000",
        "from=yesterday": "from must be a time, such as 2026-03-01T18:30:00+01:00",
        "from=2026-03-05&to=2026-03-04": "the span ends before it begins",
    }
    for query, detail in wrong.items():
        for path in (OF_SESSION, OF_DEVICE):
            status, found = await get(service, f"{mine.path(path)}?{query}")
            assert (status, found["detail"]) == (400, detail), query


async def test_another_account_sees_a_device_while_it_is_in_its_brew(service: Running, mine: Filled) -> None:
    services = service.services
    await services.access.add_account("other")
    other = await fill(services, "other", "OTHERMARK")
    reads = await services.access.add("reads", frozenset({"read"}), "other")
    path = mine.path(OF_DEVICE)
    assert (await get(service, path, reads))[0] == 404
    assert (await get(service, mine.path(OF_SESSION), reads))[0] == 404
    await services.brewsessions.assign(mine.ids["device_id"], int(other.ids["brew_session_id"]), None)
    late = ispindel(1, name="device1", gravity="1.010").encode()
    await services.intake.take(Payload(late, NOON + 60 * 3600, "http /ingest"))
    status, found = await get(service, path, reads)
    assert (status, found["line"]["t"]) == (200, [NOON + 60 * 3600]), "not what it sent into other brews"
    assert len((await get(service, f"{path}?to=2026-03-07"))[1]["line"]["t"]) == 49
