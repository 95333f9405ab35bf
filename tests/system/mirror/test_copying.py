"""A gateway copies another one: what comes out is the same, and only what is new is copied again."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.domain.key import ALL_SCOPES
from gateway.mirror.client import MirrorStopped
from gateway.services.brewsessions import SessionChange
from gateway.store.queries import RecipeSearch
from tests.brew import brew
from tests.system.mirror.bench import (
    FIRST,
    NOW,
    add_recipe,
    content,
    copy,
    counts,
    device_reports,
    everything,
    fill,
    fits,
    item,
    picture,
    same,
    two,
    without,
)


async def test_everything_is_the_same_afterwards(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there)
        tally = await copy(here, there.source)
        assert tally.reports == []
        assert counts(tally) == {
            "recipes": (23, 0, 0, 0, 0),
            "brew sessions": (3, 0, 0, 0, 0),
            "readings": (2306, 0, 0, 0, 0),
            "photos": (3, 0, 0, 0, 0),
        }
        await same(there, here)


async def test_nothing_that_was_copied_is_sent_back(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there)
        await copy(here, there.source)
        sessions = await here.store.sessions.all()
        assert {(s.upstream, s.upstream_id) for s in sessions} == {(there.url, s.id) for s in sessions}
        assert await here.store.readings.count() == 2306
        assert await here.store.outbox.backlogs(there.url) == []
        assert await here.store.outbox.backlogs("http://other.example") == []


async def test_without_photos_none_is_asked_for(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=10)
        there.seen.clear()
        tally = await copy(here, replace(there.source, photos=False))
        assert not [path for path, _ in there.seen if "photo" in path]
        assert "photos" not in counts(tally)


async def test_a_second_run_asks_little_and_copies_nothing(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there)
        first = await copy(here, there.source)
        before = await everything(here)
        there.seen.clear()
        second = await copy(here, replace(there.source, photos=False))
        assert first.requests > 30
        assert second.requests == len(there.seen) <= 7
        newest = max(r.updated_at for r in (await there.store.recipes.search(_all_recipes()))[1])
        recipes = next(query for path, query in there.seen if path == "/v1/recipes")
        assert recipes["updated_from"] == _day(newest - 86_400)
        readings = {path: query for path, query in there.seen if "fermentation" in path}
        whole_days = (FIRST + 2299 * 900) // 86_400 - FIRST // 86_400 - 1
        assert int(readings["/v1/fermentation/1"]["skip"]) > (whole_days - 1) * 96
        assert counts(second)["brew sessions"] == (0, 0, 3, 0, 0)
        assert all(row[0] == row[1] == row[4] == 0 for row in counts(second).values())
        assert await everything(here) == before


def _all_recipes() -> RecipeSearch:
    return RecipeSearch(account_id=1, snapshots=True, limit=1000)


def _day(unix_seconds: int) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).date().isoformat()


async def test_what_changes_there_changes_here(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=50)
        await copy(here, there.source)
        await there.clock.sleep(3 * 86_400)
        recipe = await there.store.recipes.get(3)
        session = await there.store.sessions.get(1)
        assert recipe is not None
        assert session is not None
        folder = await there.parts.library.add_folder(1, "recipe", "New folder")
        await there.parts.library.file(
            replace(recipe, content=content("Renamed", ibutinseth="30")), folder.id
        )
        await there.parts.brewsessions.update_session(
            session, SessionChange(phase="Conditioning", notes="dry", details={"totalwater": "33"})
        )
        fresh = await add_recipe(there, content("Fresh"), token="f" * 13, updated_at=int(there.clock.now()))
        await there.parts.brewsessions.add_session(1, SessionChange(recipe_id=fresh.id))
        await there.take(1, [item(60), item(61, ph="4.2")])
        await there.parts.photos.add(fresh.id, picture("black"), "fresh.png")
        here.clock.__dict__.update(there.clock.__dict__)
        tally = await copy(here, there.source)
        assert counts(tally)["recipes"][:2] == (2, 1)
        assert counts(tally)["brew sessions"] == (1, 1, 2, 0, 0)
        assert counts(tally)["readings"][0] == 2
        assert counts(tally)["photos"] == (1, 0, 3, 0, 0)
        await same(there, here)


async def test_a_devices_last_reading_comes_along_though_its_session_did_not_change(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        await copy(here, there.source)
        session = await there.store.sessions.get(2)
        assert session is not None
        await there.clock.sleep(7200)
        await device_reports(there, session, 5)
        tally = await copy(here, there.source)
        assert counts(tally)["brew sessions"] == (0, 0, 3, 0, 0)
        assert (
            counts(tally)["readings"][0] == 5
        )  # three of them equal to earlier ones, but readings of their own
        await same(there, here)


async def test_ids_that_are_taken_are_given_anew_and_everything_still_fits_together(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=30)
        await here.parts.library.add_folder(1, "recipe", "Our own folder")
        own = [await here.parts.library.add(1, content(f"Own {n}")) for n in range(4)]
        mine = await here.parts.brewsessions.add_session(1, SessionChange(batchcode="OWN"))
        await here.take(mine.id, [item(3, comment="ours")])  # the `_id` of a reading there
        (photo, *_) = await there.store.photos.of_recipe(2)
        await here.parts.photos.add_copy(own[0].id, picture("white"), "own.png", "", photo.uuid, 1)
        before = {
            path: answer
            for path, answer in (await everything(here)).items()
            if "?" not in path or "uuid" in path
        }
        tally = await copy(here, there.source)
        assert tally.failures == 0
        known = await here.store.mirrors.copies(there.url, 1, "recipe")
        assert known["1"].local_id not in {"", "1"}
        await fits(there, here)
        after = await everything(here)
        assert {path: after[path] for path in before} == before
        assert (await here.store.readings.count(), len(await here.store.sessions.all())) == (34 + 1 + 2, 4)
        again = await copy(here, there.source)
        assert all(row[0] == row[1] == row[4] == 0 for row in counts(again).values())
        assert await everything(here) == after


async def test_it_is_copied_into_the_account_that_is_named(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        account = await here.parts.access.add_account("cellar")
        mine = await here.parts.library.add(1, content("Own"))
        before = await everything(here)
        await copy(here, there.source, account.id)
        assert await everything(here) == before
        here.key = await here.parts.access.add("cellar", ALL_SCOPES, "cellar")
        found = await everything(here)
        assert len(found["/v1/recipes?limit=100&snapshots=true&sort=title:1"]["recipes"]) == 23
        assert f"/v1/recipes/{mine.id}" not in found
        assert {s.account_id for s in await here.store.sessions.all()} == {account.id}
        assert (await here.get("/v1/brewsessions"))["brewsessions"][0]["loginid"] == str(account.id)


async def test_two_accounts_may_copy_the_same_service(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=40)
        account = await here.parts.access.add_account("second")
        first = await copy(here, there.source)
        second = await copy(here, there.source, account.id)
        assert counts(first) == counts(second)
        assert second.reports == []
        await same(there, here)
        assert await here.store.readings.count() == 2 * 46


async def test_what_was_changed_here_later_stays(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        await copy(here, there.source)
        for at, when, phase in ((there, 60.0, "changed there"), (here, 120.0, "changed here")):
            await at.clock.sleep(when)
            session, recipe = await at.store.sessions.get(1), await at.store.recipes.get(3)
            assert session is not None
            assert recipe is not None
            await at.parts.brewsessions.update_session(session, SessionChange(phase=phase))
            await at.parts.library.file(replace(recipe, content=content(phase)), None)
        tally = await copy(here, there.source)
        assert counts(tally)["brew sessions"] == (0, 0, 2, 1, 0)
        assert counts(tally)["recipes"][3] == 1
        assert (await here.get("/v1/brewsessions/1"))["brewsessions"][0]["phase"] == "changed here"
        assert (await here.get("/v1/recipes/3"))["recipes"][0]["title"] == "changed here"
        await there.clock.sleep(300)
        session = await there.store.sessions.get(1)
        assert session is not None
        await there.parts.brewsessions.update_session(session, SessionChange(phase="changed there again"))
        await copy(here, there.source)
        assert (await here.get("/v1/brewsessions/1"))["brewsessions"][0]["phase"] == "changed there again"


async def test_what_vanishes_there_stays_here_and_what_is_deleted_here_does_not_come_back(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        await copy(here, there.source)
        now = int(NOW)
        await there.store.recipes.delete(4, now)
        await there.store.sessions.delete(3, now)
        await here.store.recipes.delete(5, now)
        await here.store.sessions.delete(1, now)
        await there.take(1, [item(100)])
        for _ in range(2):
            assert (await copy(here, there.source)).failures == 0
        assert await here.store.recipes.get(4) is not None
        assert await here.store.sessions.get(3) is not None
        assert await here.store.recipes.get(5) is None
        assert await here.store.sessions.get(1) is None
        assert len(await here.store.sessions.all()) == 2


async def test_a_photo_that_was_deleted_here_does_not_come_back(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        await copy(here, there.source)
        (photo,) = await here.store.photos.of_recipe(1)
        await here.parts.photos.remove(1, photo.uuid)
        assert counts(await copy(here, there.source))["photos"] == (0, 0, 3, 0, 0)
        assert await here.store.photos.of_recipe(1) == []


async def test_a_session_that_is_no_longer_forwarded_stays_so(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        await copy(here, there.source)
        session = await here.store.sessions.get(1)
        assert session is not None
        await here.store.sessions.update(replace(session, upstream_id=None))
        await there.clock.sleep(60)
        theirs = await there.store.sessions.get(1)
        assert theirs is not None
        await there.parts.brewsessions.update_session(theirs, SessionChange(notes="new"))
        await copy(here, there.source)
        session = await here.store.sessions.get(1)
        assert session is not None
        assert (session.notes, session.upstream_id) == ("new", None)
        assert len(await here.store.sessions.all()) == 3


async def test_snapshots_are_found_by_their_sessions_where_the_list_hides_them(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        total, _ = await there.store.recipes.search(replace(_all_recipes(), snapshots=False))
        there.hide_snapshots()
        tally = await copy(here, there.source)
        assert tally.reports == []
        assert total == 21
        there.before = None
        await same(there, here)


async def test_a_recipe_that_only_its_session_shows_is_copied_from_there(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        session = await there.store.sessions.get(1)
        assert session is not None
        there.hide_snapshots(alone=True)
        tally = await copy(here, replace(there.source, photos=False))
        assert len(tally.reports) == 2  # both snapshots have no BeerXML of their own
        assert all("its BeerXML was made from its record" in line for line in tally.reports)
        there.before = None
        theirs, ours = await there.get("/v1/brewsessions/1"), await here.get("/v1/brewsessions/1")
        assert without(ours, "folder_id") == without(theirs, "folder_id")
        assert (await here.ask(f"/v1/recipes/{session.recipe_id}.xml"))[0] == 200


async def test_a_snapshot_that_is_listed_before_its_original_finds_it(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        for number in range(30):
            await add_recipe(there, content(f"R{number}"), created_at=int(NOW), token=f"{number:013x}")
        original = await add_recipe(there, content("Original"), created_at=int(NOW), token="a" * 13)
        await add_recipe(
            there, content("Original"), created_at=1, token="b" * 13, parent_id=original.id, snapshot=True
        )
        await add_recipe(here, content("In the way"), id=original.id, token="c" * 13)
        tally = await copy(here, there.source)
        assert counts(tally) == {"recipes": (32, 0, 1, 0, 0)}
        known = await here.store.mirrors.copies(there.url, 1, "recipe")
        snapshot = await here.store.recipes.get(int(known[str(original.id + 1)].local_id))
        assert snapshot is not None
        assert str(snapshot.parent_id) == known[str(original.id)].local_id != str(original.id)


async def test_a_session_that_was_forwarded_there_before_is_the_copy(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        mine = await here.store.sessions.add(
            replace(brew(batchcode="OURS", upstream_id=1, now=int(NOW)), id=77)
        )
        other = await here.store.sessions.add(brew(batchcode="OTHER", upstream_id=2, now=int(NOW)))
        await here.take(mine.id, [item(1)])
        batch = await here.store.outbox.begin(there.url, mine.id, 10)
        assert batch is not None
        await here.store.outbox.settle(batch)
        tally = await copy(here, there.source)
        assert counts(tally)["brew sessions"] == (2, 1, 0, 0, 0)
        assert counts(tally)["readings"] == (4 + 6, 0, 1, 0, 0)
        adopted, untouched = await here.store.sessions.get(77), await here.store.sessions.get(other.id)
        assert adopted is not None
        assert (adopted.batchcode, adopted.phase, adopted.upstream) == ("HP001", "All Gone", there.url)
        assert untouched == other


async def test_unnamed_sessions_are_the_copies_where_the_gateway_forwards_there(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        await here.store.sessions.add(replace(brew(upstream_id=2, now=int(NOW)), id=77))
        await copy(here, replace(there.source, unnamed=True))
        known = await here.store.mirrors.copies(there.url, 1, "brewsession")
        assert {remote: entry.local_id for remote, entry in known.items()} == {"1": "1", "2": "77", "3": "3"}


@pytest.mark.parametrize(
    ("path", "message"),
    [("/v1", r"has no list of recipes .*without /v1"), ("/nothing", "without /v1")],
)
async def test_a_wrong_address_is_explained(tmp_path: Path, path: str, message: str) -> None:
    async with two(tmp_path) as (there, here):
        with pytest.raises(MirrorStopped, match=message):
            await copy(here, replace(there.source, url=there.url + path))


async def test_a_wrong_key_is_explained_and_not_shown(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        with pytest.raises(MirrorStopped, match=r"refuses the key .*look at the key file") as stopped:
            await copy(here, replace(there.source, key="wrong-key"))
        assert "wrong-key" not in str(stopped.value)


async def test_a_slash_at_the_end_of_the_address_makes_no_difference(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await fill(there, readings=5)
        await copy(here, there.source)
        tally = await copy(here, replace(there.source, url=f"{there.url}/"))
        assert all(row[0] == 0 for row in counts(tally).values())
