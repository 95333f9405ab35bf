"""`sessions`: of a recipe, changed, shown and deleted."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.cli.client import ask_async
from gateway.domain.times import iso
from tests.program.program import answer, ispindel, post, refusal, run

from .conftest import gateway
from .filling import fill

READING = '{"name":"gm","ID":"7a84dc","interval":900,"temperature":%s,"temp_units":"C","gravity":%s,' \
    '"angle":25,"battery":88,"RSSI":-70,"gravity-unit":"G"}'  # fmt: skip


@pytest.fixture
def document(tmp_path: Path) -> str:
    file = tmp_path / "recipe.xml"
    file.write_text("<RECIPES><RECIPE><NAME>Harbour Porter</NAME></RECIPE></RECIPES>")
    return str(file)


async def sessions(data: Path, *options: str) -> list[dict[str, object]]:
    return (await answer(data, "sessions list --json", *options)).objects


async def shown(data: Path, session: int) -> dict[str, str]:
    """What `show` says, by name."""
    lines = (await answer(data, f"sessions show {session}")).lines
    width = lines[1].index(lines[1].split("batch code")[1].strip())
    return {line[:width].strip(): line[width:] for line in lines}


async def test_a_session_of_a_recipe_takes_a_copy_and_a_batch_code(data: Path, document: str) -> None:
    await answer(data, "recipes import --quiet", document)
    added = await answer(data, "sessions add --recipe 1 --userdate 2026-03-01")
    assert (added.out, added.err) == ("1\n", "")
    await answer(data, "sessions add --recipe 1")
    first, second = await sessions(data)
    assert (first["batchcode"], second["batchcode"]) == ("HP001", "HP002")
    assert (first["recipe_id"], second["recipe_id"]) == (2, 3)
    assert (first["recipe_title"], first["userdate"]) == ("Harbour Porter", "2026-03-01")
    await answer(data, "recipes delete 1")
    assert (await shown(data, 1))["recipe"] == "Harbour Porter (id 2, a copy of 1)"


async def test_the_brewing_day_is_the_day_of_the_machines_time_zone(tmp_path: Path) -> None:
    """One zone is fourteen hours ahead and one twelve behind: one of the two has another day than UTC."""
    for zone, hours in (("AHEAD-14", 14), ("BEHIND12", -12)):
        data = tmp_path / zone
        before = datetime.now(UTC) + timedelta(hours=hours)
        told = await run("sessions", "add", "--batchcode", "B1", "--data-dir", str(data), env={"TZ": zone})
        after = datetime.now(UTC) + timedelta(hours=hours)
        assert told.status == 0, told.err
        [session] = await sessions(data)
        assert session["userdate"] in {before.date().isoformat(), after.date().isoformat()}


async def test_everything_that_can_be_said_is_kept_and_shown(data: Path, document: str) -> None:
    await answer(data, "folders add Winter --kind brewsession")
    await answer(data, "recipes import --quiet", document)
    words = "sessions add --recipe 1 --batchcode X7 --phase Lagering --userdate 2026-03-01 --folder 1"
    await answer(
        data, f"{words} --upstream-id 4101 --set totalwater=30 --set chillmethod=coil",
        *("--notes", "First line\nSecond \x9b line"), *("--set", "userunit=a = b"),
    )  # fmt: skip
    said = await shown(data, 1)
    assert said.pop("created") == said.pop("changed")
    assert said == {
        "id": "1",
        "batch code": "X7",
        "phase": "Lagering",
        "brewed": "2026-03-01",
        "recipe": "Harbour Porter (id 2, a copy of 1)",
        "folder": "Winter",
        "account": "owner",
        "forwarded to": "session 4101 of the upstream",
        "gravity": "no reading yet",
        "totalwater": "30",
        "chillmethod": "coil",
        "userunit": "a = b",
        "notes": "",
        "First line": "",
        "Second line": "",
    }
    table = (await answer(data, "sessions list")).lines
    assert table[1].split()[:7] == ["1", "X7", "Lagering", "2026-03-01", "Harbour", "Porter", "Winter"]


async def test_update_changes_what_is_given_and_nothing_else(data: Path) -> None:
    await answer(data, "folders add Winter --kind brewsession")
    await answer(data, "sessions add --batchcode A --upstream-id 7 --folder 1 --set totalwater=30")
    [before] = await sessions(data)
    updated = await answer(data, "sessions update 1 --phase Conditioning --set chillmethod=coil")
    assert (updated.out, updated.err) == ("", "")
    [after] = await sessions(data)
    assert after == before | {"phase": "Conditioning"}
    said = await shown(data, 1)
    assert (said["totalwater"], said["chillmethod"]) == ("30", "coil")
    await answer(data, "sessions update 1 --folder 0 --upstream-id 0 --batchcode B --userdate 2026-01-02")
    await answer(data, "sessions update 1 --set totalwater= --notes Racked")
    said = await shown(data, 1)
    assert (said["batch code"], said["brewed"]) == ("B", "2026-01-02")
    assert said.keys().isdisjoint({"folder", "forwarded to", "totalwater"})
    assert "Racked" in said


async def test_show_has_the_figures_of_the_readings(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        await answer(tmp_path, "sessions add --batchcode A")
        assert await post(http, server, READING % (20.5, 1.061)) == 200
        await answer(tmp_path, "devices assign 7a84dc 1 --since 2020-01-01")
        assert await post(http, server, READING % (18.25, 1.016)) == 200
        said = await shown(tmp_path, 1)
        assert said["device"].startswith("gm (id 1, last reading 20")
        assert said["original gravity"] == "1.061 SG"
        assert said["latest gravity"] == "1.016 SG"
        assert said["alcohol"] == "5.91 %, by the alternate formula 6.14 %"
        assert said["temperature"] == "18.25 °C"
        assert said["as of"].startswith("20")
        await server.stop()
    assert await shown(tmp_path, 1) == said


async def test_delete_is_soft_and_says_what_happens(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        assert await post(http, server, ispindel(5)) == 200
        await answer(tmp_path, "sessions add --batchcode A")
        await answer(tmp_path, "devices assign 5 1 --since 2020-01-01")
        deleted = await answer(tmp_path, "sessions delete 1")
        assert deleted.out == ""
        assert deleted.err == (
            "Brew session 1 (A) is deleted; its readings stay stored. No longer in it: spindle5. "
            "`sessions undelete 1` brings it back, `sessions purge 1` deletes it for good.\n"
        )
        [device] = (await answer(tmp_path, "devices list --json")).objects
        assert device["session"] is None
        assert await sessions(tmp_path) == []
        [reading] = (await answer(tmp_path, "readings --json")).objects
        assert reading["gravity"] == "12.5"
        await server.stop()
    await answer(tmp_path, "sessions add --batchcode B")
    alone = await answer(tmp_path, "sessions delete 2")
    assert alone.err.startswith("Brew session 2 (B) is deleted; its readings stay stored. `sessions undelete")


async def test_a_deleted_session_comes_back_or_goes_for_good(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        assert await post(http, server, ispindel(5)) == 200
        await answer(tmp_path, "sessions add --batchcode A")
        await answer(tmp_path, "devices assign 5 1 --since 2020-01-01")
        await answer(tmp_path, "sessions delete 1")
        [deleted] = (await answer(tmp_path, "sessions list --deleted --json")).objects
        assert (deleted["id"], deleted["batchcode"], deleted["readings"]) == (1, "A", 1)
        back = await answer(tmp_path, "sessions undelete 1")
        assert back.err == "Brew session 1 (A) is back with 1 readings; it has no device.\n"
        assert [s["id"] for s in await sessions(tmp_path)] == [1]
        [reading] = (await answer(tmp_path, "readings --session 1 --json")).objects
        assert reading["device_id"] == "5"
        refused = await refusal(tmp_path, "sessions purge 1 --yes")
        assert "no deleted brew session 1; `sessions list --deleted`" in refused
        await answer(tmp_path, "sessions delete 1")
        assert "say --yes" in await refusal(tmp_path, "sessions purge 1")
        gone = await answer(tmp_path, "sessions purge 1 --yes")
        assert gone.err == "Brew session 1 and 1 readings are gone for good.\n"
        assert (await answer(tmp_path, "readings --json")).objects == []
        assert (await answer(tmp_path, "sessions list --deleted --json")).objects == []
        assert "no deleted brew session" in await refusal(tmp_path, "sessions undelete 1")
        assert (await answer(tmp_path, "sessions add --batchcode B")).out == "2\n"  # ids are never used again
        [device] = (await answer(tmp_path, "devices list --json")).objects
        assert device["readings"] == 0
        await server.stop()


async def test_whose_session_it_is(data: Path, document: str) -> None:
    await answer(data, "accounts add anna")
    await answer(data, "recipes import --quiet --account anna", document)
    await answer(data, "sessions add --recipe 1")  # anna's, as the recipe is
    await answer(data, "sessions add --batchcode HERS --account anna")
    await answer(data, "sessions add --batchcode MINE")
    assert [s["batchcode"] for s in await sessions(data, "--account", "anna")] == ["HP001", "HERS"]
    assert [s["batchcode"] for s in await sessions(data)] == ["MINE"]
    assert (await shown(data, 1))["account"] == "anna"
    await answer(data, "sessions update 2 --batchcode STILL-HERS")
    assert [s["batchcode"] for s in await sessions(data, "--account", "anna")] == ["HP001", "STILL-HERS"]


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("add",), "a brew session needs a batch code, or a recipe to make one from"),
    (("add", "--recipe", "9"), "no recipe 9; `recipes list` shows them"),
    (("add", "--recipe", "1", "--account", "anna"), "no recipe 1; `recipes list` shows them"),
    (("add", "--batchcode", "X", "--account", "x"), "no account named 'x'; `accounts list` shows them"),
    (("add", "--batchcode", "X", "--folder", "9"), "no folder 9 for that; `folders list` shows them"),
    (("add", "--batchcode", "X", "--userdate", "1.3.2026"), "userdate must be a day, YYYY-MM-DD"),
    (("add", "--batchcode", "X", "--set", "water"), "--set wants NAME=VALUE, not 'water'"),
    (("add", "--batchcode", "X", "--set", "water=1"), "a brew session has no water"),
    (("add", "--batchcode", "X", "--set", "userunit=\udcff"), "the details is not UTF-8 text: "),
    (("update", "1"), "nothing to change; say what, for instance --phase Conditioning"),
    (("update", "1", "--folder", "9"), "no folder 9 for that; `folders list` shows them"),
    (("update", "1", "--batchcode", " "), "the batch code is empty"),
    *(
        ((*words, "9", *more), "no brew session 9; `sessions list` shows them")
        for words, more in ((("update",), ("--phase", "X")), (("delete",), ()), (("show",), ()))
    ),
    (("list", "--account", "x"), "no account named 'x'; `accounts list` shows them"),
]


async def test_what_cannot_be_done(data: Path, document: str) -> None:
    await answer(data, "accounts add anna")
    await answer(data, "recipes import --quiet", document)
    await answer(data, "sessions add --batchcode A")
    before = await sessions(data)
    for words, message in REFUSED:
        said = await refusal(data, ("sessions", *words))
        assert said.startswith(message), words
    assert await sessions(data) == before


async def test_a_session_shows_what_its_fermentation_does(data: Path) -> None:
    await answer(data, "sessions add --batchcode B1")
    now = int(datetime.now(UTC).timestamp())
    rows = [
        {"created_at": iso(now - (9 * 24 - hour) * 3600 - 60), "gravity": max(1.05 - hour * 0.0005, 1.012)}
        for hour in range(9 * 24 + 1)
    ]
    file = data.parent / "readings.json"
    file.write_text(json.dumps(rows[:60]))
    await answer(data, "readings import 1", str(file))
    said = await shown(data, 1)
    assert said["fermentation"].startswith("fermenting since 20")
    assert (said["ends"], "smoothed gravity" in said) == (
        "not yet known: readings are missing for a day",
        False,
    )
    file.write_text(json.dumps(rows))
    await answer(data, "readings import 1", str(file))
    said = await shown(data, 1)
    assert said["fermentation"].startswith("fermented out since 20")
    assert (said["smoothed gravity"], said["latest gravity"]) == ("1.012 SG", "1.012 SG")
    assert said["change"] == "+0.0000 SG a day"
    assert "ends" not in said


async def test_the_device_that_leads_is_chosen_by_its_name(data: Path, tmp_path: Path) -> None:
    """`tests/system/services/test_insight.py` looks at what it leads."""
    await answer(data, "sessions add --batchcode B1")
    await answer(data, "sessions update 1 --lead", "")
    told = await run("sessions", "update", "1", "--lead", "nobody", "--data-dir", str(data))
    assert (told.status, "nobody" in told.err) == (1, True)
    filled = tmp_path / "filled"
    await fill(filled, 3, session=True)
    (device,) = (await answer(filled, "devices list --json")).objects
    await answer(filled, "sessions update 1 --lead", str(device["name"]))
    found = await ask_async(filled, "GET", "/manage/brewsessions/1")
    assert found["brewsession"]["lead_device"] == device["id"]
    await answer(filled, "sessions add --batchcode Other")
    told = await run("sessions", "update", "2", "--lead", str(device["name"]), "--data-dir", str(filled))
    assert (told.status, "has no readings in this brew session" in told.err) == (1, True)
