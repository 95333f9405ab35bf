"""What the API benchmarks read: a library of recipes and a hundred brew sessions, two of them full."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from gateway import units
from gateway.clock import SystemClock
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.domain.recipe import Recipe, RecipeContent
from gateway.formats.recipes import parse
from gateway.samples.recipes import sample_recipes
from gateway.services.parts import Parts, put_together
from gateway.store.protocol import Arrival
from gateway.store.sqlite.store import SqliteStore

FIRST_AT = 1_750_000_000
"""Unix seconds of the oldest record."""

EVERY_S = 60
"""Between two readings or recipes."""

SESSIONS = 100

EACH = 40
"""Readings of the device in each of the sessions that are not full."""

OWNER = 1

TOGETHER = 512
"""Records that wait for a commit at once."""

RARE, RARE_EVERY = "Zeus", 1_000
"""A hop of one recipe in so many."""

HOPS = ("Cascade", "Citra", "Fuggle", "Magnum", "Mosaic", "Northern Brewer", "Perle", "Saaz", "Simcoe", "Spalt")
WORDS = (
    "amber autumn bitter black bright cellar copper dark dry early evening farmhouse golden harbour hazy heavy house "
    "imperial late light mild morning old pale quiet red river rough session single smoked soft spring strong summer "
    "table valley warm white winter wild young"
).split()


@dataclass(frozen=True, slots=True)
class Library:
    """Where things are: the sessions with many readings, with gravity and without any."""

    full: int
    without_gravity: int


async def fill(directory: Path, recipes: int, readings: int) -> Library:
    """Put everything into a new data directory."""
    store = SqliteStore(directory)
    await store.open()
    try:
        parts = put_together(store, directory, SystemClock())
        await parts.access.start()
        stored = await _add_recipes(parts, recipes)
        sessions = [await _add_session(parts, number, stored[number % len(stored)]) for number in range(SESSIONS)]
        for number, session in enumerate(sessions[1:]):
            await _report(parts, session, number, readings if session is sessions[-1] else EACH)
        bare = [reading(n, gravity=False) for n in range(readings)]
        await store.readings.import_readings(sessions[0], bare, reset=False)
    finally:
        await store.close()
    return Library(full=sessions[-1].id, without_gravity=sessions[0].id)


async def _add_recipes(parts: Parts, count: int) -> list[Recipe]:
    import asyncio

    dice = random.Random(1)
    contents = [parse(sample.document())[0].content for sample in sample_recipes()]
    made = (_recipe(content, number, dice) for number, content in enumerate(islice(cycle(contents), count)))
    stored: list[Recipe] = []
    while group := list(islice(made, TOGETHER)):
        stored += await asyncio.gather(*map(parts.store.recipes.add, group))
    return stored
