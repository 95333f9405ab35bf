"""`/manage/brewsessions/:id/figures`: each figure with its origin."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession
from gateway.domain.times import iso
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
    values = {"gravity": "1.050", "temp": "68", "temp_unit": "F"}
    times = [f"2026-03-04T{time}:00Z" for time in ("08:30", "09:00", "09:30")]
    await brewery.take(session, [{"created_at": at, **values} for at in times])
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
            "began_at": "2026-03-04T08:30:00+00:00",
            "last_at": at,
        },
    )
    await brewery.service.services.store.sessions.update(replace(session, og="1.060", og_unit="G"))
    _, found = await figures(brewery, session)
    assert found["og"] == {"sg": 1.06, "from": "hand"}
    assert (found["attenuation"], found["abv"]) == (16.67, 1.31)
    assert str((await figures(brewery, session))[1]["abv"]) == "1.31"


async def insight(brewery: Brewery, session: BrewSession) -> Any:
    path = f"/manage/brewsessions/{session.id}/insight"
    async with brewery.service.client.get(path, headers=brewery.headers) as answer:
        assert answer.status == 200
        return await answer.json()


async def test_the_insight_of_a_fermentation_is_null_where_nothing_is_known(brewery: Brewery) -> None:
    recipe = await brewery.recipe(content(fg="1.014", og="1.052"))
    session = await brewery.session(recipe, batchcode="HP001")
    nothing: dict[str, Any] = {
        "message": "success", "now": "2026-03-04T09:30:00+00:00", "last_at": None,
        "device_id": None, "sg": None,
        "og": {"sg": 1.052, "from": "recipe", "is_estimate": True}, "attenuation": None, "abv": None,
        "abv_alternate": None, "rate": None, "day": None, "temp_c": None, "phase": None, "phase_since": None,
        "changes": [], "finish": None, "unknown": None, "unknown_text": None, "fell_24h": None,
        "fell_36h": None, "fell_48h": None, "ended_high": False, "cold_since": None, "crashed_at_sg": None,
        "rise": None,
    }  # fmt: skip
    assert await insight(brewery, session) == nothing
    begin = int(brewery.service.clock.now()) - 3 * 86_400
    rows = [
        {
            "created_at": iso(begin + n * 900),
            "gravity": f"{1.05 - 0.0001 * n:.4f}",
            "temp": "20",
            "temp_unit": "C",
        }
        for n in range(3 * 96)
    ]
    await brewery.take(session, rows)
    found = await insight(brewery, session)
    assert found["og"] == {"sg": pytest.approx(1.049, abs=0.001), "from": "readings", "is_estimate": False}
    assert found["sg"] == pytest.approx(1.0213, abs=0.0005)
    assert found["rate"] == pytest.approx(-0.0096, abs=0.0002)
    assert (found["phase"], found["day"], found["temp_c"]) == ("active", 3.0, 20.0)
    assert [change["phase"] for change in found["changes"]] == ["active"]
    assert found["fell_24h"] == pytest.approx(0.0096, abs=0.0002)
    assert (found["finish"] is None) == (found["unknown"] is not None) == (found["unknown_text"] is not None)


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
