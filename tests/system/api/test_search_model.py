"""Random breweries and random queries: endpoints 4 and 8 against a model of api-decisions section 13.

The model reads the query's own text and knows nothing of how the store searches.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given, note, settings
from hypothesis import strategies as st

from gateway.domain.brewsession import BrewSession
from gateway.domain.folder import FolderKind
from gateway.domain.recipe import Recipe
from gateway.events import StoredNotices
from gateway.services.build import build_services
from gateway.site import build
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.cases import examples
from tests.system.api.conftest import Service, SetClock
from tests.system.api.library import Brewery, content, opened

RECORDS = 60
"""Recipes and brew sessions, each, of one brewery."""

BREWERIES = 8
EXAMPLES = examples(2)

PIECES = [
    *"aAbBsSxiI17%_'\"*?[]\\:-()^ ", "  ", "ss", "SS", "ß", "ẞ", "İ", "ı", "i\u0307", "Ä", "ä", "a\u0308",
    "é", "É", "Σ", "σ", "ς", "ﬁ", "fi", "🍺", "👩\u200d🍳", "中", "文", "\n", "\t", "\u00a0", "\u2028",
    "OR", "NEAR", "NOT", "\ud7ff", "\ue000", "\U0010ffff", "\x01", "\x7f",
]  # fmt: skip
"""What texts are made of: letters whose cases differ in length, and what query languages use themselves."""

DAYS = [f"2026-03-{day:02d}" for day in range(1, 8)]
MIDNIGHTS = [int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) for day in DAYS]


@dataclass(frozen=True)
class Known:
    """What the model knows of a recipe or a brew session; `name` is its title or batch code."""

    id: int
    name: str
    texts: tuple[str, ...]
    author: str
    folder_id: int | None
    group_id: str | None
    hidden: bool
    created_at: int
    updated_at: int


@dataclass
class Filled:
    """A brewery with what is in it and not deleted."""

    brewery: Brewery
    recipes: list[Known]
    sessions: list[Known]


class World:
    """A service with breweries that are filled when a test first asks for them; all of it on one loop."""

    def __init__(self, runner: asyncio.Runner, service: Service) -> None:
        self._run = runner.run
        self._service = service
        self._filled: dict[int, Filled] = {}

    def brewery(self, seed: int) -> Filled:
        if seed not in self._filled:
            self._filled[seed] = self._run(fill(self._service, seed))
        return self._filled[seed]

    def get(self, filled: Filled, path: str, query: dict[str, str]) -> Any:
        return self._run(filled.brewery.get(path, query))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        service = runner.run(
            started(SqliteStore(directory := tmp_path_factory.mktemp("world")), directory, stack)
        )
        yield World(runner, service)
        runner.run(stack.aclose())


async def started(store: SqliteStore, directory: Any, stack: AsyncExitStack) -> Service:
    await store.open()
    stack.push_async_callback(store.close)
    services = build_services(store, directory, SetClock())
    await services.access.start()
    client = await stack.enter_async_context(TestClient(TestServer(build(services))))
    return Service(client, store, services, services.access, StoredNotices(), Stats(), SetClock(), brew(), "")


def text(rng: random.Random, longest: int = 8) -> str:
    return "".join(rng.choices(PIECES, k=rng.randrange(longest + 1)))


def moment(rng: random.Random) -> int:
    return rng.choice(MIDNIGHTS) + rng.choice([-1, 0, 1, 43_200, 86_399])


async def fill(service: Service, seed: int) -> Filled:
    rng = random.Random(seed)  # noqa: S311 - no secret, but the same on every run
    brewery = await opened(service, f"brewery {seed}")
    recipes = [await kept_recipe(brewery, rng) for _ in range(RECORDS)]
    sessions = [await kept_session(brewery, rng) for _ in range(RECORDS)]
    return Filled(brewery, [known for known in recipes if known], [known for known in sessions if known])


async def folder_of(brewery: Brewery, kind: FolderKind, rng: random.Random) -> int | None:
    """One of two folders, or none."""
    name = rng.choice(["", "one", "two"])
    if not name:
        return None
    folders = await brewery.service.services.store.folders.all(brewery.account_id)
    for folder in folders:
        if (folder.kind, folder.name) == (kind, name):
            return folder.id
    return (await brewery.service.services.library.add_folder(brewery.account_id, kind, name)).id


async def kept_recipe(brewery: Brewery, rng: random.Random) -> Known | None:
    said: dict[str, Any] = {"author": rng.choice([None, "", "Quay", text(rng)]), "notes": text(rng, 30)}
    for kind in ("fermentables", "hops", "yeasts", "others"):
        said[kind] = [
            {"name": rng.choice([text(rng), None]), "use": text(rng)} for _ in range(rng.randrange(3))
        ]
    said["stylename"] = rng.choice([text(rng), None])
    row: dict[str, Any] = {
        "folder_id": await folder_of(brewery, "recipe", rng),
        "group_id": rng.choice([None, "1", "12"]),
        "snapshot": rng.random() < 0.3,
        "created_at": moment(rng),
        "updated_at": moment(rng),
    }
    stored: Recipe = await brewery.recipe(content(text(rng), **said), **row)
    if rng.random() < 0.1:
        await brewery.service.services.library.delete(stored)
        return None
    names = [entry["name"] for kind in ("fermentables", "hops", "yeasts", "others") for entry in said[kind]]
    texts = (stored.content.title, said["notes"], said["stylename"], *names)
    return Known(
        id=stored.id,
        name=stored.content.title,
        texts=tuple(found for found in texts if found),
        author=said["author"] or "",
        folder_id=row["folder_id"],
        group_id=row["group_id"],
        hidden=row["snapshot"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


async def kept_session(brewery: Brewery, rng: random.Random) -> Known | None:
    row: dict[str, Any] = {
        "batchcode": text(rng),
        "phase": text(rng),
        "folder_id": await folder_of(brewery, "brewsession", rng),
        "group_id": rng.choice([None, "1", "12"]),
        "created_at": moment(rng),
        "updated_at": moment(rng),
    }
    stored: BrewSession = await brewery.row(**row)
    if rng.random() < 0.1:
        await brewery.service.services.brewsessions.delete_session(stored)
        return None
    return Known(
        id=stored.id,
        name=row["batchcode"],
        texts=(row["batchcode"], row["phase"]),
        author="",
        folder_id=row["folder_id"],
        group_id=row["group_id"],
        hidden=False,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def matches(known: Known, query: dict[str, str], login_id: int) -> bool:
    """Section 13, line by line."""
    asked = {name: value for name, value in query.items() if value}
    day = {"created": iso_day(known.created_at), "updated": iso_day(known.updated_at)}
    return (
        asked.get("id", str(known.id)) == str(known.id)
        and any(asked.get("keyword", "").casefold() in searched.casefold() for searched in (*known.texts, ""))
        and asked.get("author", known.author).casefold() == known.author.casefold()
        and asked.get("group_id", known.group_id) == known.group_id
        and asked.get("brewer_author_id", str(login_id)) == str(login_id)
        and asked.get("folder_id", str(known.folder_id)) == str(known.folder_id)
        and all(asked.get(f"{name}_from", day[name]) <= day[name] for name in day)
        and all(asked.get(f"{name}_to", day[name]) >= day[name] for name in day)
        and (not known.hidden or is_yes(asked.get("snapshots", "")))
    )


def iso_day(unix_seconds: int) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%d")


def is_yes(word: str) -> bool:
    return word.lower() in {"true", "1", "yes"}


def ranked(found: list[Known], query: dict[str, str]) -> list[str]:
    """Their ids, in the order that `sort` asks for."""
    field, _, direction = (query.get("sort") or "created_at:-1").partition(":")
    in_order = sorted((getattr(known, field, known.name.casefold()), known.id) for known in found)
    return [str(number) for _, number in (in_order if direction in {"", "1"} else in_order[::-1])]


def blank_or(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just(""), strategy)


def piece_of(texts: list[str]) -> st.SearchStrategy[str]:
    """A part of one of the texts in another case, or something else."""

    def cut(whole: str, start: int, length: int, case: Callable[[str], str]) -> str:
        return case(whole[start % (len(whole) or 1) :][:length])

    cases = st.sampled_from([str, str.upper, str.lower, str.swapcase, str.casefold])
    cuts = st.builds(cut, st.sampled_from(texts), st.integers(0, 30), st.integers(1, 6), cases)
    made = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
    return st.one_of(cuts, cuts, made)


def parameters(known: list[Known], login_id: int, name_field: str) -> dict[str, st.SearchStrategy[str]]:
    """Values for the parameters that both endpoints have."""
    ids, folders = [str(k.id) for k in known], sorted({str(k.folder_id) for k in known if k.folder_id})
    fields = ["created_at", "updated_at", name_field]
    sorts = [f"{field}{direction}" for field in fields for direction in (":1", ":-1", ":0", "", ":", ":x")]
    days = st.sampled_from([*DAYS, "2026-02-28", "2026-03-08", "0001-01-01", "9999-12-31"])
    texts = [searched for k in known for searched in k.texts]
    crossed = [a[-2:] + b[:2] for k in known for a, b in pairwise(k.texts)]
    return {
        "id": blank_or(st.sampled_from([*ids, "0", "x", "999999"])),
        "keyword": blank_or(piece_of(texts) | piece_of(crossed)),
        "group_id": blank_or(st.sampled_from(["1", "12", "123"])),
        "brewer_author_id": blank_or(st.sampled_from([str(login_id), str(login_id), "1"])),
        "folder_id": blank_or(st.sampled_from([*folders, "0", "999999"])),
        "sort": blank_or(st.sampled_from(sorts)),
        "limit": st.sampled_from(["0", "1", "7", "20", "21", "60", "100", "5000"]),
        "offset": st.sampled_from(["0", "1", "5", "30", "100"]),
        **{f"{field}_{end}": days for field in ("created", "updated") for end in ("from", "to")},
    }


def some_of(values: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[list[dict[str, str]]]:
    """A few queries of a few parameters each: with more of them hardly anything is ever found."""
    names = st.lists(st.sampled_from(sorted(values)), max_size=4, unique=True)
    query = names.flatmap(lambda chosen: st.fixed_dictionaries({name: values[name] for name in chosen}))
    return st.lists(query, min_size=1, max_size=4)


@cache
def recipe_queries(world: World, seed: int) -> st.SearchStrategy[list[dict[str, str]]]:
    filled = world.brewery(seed)
    words = st.sampled_from(["", "true", "TRUE", "1", "yes", "false", "0", "no"])
    authors = [k.author for k in filled.recipes]
    more = {
        "author": blank_or(piece_of(authors) | st.sampled_from(authors)),
        "snapshots": words,
        "ingredients": words,
    }
    return some_of(parameters(filled.recipes, filled.brewery.account_id, "title") | more)


@cache
def session_queries(world: World, seed: int) -> st.SearchStrategy[list[dict[str, str]]]:
    filled = world.brewery(seed)
    return some_of(parameters(filled.sessions, filled.brewery.account_id, "batchcode"))


def check(answer: Any, array: str, found: list[str], query: dict[str, str], limit_max: int) -> None:
    offset, limit = int(query.get("offset", 0)), min(int(query.get("limit", 20)), limit_max)
    expected = found[offset:][:limit]
    assert (answer["count"], [record["id"] for record in answer[array]]) == (str(len(found)), expected)


@settings(max_examples=EXAMPLES)
@given(data=st.data(), seed=st.integers(0, BREWERIES - 1))
def test_recipes_are_found_as_the_model_finds_them(world: World, data: st.DataObject, seed: int) -> None:
    filled = world.brewery(seed)
    for query in data.draw(recipe_queries(world, seed)):
        found = [k for k in filled.recipes if matches(k, query, filled.brewery.account_id)]
        note(f"{query}: {found}")
        full = is_yes(query.get("ingredients", ""))
        answer = world.get(filled, "recipes", query)
        check(answer, "recipes", ranked(found, query), query, 20 if full else 100)
        assert all(("hops" in record) is full for record in answer["recipes"])


@settings(max_examples=EXAMPLES)
@given(data=st.data(), seed=st.integers(0, BREWERIES - 1))
def test_brew_sessions_are_found_as_the_model_finds_them(
    world: World, data: st.DataObject, seed: int
) -> None:
    filled = world.brewery(seed)
    for query in data.draw(session_queries(world, seed)):
        found = [k for k in filled.sessions if matches(k, query, filled.brewery.account_id)]
        note(f"{query}: {found}")
        check(world.get(filled, "brewsessions", query), "brewsessions", ranked(found, query), query, 1000)
