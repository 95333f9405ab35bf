"""`/manage/brewsessions/:id/figures`: each figure with its origin."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession
from tests.system.api.conftest import Service
from tests.system.api.library import Brewery, content, opened


@pytest.fixture
async def brewery(service: Service) -> Brewery:
    return await opened(service)


async def figures(brewery: Brewery, session: BrewSession, key: str | None = None) -> tuple[int, Any]:
    headers = brewery.headers if key is None else {"X-API-KEY": key}
    path = f"/manage/brewsessions/{session.id}/figures"
    async with brewery.service.client.get(path, headers=headers) as answer:
        return answer.status, await answer.json()


async def test_each_figure_has_its_origin(brewery: Brewery) -> None:
    recipe = await brewery.recipe(content(fg="1.014"))
    session = await brewery.session(recipe, batchcode="HP001")
    nothing = {
        "message": "success", "gravity": None, "temp": None, "og": None,
        "fg": {"sg": 1.014, "from": "recipe"}, "attenuation": None, "abv": None,
        "change_per_day": None, "day": 1, "began_at": None,
        "last_at": None, "still_since": None, "seems_done": False,
    }  # fmt: skip
    assert await figures(brewery, session) == (200, nothing)
    await brewery.take(
        session, [{"created_at": "2026-03-04T09:30:00Z", "gravity": "1.050", "temp": "68", "temp_unit": "F"}]
    )
    status, found = await figures(brewery, session)
    at = "2026-03-04T09:30:00+00:00"
    assert (status, found) == (
        200,
        nothing
        | {
            "gravity": {"value": 1.05, "at": at, "device_id": None, "from": "import"},
            "temp": {"value": 20.0, "at": at, "device_id": None, "from": "import"},
            "og": {"sg": 1.05, "from": "measured"},
            "attenuation": 0.0,
            "abv": 0.0,
            "began_at": at,
            "last_at": at,
        },
    )
    await brewery.service.services.store.sessions.update(replace(session, og="1.060", og_unit="G"))
    _, found = await figures(brewery, session)
    assert found["og"] == {"sg": 1.06, "from": "hand"}
    assert (found["attenuation"], found["abv"]) == (16.67, 1.31)
    assert str((await figures(brewery, session))[1]["abv"]) == "1.31"


async def test_a_key_that_may_read_sees_them_and_no_other_account_does(brewery: Brewery) -> None:
    session = await brewery.session()
    access = brewery.service.access
    assert (await figures(brewery, session, await access.add("look", frozenset({"read"}), "second")))[
        0
    ] == 200
    assert (await figures(brewery, session, await access.add("send", frozenset({"ingest"}), "second")))[
        0
    ] == 401
    assert (await figures(brewery, session, brewery.service.key))[0] == 404
