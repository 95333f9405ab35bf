"""Brew sessions: what is taken over from a recipe, what is refused, and that whoever forwards hears of it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device, find_device
from gateway.domain.report import Report
from gateway.errors import InvalidInput, NameTaken, NotFound
from gateway.services.brewsessions import SessionChange, initials_of
from gateway.services.build import Services
from gateway.store.queries import RecipeSearch
from tests.clock import FakeClock
from tests.system.api.library import content


async def new(services: Services, account_id: int = 1, **said: Any) -> BrewSession:
    return await services.brewsessions.add_session(account_id, SessionChange(**said))


async def test_what_nobody_said_of_a_new_session(services: Services) -> None:
    session = await new(services, batchcode="HP001")
    assert session == BrewSession(
        1, 1, "HP001", "Primary Fermentation", 0, None, 1_772_616_600, 1_772_616_600, userdate="2026-03-04"
    )
    assert await services.store.sessions.get(1) == session


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the machine's time zone."""

    def put(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield put
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("name", "at", "day"),
    [
        ("Europe/Berlin", "2026-03-04T22:59:59", "2026-03-04"),
        ("Europe/Berlin", "2026-03-04T23:00:00", "2026-03-05"),
        ("Europe/Berlin", "2026-07-04T22:00:00", "2026-07-05"),
        ("America/New_York", "2026-03-05T04:59:59", "2026-03-04"),
        ("America/New_York", "2026-03-05T05:00:00", "2026-03-05"),
        ("Pacific/Kiritimati", "2026-02-28T10:00:00", "2026-03-01"),
        ("UTC", "2026-03-04T23:59:59", "2026-03-04"),
    ],
)
async def test_the_brewing_day_is_that_of_the_brewers_calendar(
    services: Services, clock: FakeClock, zone: Callable[[str], None], name: str, at: str, day: str
) -> None:
    zone(name)
    clock.jump(datetime.fromisoformat(f"{at}+00:00").timestamp() - clock.now())
    session = await new(services, batchcode="HP001")
    assert session.userdate == day
    clock.jump(86_400)
    assert (await services.brewsessions.update_session(session, SessionChange(phase="x"))).userdate == day


async def test_everything_that_can_be_said(services: Services) -> None:
    folder = await services.library.add_folder(1, "brewsession", "Winter")
    session = await new(
        services,
        batchcode=" HP9 ",
        phase="",
        userdate="2024-02-29",
        notes="x",
        folder_id=folder.id,
        upstream_id=4101,
        details={"source_ca": "1", "target_ca": None},
    )
    assert (session.batchcode, session.phase, session.userdate, session.notes) == (
        "HP9",
        "",
        "2024-02-29",
        "x",
    )
    assert (session.folder_id, session.upstream_id) == (folder.id, 4101)
    assert session.details == {"source_ca": "1", "target_ca": None}


async def test_batch_codes_take_the_first_free_number(services: Services) -> None:
    recipe = await services.library.add(1, content("Harbour Porter"))
    await new(services, batchcode="HP002")
    sessions = [await new(services, recipe_id=recipe.id) for _ in range(2)]
    assert [session.batchcode for session in sessions] == ["HP001", "HP003"]
    await services.brewsessions.delete_session(sessions[0])
    assert (await new(services, recipe_id=recipe.id)).batchcode == "HP001"
    assert (await new(services, recipe_id=recipe.id, batchcode="own")).batchcode == "own"
    second = await services.access.add_account("second")
    theirs = await services.library.add(second.id, content("Hop Pale"))
    assert (await new(services, second.id, recipe_id=theirs.id)).batchcode == "HP001"


@pytest.mark.parametrize(
    ("title", "initials"),
    [
        ("Harbour Porter", "HP"),
        ("  harbour   porter ", "HP"),
        ("One two three four five six", "OTTFF"),
        ("7 Grain (Brown) Ale", "7GA"),
        ("été ägyptisch", "ÉÄ"),
        ("", "B"),
        ("*** ---", "B"),
    ],
)
def test_initials(title: str, initials: str) -> None:
    assert initials_of(title) == initials


async def test_a_session_takes_a_snapshot_of_its_recipe(services: Services, clock: FakeClock) -> None:
    recipe = await services.library.add(1, content("Porter", notes="x"))
    clock.advance(60)
    session = await new(services, recipe_id=recipe.id)
    copy = await services.store.recipes.get(session.recipe_id)
    assert copy is not None
    assert copy == replace(
        recipe,
        id=copy.id,
        token=copy.token,
        parent_id=recipe.id,
        snapshot=True,
        created_at=session.created_at,
        updated_at=session.created_at,
        brew_sessions=((session.id, session.userdate),),
    )
    assert copy.token != recipe.token


async def test_a_copy_of_a_copy_is_one_of_the_original(services: Services) -> None:
    recipe = await services.library.add(1, content())
    first = await new(services, recipe_id=recipe.id)
    second = await new(services, recipe_id=first.recipe_id)
    copy = await services.store.recipes.get(second.recipe_id)
    assert copy is not None
    assert (copy.snapshot, copy.parent_id) == (True, recipe.id)
    original = await services.store.recipes.get(recipe.id)
    assert original is not None
    assert [number for number, _ in original.brew_sessions] == [first.id, second.id]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"batchcode": ""}, "batch code is empty"),
    ({"batchcode": " \t"}, "batch code is empty"),
    ({"batchcode": "x" * 1001}, "longer than 1000"),
    ({"phase": "x" * 1001}, "longer than 1000"),
    ({"details": {"source_ca": "x" * 1001}}, "longer than 1000"),
    ({"notes": "x" * 100_001}, "longer than 100000"),
    ({"phase": "a\0b"}, "no text"),
    ({"notes": "a\0b"}, "no text"),
    ({"details": {"chillmethod": "\0"}}, "no text"),
    ({"batchcode": "\ud83c"}, "no text"),
    ({"notes": "half \udf7a"}, "no text"),
    ({"userdate": ""}, "YYYY-MM-DD"),
    ({"userdate": "2026-02-30"}, "YYYY-MM-DD"),
    ({"userdate": "20260301"}, "YYYY-MM-DD"),
    ({"userdate": "2026-03-01T00:00:00"}, "YYYY-MM-DD"),
    ({"details": {"id": "7", "colour": "x"}}, "no colour, id"),
    ({"details": {"meter_active": "1"}}, "no meter_active"),
]


@pytest.mark.parametrize(("said", "complaint"), WRONG)
async def test_what_no_session_can_be_is_refused_and_leaves_nothing(
    services: Services, said: dict[str, Any], complaint: str
) -> None:
    recipe = await services.library.add(1, content())
    with pytest.raises(InvalidInput, match=complaint):
        await new(services, **{"batchcode": "HP001", "recipe_id": recipe.id, **said})
    session = await new(services, batchcode="HP001")
    with pytest.raises(InvalidInput, match=complaint):
        await services.brewsessions.update_session(session, SessionChange(**said))
    assert await services.store.sessions.all() == [session]
    assert (await services.store.recipes.search(RecipeSearch(account_id=1, snapshots=True)))[0] == 1


async def test_a_session_needs_a_batch_code_or_a_recipe(services: Services) -> None:
    for said in ({}, {"recipe_id": 0}):
        with pytest.raises(InvalidInput, match="needs a batch code, or a recipe"):
            await new(services, **said)


async def test_recipes_and_folders_are_the_account_s_own(services: Services) -> None:
    second = await services.access.add_account("second")
    recipe = await services.library.add(1, content())
    folders = [
        await services.library.add_folder(1, "brewsession", "Winter"),
        await services.library.add_folder(second.id, "recipe", "Winter"),
    ]
    wrong: list[dict[str, Any]] = [{"recipe_id": recipe.id}, {"recipe_id": 99}, {"folder_id": 99}]
    wrong += [{"folder_id": folder.id} for folder in folders]
    for said in wrong:
        with pytest.raises(NotFound, match=r"`(recipes|folders) list` shows them"):
            await new(services, second.id, batchcode="HP001", **said)
    assert await services.store.sessions.all() == []


async def test_an_update_changes_what_is_said_and_nothing_else(services: Services, clock: FakeClock) -> None:
    folder = await services.library.add_folder(1, "brewsession", "Winter")
    session = await new(services, batchcode="HP001", notes="old", folder_id=folder.id, upstream_id=7)
    session = await services.brewsessions.update_session(session, SessionChange(details={"source_ca": "1"}))
    clock.advance(60)
    changed = await services.brewsessions.update_session(session, SessionChange(phase="All Gone"))
    assert changed == replace(session, phase="All Gone", updated_at=session.created_at + 60)
    said = SessionChange(folder_id=0, upstream_id=0, notes="", details={"source_mg": "2"})
    changed = await services.brewsessions.update_session(changed, said)
    assert (changed.folder_id, changed.upstream_id, changed.notes) == (None, None, "")
    assert changed.details == {"source_ca": "1", "source_mg": "2"}
    assert await services.store.sessions.get(session.id) == changed


async def test_a_session_keeps_its_recipe(services: Services) -> None:
    session = await new(services, batchcode="HP001")
    with pytest.raises(InvalidInput, match="keeps the recipe"):
        await services.brewsessions.update_session(session, SessionChange(recipe_id=1))


async def known_device(services: Services, stable_id: str, name: str = "GREEN") -> Device:
    device = Device.first_seen(Report(family="tilt", stable_id=stable_id, name=name), 1)
    return await services.store.devices.save(device)


async def test_devices_go_in_and_out(services: Services, clock: FakeClock) -> None:
    session = await new(services, batchcode="HP001")
    device = await known_device(services, "abc")
    clock.advance(60)
    assert (await services.brewsessions.assign("abc", session.id, None)).claimed == 0
    assert [known.session_id for known in await services.store.devices.all()] == [session.id]
    assert await services.store.sessions.get(session.id) == session  # its updated_at as well
    await services.brewsessions.release(device.key)
    assert [known.session_id for known in await services.store.devices.all()] == [None]
    for unknown in (99, 0):
        with pytest.raises(NotFound, match="`sessions list` shows them"):
            await services.brewsessions.assign("abc", unknown, None)
    await services.brewsessions.delete_session(session)
    with pytest.raises(NotFound):
        await services.brewsessions.assign("abc", session.id, None)


async def test_devices_are_found_by_anything_that_is_theirs_alone(services: Services) -> None:
    one, other = await known_device(services, "abc"), await known_device(services, "def", "RED")
    twin = await known_device(services, "ghi", "RED")
    devices = [one, other, twin]
    for wanted in ("abc", "GREEN", "tilt:abc", str(one.id)):
        assert find_device(devices, wanted) == one
    with pytest.raises(NameTaken, match="could be tilt:def, tilt:ghi"):
        find_device(devices, "RED")
    for unknown in ("", "green", "tilt", "abc "):
        with pytest.raises(NotFound, match="`devices list` shows them"):
            find_device(devices, unknown)


async def test_whoever_forwards_hears_of_it(services: Services) -> None:
    bell = services.notices.listen()
    await known_device(services, "abc")
    session = await new(services, batchcode="HP001")
    assert bell.is_set()
    for change in (
        services.brewsessions.update_session(session, SessionChange(upstream_id=7)),
        services.brewsessions.assign("abc", session.id, None),
    ):
        bell.clear()
        await change
        assert bell.is_set()
