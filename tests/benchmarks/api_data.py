"""What the API benchmarks read: a library of recipes and a hundred brew sessions, two of them full."""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain import units
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.domain.recipe import Ingredient, Recipe, RecipeContent
from gateway.formats.recipes import parse
from gateway.samples.recipes import sample_recipes
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services, build_services
from gateway.store.records import Arrival
from gateway.store.sqlite.store import SqliteStore

OWNER = 1

FIRST_AT = 1_772_616_600
"""Unix seconds of the oldest reading and recipe."""

EVERY_S = 60
"""Between two of them."""

SESSIONS = 100

EACH = 40
"""Readings of the device in each of the sessions that are not full."""

TOGETHER = 512
"""Records that wait for a commit at once."""

RARE, RARE_EVERY = "Zythos", 1_000
"""A hop of one recipe in so many."""

HOPS = (
    "Cascade",
    "Citra",
    "Fuggle",
    "Magnum",
    "Mosaic",
    "Northern Brewer",
    "Perle",
    "Saaz",
    "Simcoe",
    "Spalter",
)

WORDS = """
amber autumn bitter black bright cellar copper dark dry early evening farmhouse golden harbour house imperial
late light mild morning old pale quiet red river rough session single smoked soft spring strong summer table
valley warm white winter wild young
"""
"""What titles and notes are made of."""


@dataclass(frozen=True, slots=True)
class Library:
    """Brew sessions with many readings: of a device with gravity, and imported without any."""

    full: int
    without_gravity: int


async def fill(directory: Path, recipes: int, readings: int) -> Library:
    """Put everything into a new data directory."""
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, SystemClock())
        await services.access.start()
        stored = await _add_recipes(services, recipes)
        sessions = [await _add_session(services, stored[number % len(stored)]) for number in range(SESSIONS)]
        for number, session in enumerate(sessions[2:]):
            await _report(services, session, number, EACH)
        await _report(services, sessions[1], SESSIONS, readings)
        bare = [reading(number, gravity=False) for number in range(readings)]
        await store.readings.import_readings(sessions[0], bare, reset=False)
    finally:
        await store.close()
    return Library(full=sessions[1].id, without_gravity=sessions[0].id)


async def _add_recipes(services: Services, count: int) -> list[Recipe]:
    made = _recipes(count)
    stored: list[Recipe] = []
    while group := list(islice(made, TOGETHER)):
        stored += await asyncio.gather(*map(services.store.recipes.add, group))
    return stored


def _recipes(count: int) -> Iterator[Recipe]:
    """Variations of the sample recipes, a minute apart."""
    dice = random.Random(1)  # noqa: S311 - no secret
    contents = [parse(sample.document())[0].content for sample in sample_recipes()]
    for number in range(count):
        content = _varied(contents[number % len(contents)], number, dice)
        at = FIRST_AT + number * EVERY_S
        yield Recipe(0, OWNER, f"{number:013x}", content, None, None, None, None, False, at, at)


def _varied(content: RecipeContent, number: int, dice: random.Random) -> RecipeContent:
    title = f"{' '.join(dice.sample(WORDS.split(), 3)).title()} {number}"
    hops: list[Ingredient] = [{**hop, "name": dice.choice(HOPS)} for hop in content.ingredients["hops"]]
    if number % RARE_EVERY == 0:
        hops[0] = {**hops[0], "name": RARE}
    notes = f"{content.record['notes']}\n{' '.join(dice.choices(WORDS.split(), k=30))}."
    return RecipeContent(
        record={**content.record, "title": title, "notes": notes},
        ingredients={**content.ingredients, "hops": hops},
        beerxml=content.beerxml.replace(content.title, title, 1),
    )


async def _add_session(services: Services, recipe: Recipe) -> BrewSession:
    said = SessionChange(recipe_id=recipe.id, notes="Nothing went wrong.", details={"userunit": "metric"})
    return await services.brewsessions.add_session(OWNER, said)


async def _report(services: Services, session: BrewSession, number: int, count: int) -> None:
    """Put a device into the session and have it report."""
    key = f"ispindel:{number}"
    device = Device(0, key, "ispindel", str(number), f"iSpindel{number:03}", FIRST_AT, "P", EVERY_S)
    await services.store.devices.save(device)
    await services.brewsessions.assign(key, session.id, since=None)
    for first in range(0, count, TOGETHER):
        rows = [reading(place) for place in range(first, min(first + TOGETHER, count))]
        await services.store.readings.add([Arrival(row, key, b"{}", "http /ingest") for row in rows])


def reading(number: int, *, gravity: bool = True) -> Reading:
    """The reading of so many minutes after the first."""
    at = FIRST_AT + number * EVERY_S
    plato, celsius = 12.5 - number * 2e-4, 18 + number % 40 / 16
    return Reading(
        oid=new_object_id(at),
        created_at=at,
        received_at=at * 1000,
        name="iSpindel001",
        gravity=f"{plato:.5f}" if gravity else "",
        gravity_unit="P",
        temp=f"{celsius:.4f}",
        temp_unit="C",
        comment="",
        beer="Bench Ale",
        interval=units.serial_day(at),
        source="ispindel",
        ip="127.0.0.1",
        sg=units.plato_to_sg(plato) if gravity else None,
        celsius=celsius,
        facts='{"battery":3.91,"rssi":-67,"interval_s":900}',
    )


def item(number: int) -> dict[str, str]:
    """The same as the import endpoint takes it."""
    row = reading(number)
    names = ("name", "gravity", "gravity_unit", "temp", "temp_unit", "comment", "beer", "interval", "source")
    return {name: getattr(row, name) for name in names} | {
        "created_at": datetime.fromtimestamp(row.created_at, UTC).isoformat()
    }
