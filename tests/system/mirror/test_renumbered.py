"""A source whose numbers are other records' now (installed anew, set back to a backup) overwrites nothing."""

import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.services.brewsessions import SessionChange
from gateway.store.sqlite.engine import checksum, schema
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.engine.schema import migrate, migrations
from tests.system.mirror.bench import (
    NOW,
    Instance,
    content,
    copy,
    counts,
    everything,
    fill,
    item,
    opened,
    picture,
    reading,
    two,
)
from tests.system.mirror.fake import Fake, recipe, row, running, session
from tests.system.mirror.test_interrupted import Crash, crash_at

DAY_S = 86_400.0


def instead(there: Instance, other: Instance) -> None:
    """Under the address of one gateway, another one answers from now on."""

    async def ask_other(request: web.Request) -> web.StreamResponse:
        headers = {"X-API-KEY": other.key, "Accept": request.headers.get("Accept", "*/*")}
        url, body = f"{other.url}{request.path_qs}", await request.read()
        async with other.http.request(request.method, url, headers=headers, data=body) as answer:
            media = answer.headers["Content-Type"]
            return web.Response(
                body=await answer.read(), status=answer.status, headers={"Content-Type": media}
            )

    there.before = ask_other


@asynccontextmanager
async def installed_anew(directory: Path) -> AsyncIterator[tuple[Instance, Instance, Instance]]:
    """What was copied, what copies, and what will be there instead: other records under the same numbers."""
    async with two(directory) as (there, here), opened(directory / "anew") as anew:
        await fill(there, recipes=6, readings=30)
        await copy(here, there.source)
        for at in (anew, here):
            await at.clock.sleep(9 * DAY_S)
        first = await anew.parts.library.add(1, content("Brewed anew"))
        second = await anew.parts.library.add(1, content("Also new"))
        await anew.parts.brewsessions.add_session(1, SessionChange(recipe_id=second.id, batchcode="NEW1"))
        await anew.parts.brewsessions.add_session(1, SessionChange(recipe_id=first.id, batchcode="NEW2"))
        await anew.take(1, [item(n + 7000, comment="anew") for n in range(12)])
        await anew.parts.photos.add(first.id, picture("black"), "anew.png")
        instead(there, anew)
        yield there, here, anew


def loud(reports: list[str]) -> list[str]:
    return [line for line in reports if "was renumbered" in line]


async def test_nothing_that_was_copied_changes_and_what_is_new_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with installed_anew(tmp_path) as (there, here, _):
        before = {path: got for path, got in (await everything(here)).items() if "?limit" not in path}
        with caplog.at_level(logging.WARNING):
            tally = await copy(here, there.source)
        after = await everything(here)
        assert {path: after[path] for path in before} == before
        assert counts(tally)["recipes"][:2] == (4, 0)  # two, and a snapshot of each
        assert counts(tally)["brew sessions"] == (2, 0, 0, 0, 0)
        assert counts(tally)["readings"] == (12, 0, 0, 0, 0)
        assert counts(tally)["photos"][:2] == (1, 0)
        assert [tally.reports[0]] == loud(tally.reports)
        assert f"{there.url} was renumbered" in tally.reports[0]
        assert sum("was renumbered" in record.message for record in caplog.records) == 1
        sessions = {s.batchcode: s for s in await here.store.sessions.all()}
        titles = {}
        for code in ("NEW1", "NEW2"):
            entry = (await here.get(f"/v1/brewsessions/{sessions[code].id}"))["brewsessions"][0]
            titles[code] = entry["recipe"]["title"]
        assert titles == {"NEW1": "Also new", "NEW2": "Brewed anew"}
        new = (await here.get(f"/v1/fermentation/{sessions['NEW1'].id}"))["readings"]
        assert [got["comment"] for got in new] == ["anew"] * 12
        again = await copy(here, there.source)
        assert loud(again.reports) == []
        assert all(got[0] == got[1] == got[4] == 0 for got in counts(again).values())


async def test_readings_of_the_old_session_do_not_go_into_the_new_one(tmp_path: Path) -> None:
    async with installed_anew(tmp_path) as (there, here, _):
        old = await here.store.sessions.get(1)
        assert old is not None
        mapped = await here.parts.brewsessions.add_session(1, SessionChange(batchcode="MAPPED"))
        await here.store.targets.map(mapped.id, there.url, 1)
        for number, into in enumerate((old, mapped)):
            await here.store.readings.import_readings(into, [reading(number)], reset=False)
        assert len(await here.store.outbox.backlogs(there.url)) == 2
        tally = await copy(here, there.source)
        assert await here.store.outbox.backlogs(there.url) == []
        cut = await here.store.sessions.get(1)
        assert cut == replace(old, upstream_id=None)
        lines = [line for line in tally.reports if "is no longer forwarded: its number there, 1," in line]
        assert [line.split()[2] for line in lines] == ["1", str(mapped.id)]
        new = next(s for s in await here.store.sessions.all() if s.batchcode == "NEW1")
        assert (new.upstream, new.upstream_id) == (there.url, 1)


async def test_the_session_of_another_service_or_account_is_forwarded_as_before(tmp_path: Path) -> None:
    async with installed_anew(tmp_path) as (there, here, _):
        account = await here.parts.access.add_account("second")
        theirs = await here.parts.brewsessions.add_session(account.id, SessionChange(batchcode="B"))
        elsewhere = await here.parts.brewsessions.add_session(1, SessionChange(batchcode="C", upstream_id=1))
        await here.store.sessions.update(replace(theirs, upstream=there.url, upstream_id=1))
        await copy(here, there.source)
        for kept in (theirs, elsewhere):
            found = await here.store.sessions.get(kept.id)
            assert found is not None
            assert found.upstream_id == 1


async def test_the_old_source_under_its_address_again_is_known_again(tmp_path: Path) -> None:
    async with installed_anew(tmp_path) as (there, here, anew):
        await copy(here, there.source)
        before = await everything(here)
        for _ in range(2):
            there.before = None
            tally = await copy(here, there.source)
            assert len(loud(tally.reports)) == 1
            assert all(got[0] == got[1] == got[4] == 0 for got in counts(tally).values()), counts(tally)
            instead(there, anew)
            tally = await copy(here, there.source)
            assert all(got[0] == got[1] == got[4] == 0 for got in counts(tally).values()), counts(tally)
        assert await everything(here) == before


async def test_a_crash_before_any_commit(tmp_path: Path) -> None:
    async with installed_anew(tmp_path) as (there, here, _):
        await here.store.close()
        number, crashed = 0, True
        while crashed:
            number += 1
            folder = tmp_path / f"copy {number}"
            folder.mkdir()
            for name in (DATABASE_NAME, "photos"):
                _clone(here.directory / name, folder / name)
            async with opened(folder, listening=False) as copied:
                copied.clock.__dict__.update(here.clock.__dict__)
                crash_at(copied, number)
                try:
                    await copy(copied, there.source)
                    crashed = False
                except Crash:
                    pass
            async with opened(folder) as copied:
                copied.clock.__dict__.update(here.clock.__dict__)
                tally = await copy(copied, there.source)
                assert tally.failures == 0
                codes = sorted(s.batchcode for s in await copied.store.sessions.all())
                assert codes == ["DP001", "HP001", "NEW1", "NEW2", "NONE"], number
                recipes = (await copied.get("/v1/recipes?snapshots=true&limit=100"))["count"]
                assert (int(recipes), await copied.store.readings.count()) == (6 + 4, 36 + 12), number
                assert await copied.store.outbox.backlogs(there.url) == []
                old = await copied.store.sessions.get(1)
                assert old is not None
                assert (old.batchcode, old.upstream_id) == ("HP001", None)
        assert number > 15
        await here.store.open()


def _clone(source: Path, target: Path) -> None:
    if source.is_dir():
        target.mkdir()
        for entry in source.iterdir():
            _clone(entry, target / entry.name)
    elif source.exists():
        target.write_bytes(source.read_bytes())


def newer(number: int, **more: Any) -> Any:
    """A recipe that was made under a number that had been another's."""
    stamps = {"created_at": "2026-03-02 10:00:00", "updated_at": "2026-03-02 10:00:00"}
    return recipe(number, **{**stamps, "recipetoken": f"{number + 900:013x}", **more})


async def test_a_source_set_back_to_a_backup_uses_numbers_again(tmp_path: Path) -> None:
    fake = Fake(
        recipes=[recipe(n) for n in (1, 2, 3)],
        sessions=[session(1, recipeid="1"), session(2, recipeid="3")],
        readings={"1": [row(1), row(2)], "2": [row(3), row(4)]},
    )
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        lost = fake.recipes.pop(), fake.sessions.pop(), fake.readings.pop("2")
        fake.sessions[0] |= {"phase": "Older", "updated_at": "2026-03-01 20:00:00"}
        tally = await copy(here, fake.source)  # vanished: what is here stays, and is newer
        assert loud(tally.reports) == []
        assert counts(tally)["brew sessions"] == (0, 0, 0, 1, 0)
        (first,) = (await here.get("/v1/brewsessions/1"))["brewsessions"]
        assert first["phase"] == "Conditioning"
        fake.recipes.append(newer(3, title="Under its number"))
        fake.sessions.append(session(2, batchcode="REUSED", recipeid="3", created_at="2026-03-02 11:00:00"))
        fake.readings["2"] = [row(3, comment="other"), row(9)]
        tally = await copy(here, fake.source)
        assert len(loud(tally.reports)) == 1
        assert counts(tally)["readings"][0] == 2
        assert (await here.get("/v1/recipes/3"))["recipes"][0]["title"] == lost[0]["title"]
        sessions = {s.batchcode: s for s in await here.store.sessions.all()}
        assert sorted(sessions) == ["B1", lost[1]["batchcode"], "REUSED"]
        entry = (await here.get(f"/v1/brewsessions/{sessions['REUSED'].id}"))["brewsessions"][0]
        assert entry["recipe"]["title"] == "Under its number"
        for code, comments in (("B2", ["no. 3", "no. 4"]), ("REUSED", ["other", "no. 9"])):
            found = (await here.get(f"/v1/fermentation/{sessions[code].id}"))["readings"]
            assert [got["comment"] for got in found] == comments


async def test_the_token_alone_makes_it_another_recipe_and_silence_makes_it_none(tmp_path: Path) -> None:
    fake = Fake(recipes=[recipe(1, title="First")], counts=False)
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        later = "2026-02-28 00:00:00"
        fake.recipes = [recipe(1, title="Renamed", recipetoken="", created_at=None, updated_at=later)]
        tally = await copy(here, fake.source)
        assert (counts(tally)["recipes"][:2], loud(tally.reports)) == ((0, 1), [])
        fake.recipes = [recipe(1, title="Other", recipetoken="f" * 13, updated_at="2026-02-28 01:00:00")]
        tally = await copy(here, fake.source)
        assert (counts(tally)["recipes"][:2], len(loud(tally.reports))) == ((1, 0), 1)
        titles = {r["title"] for r in (await here.get("/v1/recipes"))["recipes"]}
        assert titles == {"Renamed", "Other"}


async def test_a_snapshots_parent_is_the_recipe_that_has_the_number_now(tmp_path: Path) -> None:
    """Also where the list of what changed lately does not show that one, nor the session's recipe."""
    fake = Fake(recipes=[recipe(1), recipe(2), recipe(3)], sessions=[session(1, recipeid="2")])
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        fake.recipes[1] = recipe(2, title="Anew", recipetoken="e" * 13)
        fake.recipes.append(newer(4, title="Snapshot", copy_parent_id="2", snapshot="1"))
        fake.sessions.append(session(9, recipeid="3", batchcode="LATER"))
        fake.recipes[2] = recipe(3, title="Anew too", recipetoken="d" * 13)
        fake.always = {"/v1/recipes": _lately(fake)}
        await copy(here, fake.source)
        listed = (await here.get("/v1/recipes?snapshots=true"))["recipes"]
        by_title = {r["title"]: r for r in listed}
        assert sorted(by_title) == ["Anew", "Anew too", "Recipe 1", "Recipe 2", "Recipe 3", "Snapshot"]
        assert by_title["Snapshot"]["copy_parent_id"] == by_title["Anew"]["id"]
        new = next(s for s in await here.store.sessions.all() if s.batchcode == "LATER")
        assert str(new.recipe_id) == by_title["Anew too"]["id"]


def _lately(fake: Fake) -> Any:
    """The list of recipes as a service gives it that knows `updated_from`."""

    async def behave(request: web.Request) -> web.StreamResponse:
        since = request.query.get("updated_from", "")
        everyone = fake.recipes
        fake.recipes = [r for r in everyone if r["updated_at"] >= since and (r["id"] == "4" or not since)]
        try:
            return fake.answer(request)
        finally:
            fake.recipes = everyone

    return behave


async def test_recipes_that_come_late_with_older_times_are_found(tmp_path: Path) -> None:
    fake = Fake(recipes=[recipe(1), recipe(2)])
    fake.always = {"/v1/recipes": _lately(fake)}
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        old = {"created_at": "2025-01-01 00:00:00", "updated_at": "2025-01-01 00:00:00"}
        fake.recipes.insert(0, recipe(7, **old))
        assert counts(await copy(here, fake.source))["recipes"][0] == 1
        fake.requests.clear()
        assert counts(await copy(here, fake.source)).get("recipes", (0,))[0] == 0
        assert len([path for path in fake.paths if path.startswith("/v1/recipes?")]) == 2


async def test_the_photo_of_a_recipe_that_has_another_number_now_is_kept_with_both(tmp_path: Path) -> None:
    name = "3f1d9c1e-7c55-4b0e-9d3a-5f0a6f0f2b11"
    photo = {"uuid": name, "filename": "a.png", "created_at": "2026-02-20 09:00:00"}
    fake = Fake(recipes=[recipe(1), recipe(2)], photos={"1": [photo], "2": []})

    async def give(_: web.Request) -> web.StreamResponse:
        return web.Response(body=picture("red"), content_type="image/png")

    fake.always = {"/v1/recipes/1/photo": give, "/v1/recipes/2/photo": give}
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        fake.recipes = [newer(1, title="Anew"), newer(2, title="The first one")]
        fake.photos = {"1": [photo | {"uuid": "other"}], "2": [photo]}
        tally = await copy(here, fake.source)
        assert counts(tally)["photos"] == (2, 0, 0, 0, 0)
        photos = {}
        for found in (await here.get("/v1/recipes"))["recipes"]:
            photos[found["title"]] = [p.uuid for p in await here.store.photos.of_recipe(int(found["id"]))]
        assert photos["Recipe 1"] == [name]
        assert [len(photos[title]) for title in ("Recipe 2", "Anew", "The first one")] == [0, 1, 1]
        assert counts(await copy(here, fake.source))["photos"] == (0, 0, 2, 0, 0)


async def test_the_same_uuid_made_at_another_time_is_another_photo(tmp_path: Path) -> None:
    name = "3f1d9c1e-7c55-4b0e-9d3a-5f0a6f0f2b11"
    photo = {"uuid": name, "filename": "a.png", "created_at": "2026-02-20 09:00:00"}
    fake = Fake(recipes=[recipe(1)], photos={"1": [photo]})
    colours = iter(["red", "blue"])

    async def give(_: web.Request) -> web.StreamResponse:
        return web.Response(body=picture(next(colours)), content_type="image/png")

    fake.always = {"/v1/recipes/1/photo": give}
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        photo["created_at"] = "2026-02-25 09:00:00"
        assert counts(await copy(here, fake.source))["photos"] == (1, 0, 0, 0, 0)
        assert len(await here.store.photos.of_recipe(1)) == 2


async def test_a_mirror_of_before_knows_its_records_by_what_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was copied before identities were kept: the times here are those of the records there."""
    fake = Fake(recipes=[recipe(1), recipe(2)], sessions=[session(1), session(2)])
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        await here.store.sessions.delete(2, int(NOW))
    _back_to_schema(tmp_path / "here" / DATABASE_NAME, 8, monkeypatch)
    async with running(fake), opened(tmp_path / "here") as here:
        old_url, new_url = await _take_over(here, fake.url), fake.url
        assert old_url != new_url
        tally = await copy(here, fake.source)
        assert tally.reports == []
        assert all(got[0] == got[1] == 0 for got in counts(tally).values())
        fake.recipes[0] = newer(1, title="Anew")
        fake.sessions = [session(1, created_at="2026-03-02 09:00:00"), session(2, phase="changed there",
                         updated_at="2026-03-02 09:00:00")]  # fmt: skip
        tally = await copy(here, fake.source)
        assert counts(tally)["recipes"][0] == counts(tally)["brew sessions"][0] == 1
        assert len(await here.store.sessions.all()) == 2  # the one that was deleted stays so
        assert (await here.get("/v1/recipes/1"))["recipes"][0]["title"] == "Recipe 1"


def _back_to_schema(path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows in a database of an older schema."""
    old = path.with_name("old")
    with monkeypatch.context() as past, closing(sqlite3.connect(old, isolation_level=None)) as connection:
        known = [entry for entry in migrations() if entry[0] <= version]
        past.setattr(schema, "migrations", lambda: known)
        checksum.install(connection)
        migrate(connection)
        connection.execute("ATTACH ? AS new", (str(path),))
        connection.execute("PRAGMA foreign_keys = OFF")
        for (table,) in connection.execute(
            "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name IN ('accounts', 'recipes', "
            "'recipe_texts', 'brewsessions', 'mirrored', 'keys')"
        ).fetchall():
            columns = ", ".join(
                column[1] for column in connection.execute(f"PRAGMA main.table_info({table})").fetchall()
            )
            copying = f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}"  # noqa: S608
            connection.execute(copying)
    for name in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        name.unlink(missing_ok=True)
    old.rename(path)


async def _take_over(here: Instance, url: str) -> str:
    """The fake has another port now: what was copied counts as copied from there. Returns where it was."""

    def work(connection: sqlite3.Connection) -> str:
        ((old,),) = connection.execute("SELECT DISTINCT upstream FROM mirrored").fetchall()
        connection.execute("UPDATE mirrored SET upstream = ?", (url,))
        connection.execute("UPDATE brewsessions SET upstream = ?", (url,))
        return str(old)

    moved: str = await here.store._writer.run(work)
    return moved
