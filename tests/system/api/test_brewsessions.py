"""Endpoints 9 and 10 of the specification, and the entry of a brew session with all of its members."""

import re
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.recipe import Recipe
from gateway.services.brewsessions import SessionChange
from tests.system.api.conftest import Service
from tests.system.api.library import (
    NOT_FOUND,
    PORTER_RECORD,
    Brewery,
    assert_texts,
    content,
    opened,
    porter,
    unix,
)
from tests.system.api.test_recipes import NO_SUCH_ID, RECORD, STAMP, assert_record

WATER = [
    "waterprofile_volume",
    "waterprofile_dilution",
    "waterprofile_selected",
    "waterprofilesource_selected",
    "source_ca",
    "source_mg",
    "source_so4",
    "source_na",
    "source_cl",
    "source_hco3",
    "target_ca",
    "target_mg",
    "target_so4",
    "target_na",
    "target_cl",
    "target_hco3",
    "addition_caco3",
    "addition_nahco3",
    "addition_caso4",
    "addition_cacl2",
    "addition_mgso4",
    "addition_nacl",
    "addition_mgcl2",
    "addition_caoh2",
    "addition_naoh",
]

ENTRY = [
    *[
        "id",
        "loginid",
        "recipeid",
        "folder_id",
        "brewstepprofileid",
        "phase",
        "userdate",
        "batchcode",
        "chillmethod",
    ],
    *["mash_water_unit", "totalwater", "starting_mash_thickness", "userunit", "equipment_profile_id"],
    *WATER,
    *[
        "deleted",
        "created_at",
        "updated_at",
        "session_notes",
        "meter_active",
        "meter_color",
        "meter_updated",
        "folder_name",
    ],
    *["recipe_title", "device_reading", "device_updated_at", "device_active", "device_id"],
]
"""Members of a brew session, in the order of the specification's table."""

NULLABLE = {
    *[
        "folder_id",
        "mash_water_unit",
        "starting_mash_thickness",
        "session_notes",
        "meter_color",
        "meter_updated",
    ],
    *["folder_name", "device_active"],
    *["device_reading", "device_updated_at", "device_id"],  # api-decisions section 15, 37
    *WATER,
}

STATS = {
    "og": float,
    "og_unit": str,
    "fg": float,
    "fg_unit": str,
    "abv": float,
    "abv_alt": float,
    "ph": str,
    "temp": str,
    "temp_unit": str,
    "updated": str,
}
"""The specification's table of current_stats; all numbers come as such, with a point."""


@pytest.fixture
async def brewery(service: Service) -> Brewery:
    return await opened(service)


def assert_entry(entry: dict[str, Any], *more: str) -> None:
    """Exactly the specification's members, in its order and of its types, and `more` behind them."""
    assert list(entry) == [*ENTRY, *more]
    assert_texts({name: entry[name] for name in ENTRY}, null=NULLABLE)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", entry["userdate"])
    assert entry["deleted"] == "0"
    assert entry["meter_active"] in {"0", "1"}
    float(entry["totalwater"])
    for name in ("created_at", "updated_at", "meter_updated", "device_updated_at"):
        assert entry[name] is None or STAMP.fullmatch(entry[name])


async def one(brewery: Brewery, session_id: int, path: str = "") -> dict[str, Any]:
    """The one brew session of a single-entry envelope, of the shape of the specification."""
    answer = await brewery.get(f"brewsessions/{session_id}{path}")
    assert list(answer) == ["message", "count", "brewsessions"]
    assert (answer["message"], answer["count"]) == ("success", "1")
    (entry,) = answer["brewsessions"]
    assert_entry(entry, "current_stats", "recipe")
    assert {name: type(value) for name, value in entry["current_stats"].items()} == STATS
    assert list(entry["current_stats"]) == list(STATS)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", entry["current_stats"]["updated"])
    assert_record(entry["recipe"]) if entry["recipeid"] != "0" else assert_no_recipe(entry["recipe"])
    assert entry["recipe"]["id"] == entry["recipeid"]
    found: dict[str, Any] = entry
    return found


def assert_no_recipe(record: dict[str, Any]) -> None:
    """A recipe record that says nothing, in which no member lacks that strict clients need as text."""
    assert list(record) == RECORD
    assert_texts(record, null=set(RECORD) - {"id", "stylename", "title", "created_at", "snapshot", "deleted"})
    assert record["brew_sessions"] == "[]"


async def test_a_new_session_without_recipe_or_device(brewery: Brewery) -> None:
    session = await brewery.session()
    entry = await one(brewery, session.id)
    assert {name for name in ENTRY if entry[name] is None} == NULLABLE
    assert {name: entry[name] for name in set(ENTRY) - NULLABLE} == {
        "id": str(session.id),
        "loginid": str(brewery.account_id),
        "recipeid": "0",
        "brewstepprofileid": "1",
        "phase": "Primary Fermentation",
        "userdate": "2026-03-04",
        "batchcode": "HP001",
        "chillmethod": "",
        "totalwater": "0",
        "userunit": "metric",
        "equipment_profile_id": "0",
        "deleted": "0",
        "created_at": "2026-03-04 09:30:00",
        "updated_at": "2026-03-04 09:30:00",
        "meter_active": "0",
        "recipe_title": "",
    }
    assert entry["recipe"]["id"] == "0"


DETAILS = {
    "brewstepprofileid": "7",
    "chillmethod": "Immersion",
    "mash_water_unit": "",
    "totalwater": "32.5",
    "starting_mash_thickness": "3.1",
    "userunit": "us",
    "equipment_profile_id": "12",
    **{name: f"{place}.5" for place, name in enumerate(WATER)},
}


async def test_everything_that_people_say_of_a_session_comes_out(brewery: Brewery) -> None:
    folder = await brewery.service.services.library.add_folder(brewery.account_id, "brewsession", "Winter")
    said: dict[str, Any] = {
        "batchcode": " TBB001 ",
        "phase": "Cold crash 🧊 (day 3)",
        "userdate": "2026-02-28",
    }
    session = await brewery.session(notes="İt\nsmells.", folder_id=folder.id, details=DETAILS, **said)
    entry = await one(brewery, session.id)
    assert {name: entry[name] for name in DETAILS} == DETAILS
    assert {name: entry[name] for name in (*said, "session_notes", "folder_id", "folder_name")} == {
        "batchcode": "TBB001",
        "phase": "Cold crash 🧊 (day 3)",
        "userdate": "2026-02-28",
        "session_notes": "İt\nsmells.",
        "folder_id": str(folder.id),
        "folder_name": "Winter",
    }
    brewery.service.clock.wall += 3600
    brewing = brewery.service.services.brewsessions
    await brewing.update_session(session, SessionChange(phase="", folder_id=0, details={"source_ca": None}))
    entry = await one(brewery, session.id)
    assert (entry["phase"], entry["folder_id"], entry["folder_name"], entry["source_ca"]) == (
        "",
        None,
        None,
        None,
    )
    assert (entry["created_at"], entry["updated_at"]) == ("2026-03-04 09:30:00", "2026-03-04 10:30:00")


@pytest.mark.parametrize("phase", ["Planning", "All Gone", "never heard of", "", " ", "'%\"", "x" * 1000])
async def test_a_phase_is_any_text(brewery: Brewery, phase: str) -> None:
    session = await brewery.session(phase=phase)
    assert (await one(brewery, session.id))["phase"] == phase


async def test_the_recipe_of_a_session_is_the_copy_that_it_took(brewery: Brewery) -> None:
    folder = await brewery.service.services.library.add_folder(brewery.account_id, "recipe", "Winter")
    original = await brewery.recipe(porter(), folder_id=folder.id)
    session = await brewery.session(original)
    entry = await one(brewery, session.id)
    recipe = entry["recipe"]
    assert recipe["id"] not in {str(original.id), "0"}
    assert (recipe["snapshot"], recipe["copy_parent_id"]) == ("1", str(original.id))
    assert {name: recipe[name] for name in PORTER_RECORD} == PORTER_RECORD
    assert (entry["recipe_title"], entry["batchcode"]) == ("Harbour Porter", "HP001")
    alone = (await brewery.get(f"recipes/{recipe['id']}"))["recipes"][0]
    assert recipe == {name: alone[name] for name in RECORD}


async def test_later_changes_of_the_recipe_do_not_reach_the_session(brewery: Brewery) -> None:
    original = await brewery.recipe(porter())
    session = await brewery.session(original)
    before = await one(brewery, session.id)
    recipes = brewery.service.services.store.recipes
    await recipes.update(
        replace(original, content=content("Changed"), updated_at=unix("2026-09-01 00:00:00"))
    )
    assert await one(brewery, session.id) == before
    await recipes.delete(original.id, 0)
    assert await one(brewery, session.id) == before


async def test_batch_codes_are_the_recipe_s_initials_and_a_running_number(brewery: Brewery) -> None:
    titles = ["Harbour Porter", "Harbour Porter", "hop pale", "Tiny (Brown) 7 Ale", "***", "Ärger über ßund"]
    codes = [(await brewery.session(await brewery.recipe(title))).batchcode for title in titles]
    assert codes == ["HP001", "HP002", "HP003", "T7A001", "B001", "ÄÜSS001"]


async def test_a_recipe_that_is_gone_leaves_its_number(brewery: Brewery) -> None:
    session = await brewery.session(await brewery.recipe("Gone"))
    await brewery.service.services.store.recipes.delete(session.recipe_id, 0)
    answer = await brewery.get(f"brewsessions/{session.id}")
    entry = answer["brewsessions"][0]
    assert_no_recipe(entry["recipe"])
    assert entry["recipe"]["id"] == entry["recipeid"] == str(session.recipe_id)


async def test_logs_are_the_same_bytes(brewery: Brewery) -> None:
    session = await brewery.session(await brewery.recipe(porter()))
    await brewery.take(session, [{"gravity": 13.5, "gravity_unit": "P"}, {"gravity": 1.012, "temp": 20}])
    single = await brewery.ask(f"brewsessions/{session.id}")
    logs = await brewery.ask(f"brewsessions/{session.id}/logs")
    assert (single.status, logs.status) == (200, 200)
    assert logs.body == single.body
    assert logs.headers["Content-Type"] == "application/json"
    await one(brewery, session.id, "/logs")


@pytest.mark.parametrize("path", ["", "/logs"])
@pytest.mark.parametrize("path_id", NO_SUCH_ID)
async def test_what_names_no_session_is_404(brewery: Brewery, path_id: str, path: str) -> None:
    await brewery.session()
    answer = await brewery.ask(f"brewsessions/{path_id}{path}")
    assert (answer.status, answer.json) == (404, NOT_FOUND)


async def test_sessions_of_others_and_deleted_ones_are_404(brewery: Brewery) -> None:
    gone = await brewery.session()
    await brewery.service.services.brewsessions.delete_session(gone)
    for session in (gone, brewery.service.session):
        for path in (
            f"brewsessions/{session.id}",
            f"brewsessions/{session.id}/logs",
            f"fermentation/{session.id}",
        ):
            answer = await brewery.ask(path)
            assert (answer.status, answer.json) == (404, NOT_FOUND)


@pytest.mark.parametrize("path", ["", "/logs"])
async def test_head_has_the_headers_and_no_body(brewery: Brewery, path: str) -> None:
    session = await brewery.session()
    got = await brewery.ask(f"brewsessions/{session.id}{path}")
    head = await brewery.ask(f"brewsessions/{session.id}{path}", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    for name in ("Content-Type", "Content-Length"):
        assert head.headers[name] == got.headers[name]


async def test_an_import_does_not_change_updated_at(brewery: Brewery) -> None:
    session = await brewery.session()
    brewery.service.clock.wall += 86_400
    for reset in (False, True):
        await brewery.take(session, [{"gravity": 1.05}], reset)
        assert (await one(brewery, session.id))["updated_at"] == "2026-03-04 09:30:00"


MIRRORED = {
    "meter_active": "1",
    "meter_color": "BLUE",
    "meter_updated": "2026-01-01 00:00:00",
    "device_reading": '{"last_reading":{"SG":"1.041"}}',
    "device_updated_at": "2026-01-01 00:00:01",
    "device_active": "1",
    "device_id": "901",
}


async def test_a_mirrored_session_shows_what_the_service_said_of_its_device(brewery: Brewery) -> None:
    session = await brewery.row(details={**MIRRORED, "totalwater": "12"}, userdate="2026-01-01")
    entry = await one(brewery, session.id)
    assert {name: entry[name] for name in MIRRORED} == MIRRORED
    await brewery.report(
        {"name": "a", "ID": 7, "angle": 40, "temperature": 20, "gravity": 1.05, "temp_units": "C"}
    )
    await brewery.service.services.brewsessions.assign("7", session.id, None)
    assert (await one(brewery, session.id))["meter_color"] == "a"
    await brewery.service.services.brewsessions.release("7")
    entry = await one(brewery, session.id)
    assert {name: entry[name] for name in MIRRORED} == MIRRORED


async def test_two_sessions_of_one_recipe_have_a_copy_each(brewery: Brewery) -> None:
    original = await brewery.recipe()
    copies: list[Recipe] = []
    for _ in range(2):
        session = await brewery.session(original)
        copy = await brewery.service.services.store.recipes.get(session.recipe_id)
        assert copy is not None
        copies.append(copy)
    assert len({copy.id for copy in (*copies, original)}) == 3
    assert len({copy.token for copy in (*copies, original)}) == 3
