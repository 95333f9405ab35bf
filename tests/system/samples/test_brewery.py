"""A filled account holds together: recipes, brew sessions, readings fit each other and the clock."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gateway.domain import units
from gateway.domain.brewsession import SessionEntry
from gateway.domain.statistics import FermentationStats, current_stats
from gateway.errors import NameTaken
from gateway.samples.brewery import Filled, fill
from gateway.samples.curves import INTERVAL_S
from gateway.samples.sessions import sample_brewery
from gateway.services.build import Services, build_services
from gateway.store.queries import Order, RecipeSearch, Search
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.clock import FakeClock

NOW = 1_772_616_600.0
"""2026-03-04T09:30:00Z."""

DAY_S = 86_400
OLDEST_FIRST = Order(descending=False)
SAME_SEED, OTHER_SEED = "same seed", "other seed"
OWNER = 1


@dataclass
class Made:
    """A data directory with three filled accounts, what was said of each, and the progress of the first."""

    directory: Path
    accounts: dict[str, int]
    filled: dict[str, Filled]
    steps: list[tuple[int, int, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Three fills take some seconds, so they are done once."""
    return asyncio.run(_made(tmp_path_factory.mktemp("brewery")))


async def _made(directory: Path) -> Made:
    store = SqliteStore(directory)
    await store.open()
    services = build_services(store, directory, FakeClock(NOW))
    await services.access.start()
    steps: list[tuple[int, int, str]] = []
    accounts = {"owner": OWNER}
    filled = {"owner": await fill(services, OWNER, lambda *step: steps.append(step), photos=False)}
    for name, seed in ((SAME_SEED, 1), (OTHER_SEED, 2)):
        accounts[name] = (await store.accounts.add(name, int(NOW))).id
        filled[name] = await fill(services, accounts[name], lambda *_: None, seed=seed, photos=False)
    await store.close()
    return Made(directory, accounts, filled, steps)


@pytest.fixture
async def store(made: Made) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(made.directory)
    await store.open_read_only()
    yield store
    await store.close()


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[Services]:
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, FakeClock(NOW))
    await services.access.start()
    yield services
    await store.close()


async def sessions(store: SqliteStore, account_id: int = OWNER) -> list[SessionEntry]:
    return (await store.sessions.search(Search(account_id=account_id, order=OLDEST_FIRST, limit=100)))[1]


async def stats(store: SqliteStore, entry: SessionEntry) -> FermentationStats:
    milestones = await store.sessions.milestones(entry.session.id)
    return current_stats(milestones, entry.session)


async def readings(store: SqliteStore, session_id: int) -> list[dict[str, Any]]:
    lines = store.readings.json_lines(last=10_000, device_id=None, session_id=session_id)
    return [json.loads(line) async for line in lines]


async def test_it_says_what_it_made(made: Made, store: SqliteStore) -> None:
    filled = made.filled["owner"]
    assert (filled.recipes, filled.sessions, filled.photos) == (12, 16, 0)
    assert 20_000 < filled.readings < 40_000
    assert sum(each.readings for each in made.filled.values()) == await store.readings.count()
    assert await store.quarantine.count() == 0
    assert [(done, of) for done, of, _ in made.steps] == [(done, 28) for done in range(28)]
    running = next(entry for entry in await sessions(store) if entry.session.id == filled.running)
    assert running.device is not None
    recipe = await store.recipes.get(filled.recipe)
    assert recipe is not None
    assert recipe.content.title == running.recipe_title


async def test_sessions_fit_their_recipes_and_the_clock(store: SqliteStore) -> None:
    found = await sessions(store)
    assert {entry.session.phase for entry in found} == {
        *("Planning", "Primary Fermentation", "Conditioning", "Ready To Drink", "All Gone"),
    }
    assert {entry.folder_name for entry in found} == {None, "Kegged", "Bottled"}
    assert {entry.session.details["userunit"] for entry in found} == {"metric", "us"}
    assert len({entry.session.batchcode for entry in found}) == len(found)
    for earlier, later in pairwise(found):
        assert earlier.session.created_at < later.session.created_at
    for entry in found:
        session = entry.session
        assert session.created_at <= session.updated_at <= NOW
        assert session.notes
        snapshot = await store.recipes.get(session.recipe_id)
        assert snapshot is not None
        assert snapshot.snapshot
        assert (snapshot.created_at, snapshot.content.title) == (session.created_at, entry.recipe_title)
    span = found[-1].session.created_at - found[0].session.created_at
    assert span > 140 * DAY_S


async def test_recipes_were_there_before_they_were_brewed(store: SqliteStore) -> None:
    found = await sessions(store)
    count, recipes = await store.recipes.search(RecipeSearch(account_id=OWNER, order=OLDEST_FIRST, limit=100))
    assert count == 12
    assert {recipe.folder_name for recipe in recipes} > {None, "House beers"}
    assert [recipe.id for recipe in recipes] == sorted(recipe.id for recipe in recipes)
    brewed = {number for recipe in recipes for number, _ in recipe.brew_sessions}
    assert brewed == {entry.session.id for entry in found}
    begun = {entry.session.id: entry.session.created_at for entry in found}
    for recipe in recipes:
        assert recipe.created_at <= recipe.updated_at <= min(begun[n] for n, _ in recipe.brew_sessions)


async def test_readings_are_those_of_a_fermentation_of_that_recipe(store: SqliteStore) -> None:
    for entry in await sessions(store):
        await _readings_fit(store, entry)


async def _readings_fit(store: SqliteStore, entry: SessionEntry) -> None:
    session, shown = entry.session, await stats(store, entry)
    stored = await readings(store, session.id)
    if session.phase == "Planning":
        assert (stored, entry.device) == ([], None)
        assert session.userdate > "2026-03-04"
        return
    assert session.created_at < shown.updated <= NOW
    assert {reading["source"] for reading in stored} > {"manual"}
    assert all(reading["flags"] == [] for reading in stored)
    begins = stored[0]["created_at"]
    assert begins.startswith(session.userdate)
    recipe = await store.recipes.get(session.recipe_id)
    assert recipe is not None
    og = units.to_sg(shown.og, shown.og_unit)
    assert og == pytest.approx(float(str(recipe.content.record["og"])), abs=0.003)
    if entry.device is None:
        fg = units.to_sg(shown.fg, shown.fg_unit)
        assert fg == pytest.approx(float(str(recipe.content.record["fg"])), abs=0.003)
        assert shown.abv == pytest.approx(float(str(recipe.content.record["abv"])), abs=0.5)
        assert shown.ph
    else:
        assert shown.updated > NOW - 2 * INTERVAL_S
        assert entry.device.created_at == shown.updated
        assert session.phase in {"Primary Fermentation", "Conditioning"}


async def test_three_families_of_devices_report_until_now_each_in_its_own_way(store: SqliteStore) -> None:
    summaries = await store.devices.summaries()
    assert {(s.device.family, s.gravity_unit, s.temp_unit) for s in summaries} == {
        ("ispindel", "P", "C"),
        ("gravitymon", "G", "C"),
        ("tilt", "G", "F"),
    }
    for summary in summaries:
        assert summary.last_seen_at is not None
        assert NOW - 2 * INTERVAL_S < summary.last_seen_at <= NOW
        assert summary.device.session_id is not None
    finished = [entry for entry in await sessions(store) if entry.session.phase == "All Gone"]
    members = {
        tuple(reading[member] for member in ("name", "source", "gravity_unit", "temp_unit"))
        for entry in finished
        for reading in await readings(store, entry.session.id)
        if reading["name"]
    }
    assert members == {
        ("iSpindel-Cellar", "ispindel", "P", "C"),
        ("GravityMon-Shed", "gravitymon", "G", "C"),
        ("GREEN", "tilt", "G", "F"),
    }


async def test_the_same_seed_and_time_give_the_same_and_accounts_do_not_meet(
    made: Made, store: SqliteStore
) -> None:
    assert made.filled["owner"].readings == made.filled[SAME_SEED].readings
    ours, theirs = await sessions(store), await sessions(store, made.accounts[SAME_SEED])
    assert [_without_ids(entry) for entry in ours] == [_without_ids(entry) for entry in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert await stats(store, one) == await stats(store, other)
        assert (one.device is None) == (other.device is None)
        assert one.device is None or one.device.device_id != (other.device and other.device.device_id)


async def test_another_seed_is_another_noise(made: Made, store: SqliteStore) -> None:
    texts = []
    for name in ("owner", OTHER_SEED):
        entry = (await sessions(store, made.accounts[name]))[1]
        texts.append([reading["gravity"] for reading in await readings(store, entry.session.id)])
    assert texts[0] != texts[1]


def _without_ids(entry: SessionEntry) -> tuple[object, ...]:
    session = entry.session
    return session.batchcode, session.phase, session.created_at, session.updated_at, session.notes


async def test_an_account_with_anything_in_it_is_refused(empty: Services) -> None:
    store = empty.store
    club = await store.accounts.add("club", int(NOW))
    session = await store.sessions.add(brew(account_id=OWNER))
    await empty.importing.run(session, b'{"gravity": 1.05}', "json", "127.0.0.1", reset=False)
    await _is_refused(empty, OWNER, "brew sessions")
    await store.sessions.delete(session.id, int(NOW))
    await _is_refused(empty, OWNER, "readings")
    await empty.library.add_folder(club.id, "recipe", "Mine")
    await _is_refused(empty, club.id, "folders")
    assert await store.readings.count() == 1
    assert (await store.recipes.search(RecipeSearch(account_id=OWNER, snapshots=True)))[0] == 0


async def _is_refused(empty: Services, account_id: int, because: str) -> None:
    with pytest.raises(NameTaken, match=f"^the account has {because} already; .* --data-dir"):
        await fill(empty, account_id, lambda *_: None)


def hydrometer_spans() -> Iterator[tuple[str, float, float]]:
    for batch in sample_brewery().batches:
        if batch.hydrometer is not None:
            out = 0.0 if batch.days is None else batch.pitched_days_ago - batch.days
            yield batch.hydrometer, batch.pitched_days_ago, out


def test_a_hydrometer_is_in_one_batch_at_a_time() -> None:
    for name in {name for name, _, _ in hydrometer_spans()}:
        spans = [(begin, end) for hydrometer, begin, end in hydrometer_spans() if hydrometer == name]
        assert len(spans) >= 4
        assert all(earlier[1] > later[0] for earlier, later in pairwise(spans))
