"""Whatever a service answers, the good records arrive and the bad ones are named."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.mirror import client as client_module
from gateway.mirror.counts import REPORTS
from tests.system.mirror.bench import Instance, content, copy, counts, opened, picture
from tests.system.mirror.fake import Fake, cut, recipe, row, running, session, status

BAD_RECIPES = [
    None, 7, "text", [], {}, recipe(2) | {"id": None}, recipe(3, title=["a"]), recipe(4, notes="a\x00b"),
    recipe(5, odd="\ud800"), recipe(6, hops={"name": "x"}), recipe(7, notes="x" * 100_001),
    recipe(8, copy_parent_id={}), recipe(9, folder_name="x" * 300), {"id": "10/../../v1"},
]  # fmt: skip
BAD_SESSIONS = [None, [], {}, session(2, batchcode=[]), session(3, phase="\x00"), session(4, recipeid="../9")]
BAD_ROWS = [
    None, [], "x", {}, row(2, created_at=None), row(3, gravity="abc"), row(4, comment="\ud800"),
    row(5, temp={}), row(6, name="\x00"), row(7, ph=[1]), row(8, created_at="yesterday"),
    row(9, comment="x" * 100_001),
]  # fmt: skip


async def copied(tmp_path: Path, fake: Fake) -> tuple[Any, Any, Any]:
    """Counts and reports of a run, and what is here afterwards."""
    async with running(fake), opened(tmp_path / "here") as here:
        tally = await copy(here, fake.source)
        return counts(tally), tally.reports, await _everything(here)


async def _everything(here: Instance) -> dict[str, Any]:
    sessions = (await here.get("/v1/brewsessions"))["brewsessions"]
    return {
        "recipes": (await here.get("/v1/recipes?snapshots=true&ingredients=true"))["recipes"],
        "sessions": sessions,
        "readings": [
            r for s in sessions for r in (await here.get(f"/v1/fermentation/{s['id']}"))["readings"]
        ],
    }


async def test_bad_records_are_named_and_the_others_arrive(tmp_path: Path) -> None:
    fake = Fake(
        recipes=[recipe(1), *BAD_RECIPES, recipe(99)],
        sessions=[session(1), *BAD_SESSIONS, session(99)],
        readings={"1": [row(1), *BAD_ROWS, row(99)], "99": []},
    )
    numbers, reports, here = await copied(tmp_path, fake)
    assert numbers == {
        "recipes": (2, 0, 0, 0, len(BAD_RECIPES)),
        "brew sessions": (2, 0, 0, 0, len(BAD_SESSIONS)),
        "readings": (2, 0, 0, 0, len(BAD_ROWS)),
    }
    assert [r["id"] for r in here["recipes"]] == ["99", "1"]
    assert [s["id"] for s in here["sessions"]] == ["99", "1"]
    assert [r["comment"] for r in here["readings"]] == ["no. 1", "no. 99"]
    assert "recipe 3: title is not text" in reports
    assert "brew session 2: batchcode is not text" in reports
    assert "a reading of brew session 1: 2026-03-01T00:03:00+00:00: gravity is not a number" in reports
    assert all(line.isprintable() and len(line) <= 300 for line in reports)


async def test_a_bad_record_is_tried_again_by_every_run(tmp_path: Path) -> None:
    fake = Fake(recipes=[recipe(1), recipe(2, title=[])], xml={"1": b"", "2": b""})
    async with running(fake), opened(tmp_path / "here") as here:
        for _ in range(2):
            assert (await copy(here, fake.source)).counts["recipes"].failed == 1
        assert not any("updated_from" in path for path in fake.paths)
        fake.recipes[1] = recipe(2, title="Mended")
        assert (await copy(here, fake.source)).counts["recipes"].copied == 1
        fake.requests.clear()
        await copy(here, fake.source)
        assert "updated_from=2026-02-26" in fake.paths[0]


XML = b"<RECIPES><RECIPE><NAME>Its own</NAME><VERSION>1</VERSION><ODD>kept</ODD></RECIPE></RECIPES>"


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (None, "HTTP 404"),
        (b"", "the document is empty"),
        (b"<html>", ""),
        (b"\xff\x00garbage", ""),
        (b"<RECIPES></RECIPES>", "there is no recipe in it"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><RECIPES/>', "document type declaration"),
        (b"<a>" * 70 + b"</a>" * 70, "elements are nested"),
    ],
    ids=str,
)
async def test_beerxml_that_cannot_be_read_is_made_of_the_record(
    tmp_path: Path, xml: bytes | None, reason: str
) -> None:
    fake = Fake(recipes=[recipe(1, title="Porter & Co")], xml={} if xml is None else {"1": xml})
    async with running(fake), opened(tmp_path / "here") as here:
        tally = await copy(here, fake.source)
        assert counts(tally) == {"recipes": (1, 0, 0, 0, 0)}
        (report,) = tally.reports
        assert report.startswith("recipe 1: its BeerXML was made from its record, as: ")
        assert reason in report
        code, document = await here.ask("/v1/recipes/1.xml")
        assert (code, b"<NAME>Porter &amp; Co</NAME>" in document) == (200, True)
        tally = await copy(here, fake.source)
        assert tally.reports == []  # that is all there is to be had


async def test_beerxml_that_could_not_be_had_is_asked_for_again(tmp_path: Path) -> None:
    fake = Fake(recipes=[recipe(1)], xml={"1": XML}, always={"/v1/recipes/1.xml": status(500)})
    async with running(fake), opened(tmp_path / "here") as here:
        tally = await copy(here, fake.source)
        assert (counts(tally), len(tally.reports)) == ({"recipes": (1, 0, 0, 0, 0)}, 1)
        fake.always.clear()
        tally = await copy(here, fake.source)
        assert (counts(tally), tally.reports) == ({"recipes": (0, 1, 0, 0, 0)}, [])
        assert b"<ODD>kept</ODD>" in (await here.ask("/v1/recipes/1.xml"))[1]
        assert counts(await copy(here, fake.source)) == {"recipes": (0, 0, 1, 0, 0)}


async def test_a_service_without_beerxml_is_not_asked_for_each(tmp_path: Path) -> None:
    fake = Fake(recipes=[recipe(n) for n in range(1, 20)])
    fake.always = {f"/v1/recipes/{n}.xml": status(500) for n in range(1, 20)}
    numbers, _, _ = await copied(tmp_path, fake)
    assert numbers == {"recipes": (19, 0, 0, 0, 0)}
    assert len({path for path in fake.paths if path.endswith(".xml")}) == 3


async def test_ingredients_come_from_beerxml_where_the_record_has_none(tmp_path: Path) -> None:
    bare = {"id": "1", "title": "Porter", "updated_at": "2026-02-27 19:30:00"}
    xml = XML.replace(
        b"<ODD>kept</ODD>",
        b"<HOPS><HOP><NAME>Saaz</NAME><AMOUNT>0.03</AMOUNT></HOP></HOPS><BATCH_SIZE>21</BATCH_SIZE>",
    )
    _, reports, here = await copied(tmp_path, Fake(recipes=[bare], xml={"1": xml}))
    (found,) = here["recipes"]
    assert (found["title"], found["batchsize"], found["hops"][0]["name"]) == ("Porter", "21", "Saaz")
    assert reports == []


async def test_lists_that_fail_leave_the_others_to_be_copied(tmp_path: Path) -> None:
    fake = Fake(recipes=[recipe(1)], sessions=[session(1, recipeid="1")], readings={"1": [row(1)]})
    fake.always["/v1/recipes"] = status(500)
    numbers, reports, here = await copied(tmp_path, fake)
    assert numbers == {
        "recipes": (1, 0, 0, 0, 1),
        "brew sessions": (1, 0, 0, 0, 0),
        "readings": (1, 0, 0, 0, 0),
    }
    assert reports[0] == "the list of recipes cannot be read to its end: HTTP 500: scripted"
    assert here["sessions"][0]["recipeid"] == "1"


async def test_readings_that_fail_cost_only_their_session(tmp_path: Path) -> None:
    numbers = ["1", "2", "3"]
    fake = Fake(sessions=[session(int(n)) for n in numbers], readings={n: [row(int(n))] for n in numbers})
    fake.always["/v1/fermentation/2"] = cut
    async with running(fake), opened(tmp_path / "here") as here:
        tally = await copy(here, fake.source)
        assert counts(tally)["readings"] == (2, 0, 0, 0, 1)
        fake.always.clear()
        assert counts(await copy(here, fake.source))["readings"] == (1, 0, 2, 0, 0)


async def test_readings_of_the_future_hide_none_that_follow(tmp_path: Path) -> None:
    fake = Fake(sessions=[session(1)], readings={"1": [row(1), row(2, created_at="2099-01-01T00:00:00Z")]})
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        fake.readings["1"][1:1] = [row(3), row(4, created_at="2026-03-05T08:00:00Z")]
        assert counts(await copy(here, fake.source))["readings"][0] == 2
        fake.readings["1"][3:3] = [row(5, created_at="2026-03-05T08:20:00Z")]
        assert counts(await copy(here, fake.source))["readings"][0] == 1


async def test_readings_without_ids_are_copied_once(tmp_path: Path) -> None:
    rows = [row(n % 30, _id=None) for n in range(40)]
    for known in rows:
        del known["_id"]
    fake = Fake(sessions=[session(1)], readings={"1": sorted(rows, key=lambda r: str(r["created_at"]))})
    async with running(fake), opened(tmp_path / "here") as here:
        assert counts(await copy(here, fake.source))["readings"] == (40, 0, 0, 0, 0)
        fake.sessions[0]["updated_at"] = "2026-03-02 00:00:00"
        assert counts(await copy(here, fake.source))["readings"] == (0, 0, 40, 0, 0)


async def test_equal_readings_on_both_sides_of_a_page_are_two(tmp_path: Path) -> None:
    rows = [row(n // 2, comment="", _id={"$oid": f"{n:024x}"}) for n in range(2001)]
    rows[999]["created_at"] = rows[1000]["created_at"] = rows[998]["created_at"]
    for n in (999, 1000):
        rows[n] |= {"gravity": "1.040"}
        del rows[n]["_id"]
    fake = Fake(sessions=[session(1)], readings={"1": rows})
    async with running(fake), opened(tmp_path / "here") as here:
        assert counts(await copy(here, fake.source))["readings"][0] == 2001


async def test_loops_of_recipes_copied_from_one_another_end(tmp_path: Path) -> None:
    ring = [
        recipe(n, copy_parent_id=str(n % 40 + 1), created_at=f"2026-01-{41 - n:02d} 00:00:00")
        for n in range(1, 41)
    ]
    fake = Fake(recipes=[*ring, recipe(77, copy_parent_id="77"), recipe(78, copy_parent_id="123456")])
    numbers, _, here = await copied(tmp_path, fake)
    assert numbers["recipes"][0] == 42
    parents = {r["id"]: r["copy_parent_id"] for r in here["recipes"]}
    assert parents["78"] is None
    assert parents["77"] is None


async def test_a_session_whose_recipe_is_gone_has_none(tmp_path: Path) -> None:
    async with opened(tmp_path / "here") as here:
        mine = await here.parts.library.add(1, content("Not theirs"))
        fake = Fake(sessions=[session(1, recipeid=str(mine.id))])
        async with running(fake):
            await copy(here, fake.source)
        (found,) = (await here.get("/v1/brewsessions/1"))["brewsessions"]
        assert (found["recipeid"], found["recipe_title"]) == ("0", "")


async def test_bad_photos_are_named_and_the_others_arrive(tmp_path: Path) -> None:
    names = ["3f1d9c1e-7c55-4b0e-9d3a-5f0a6f0f2b11", "../../etc/passwd", "short", "5" * 36]
    fake = Fake(
        recipes=[recipe(1)],
        xml={"1": XML},
        photos={"1": [{"uuid": name, "filename": "a.png"} for name in names] + [{}, None, {"uuid": ["a"]}]},
    )
    fake.always["/v1/recipes/1/photo"] = status(200, picture("red"))
    async with running(fake), opened(tmp_path / "here") as here:
        tally = await copy(here, fake.source)
        assert counts(tally)["photos"] == (4, 0, 0, 0, 3)
        photos = (await here.get("/v1/recipes/1/photos"))["photos"]
        uuids = [photo["uuid"] for photo in photos]
        assert names[0] in uuids
        assert not set(names[1:]) & set(uuids)
        assert counts(await copy(here, fake.source))["photos"] == (0, 0, 4, 0, 3)


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff\xd8\xff", b"GIF89a\x00\x00\x00\x00"])
async def test_a_photo_that_is_none_is_named(tmp_path: Path, body: bytes) -> None:
    fake = Fake(recipes=[recipe(1)], xml={"1": XML}, photos={"1": [{"uuid": "a"}]})
    fake.always["/v1/recipes/1/photo"] = status(200, body)
    numbers, reports, _ = await copied(tmp_path, fake)
    assert numbers["photos"] == (0, 0, 0, 0, 1)
    assert reports[0].startswith("a photo of recipe 1: ")


async def test_a_huge_record_is_lost_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "JSON_BYTES", 50_000)
    rows = [row(n) for n in range(150)]
    rows[60]["comment"] = "x" * 60_000
    fake = Fake(recipes=[recipe(1), recipe(2, notes="x" * 60_000), recipe(3)],
                sessions=[session(1)], readings={"1": rows})  # fmt: skip
    numbers, reports, _ = await copied(tmp_path, fake)
    assert numbers["recipes"] == (2, 0, 0, 0, 1)
    assert numbers["readings"] == (149, 0, 0, 0, 1)
    assert any("no. 61 of the list" in line for line in reports)


async def test_reports_are_bounded(tmp_path: Path) -> None:
    fake = Fake(recipes=[f"no. {n}" for n in range(REPORTS + 50)])
    async with running(fake), opened(tmp_path / "here") as here:
        tally = await copy(here, fake.source)
    assert (len(tally.reports), tally.unreported, tally.failures) == (REPORTS, 50, REPORTS + 50)
    assert json.loads(json.dumps(tally.as_json()))["counts"]["recipes"]["failed"] == REPORTS + 50
