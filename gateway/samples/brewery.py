"""Fill an account with the sample brewery, through the same services as people's own data.

Measurements of the past are imported; present ones arrive as reports of the devices.
"""

import asyncio
import json
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from gateway.clock import SystemClock
from gateway.domain.brewsession import BrewSession
from gateway.domain.folder import FolderKind
from gateway.domain.payload import Payload
from gateway.domain.progress import Progress
from gateway.domain.units import SECONDS_PER_DAY
from gateway.events import StoredNotices
from gateway.formats import pillow
from gateway.intake.intake import Intake
from gateway.samples.drawing import draw_beer
from gateway.samples.empty import check_empty
from gateway.samples.hydrometers import Hydrometer
from gateway.samples.logbook import events_of, log_of, readings_of
from gateway.samples.recipes import PhotoKind, SampleRecipe, sample_recipes
from gateway.samples.sessions import SampleBatch, sample_brewery
from gateway.services.brewsessions import BrewSessionService, SessionChange, local_day
from gateway.services.build import Services
from gateway.services.importing import Importing
from gateway.services.library import Library
from gateway.stats import Stats
from gateway.store.protocol import Store

PITCHED_H, WRITTEN_H = 16.0, 20.0
"""Hours (UTC) at which yeast is pitched and at which recipes are written, give or take `WINDOW_H`."""

WINDOW_H = 1.5

BREW_DAY_S = 6 * 3600
"""Seconds from the entry of a brew session to its pitching."""

FILED_S = 2 * SECONDS_PER_DAY
"""Seconds from the writing of a recipe to its filing in a folder."""

TAKEN_DAYS: Mapping[PhotoKind, int] = {"hops": -1, "fermenter": 2, "glass": 35}
"""Days from the pitching of the recipe's first batch to a photo, by the photo's kind."""

CAPTIONS: Mapping[PhotoKind, str] = {"hops": "Hops for {}", "fermenter": "{} at high krausen", "glass": "{}"}

TOGETHER = 64
"""Reports of a device that are stored at once."""

DRAWINGS = 1000
"""A number above the drawings of any one seed, so that seeds share no drawing."""

HERE = "127.0.0.1"
"""The address at which the brewer enters his own notes."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The numbers of new records; `running` is a brew session with a hydrometer, `recipe` its recipe."""

    recipes: int
    sessions: int
    readings: int
    photos: int
    running: int
    recipe: int


_turns: WeakKeyDictionary[Store, asyncio.Lock] = WeakKeyDictionary()
"""A lock for each store: two runs at once would both find the account empty."""


class ThenClock(SystemClock):
    """A clock whose wall time (Unix seconds) is set to the time of a record."""

    wall = 0.0

    def now(self) -> float:
        """Return the time that was set."""
        return self.wall


async def fill(
    services: Services, account_id: int, progress: Progress, *, seed: int = 1, photos: bool = True
) -> Filled:
    """Fill an empty account. The same seed at the same time gives the same records, but for ids.

    Without Pillow there are no photos.
    """
    async with _turns.setdefault(services.store, asyncio.Lock()):
        await check_empty(services, account_id)
        return await _Filling(services, account_id, progress, seed, photos).run()


class _Filling:
    def __init__(
        self, services: Services, account_id: int, progress: Progress, seed: int, photos: bool
    ) -> None:
        self._services = services
        self._store = services.store
        self._account_id = account_id
        self._seed = seed
        self._now = int(services.clock.now())
        self._clock = ThenClock()
        # Not the services' own, because old readings must not wake the forwarder, nor count as received.
        notices, stats = StoredNotices(), Stats()
        self._library = Library(self._store, self._clock)
        self._brewing = BrewSessionService(self._store, self._library, notices, self._clock)
        self._importing = Importing(self._store, notices, stats, self._clock)
        self._intake = Intake(self._store, notices, stats, self._clock)
        self._recipes = sorted(sample_recipes(), key=lambda recipe: -recipe.made_days_ago)
        self._brewery = sample_brewery()
        self._recipe_ids: dict[str, int] = {}
        self._folder_ids: dict[tuple[FolderKind, str], int] = {}
        drawn = photos and pillow.is_installed()
        self._photos = [(recipe, kind) for recipe in self._recipes for kind in recipe.photos if drawn]
        self._progress = progress
        self._done = 0

    async def run(self) -> Filled:
        """Add recipes, brew sessions and photos; return their numbers."""
        before = await self._store.readings.count()
        for recipe in self._recipes:
            self._step("recipes")
            await self._add_recipe(recipe)
        running, recipe_id = 0, 0
        for number, batch in enumerate(self._brewery.batches):
            self._step(f"brew sessions: {batch.recipe}")
            session = await self._brew(number, batch)
            if batch.running:
                running, recipe_id = session.id, self._recipe_ids[batch.recipe]
        for number, (recipe, kind) in enumerate(self._photos):
            self._step("photos")
            await self._add_photo(number, recipe, kind)
        return Filled(
            recipes=len(self._recipes),
            sessions=len(self._brewery.batches),
            readings=await self._store.readings.count() - before,
            photos=len(self._photos),
            running=running,
            recipe=recipe_id,
        )

    def _step(self, what: str) -> None:
        steps = len(self._recipes) + len(self._brewery.batches) + len(self._photos)
        self._progress(self._done, steps, what)
        self._done += 1

    def _set_clock(self, unix_seconds: float) -> None:
        """Set the clock to a time, but not later than now."""
        self._clock.wall = min(unix_seconds, self._now)

    def _dice(self, name: str) -> random.Random:
        return random.Random(f"{self._seed} {name}")  # noqa: S311 - noise, no secret

    def _about(self, days_ago: float, hour: float, name: str) -> int:
        """Draw a time of a day near the hour; the same name gives the same time."""
        day = (self._now // SECONDS_PER_DAY - days_ago) * SECONDS_PER_DAY
        return round(day + (hour + self._dice(name).uniform(-WINDOW_H, WINDOW_H)) * 3600)

    async def _folder(self, kind: FolderKind, name: str) -> int:
        if (kind, name) not in self._folder_ids:
            folder = await self._library.add_folder(self._account_id, kind, name)
            self._folder_ids[kind, name] = folder.id
        return self._folder_ids[kind, name]

    async def _add_recipe(self, recipe: SampleRecipe) -> None:
        made_at = self._about(recipe.made_days_ago, WRITTEN_H, recipe.title)
        self._set_clock(made_at)
        [imported] = await self._library.import_document(self._account_id, recipe.document())
        self._recipe_ids[recipe.title] = imported.id
        stored = await self._store.recipes.get(imported.id)
        if recipe.folder is not None and stored is not None:
            self._set_clock(made_at + FILED_S)
            await self._library.file(stored, await self._folder("recipe", recipe.folder))

    async def _brew(self, number: int, batch: SampleBatch) -> BrewSession:
        """Add a session with its snapshot of the recipe, and all its measurements."""
        pitched_at = self._about(batch.pitched_days_ago, PITCHED_H, f"pitching {number}")
        changed_at = pitched_at + batch.changed_day * SECONDS_PER_DAY
        self._set_clock(min(pitched_at - BREW_DAY_S, changed_at))
        folder = batch.folder and await self._folder("brewsession", batch.folder)
        begun = SessionChange(
            recipe_id=self._recipe_ids[batch.recipe],
            phase="Planning",
            userdate=local_day(pitched_at),
            folder_id=folder or None,
            details=batch.details,
        )
        session = await self._brewing.add_session(self._account_id, begun)
        self._set_clock(changed_at)
        await self._measure(number, batch, session, pitched_at)
        return await self._brewing.update_session(
            session, SessionChange(phase=batch.phase, notes=batch.notes)
        )

    async def _measure(self, number: int, batch: SampleBatch, session: BrewSession, pitched_at: int) -> None:
        if batch.course is None or batch.hydrometer is None:
            return
        hydrometer = Hydrometer(self._brewery.hydrometers[batch.hydrometer], self._account_id)
        dice = self._dice(f"readings {number}")
        log = await asyncio.to_thread(log_of, batch, batch.course, hydrometer, pitched_at, self._now, dice)
        if batch.running:
            await self._receive(log.payloads, hydrometer, session)
        else:
            readings = await asyncio.to_thread(readings_of, log.payloads)
            await self._store.readings.import_readings(session, readings, reset=False)
        notes = json.dumps(log.notes).encode()
        await self._importing.run(session, notes, "json", caller_ip=HERE, reset=False)
        for event in events_of(log.notes, session.id):
            await self._store.events.add(session, event)

    async def _receive(
        self, payloads: Sequence[Payload], hydrometer: Hydrometer, session: BrewSession
    ) -> None:
        """Have the device report; its first report makes it known, so that it can be put into the session."""
        await self._intake.start()
        await self._intake.take(payloads[0])
        await self._brewing.assign(hydrometer.key, session.id, since=0)
        for first in range(1, len(payloads), TOGETHER):
            await asyncio.gather(*map(self._intake.take, payloads[first : first + TOGETHER]))

    async def _add_photo(self, number: int, recipe: SampleRecipe, kind: PhotoKind) -> None:
        drawn = await asyncio.to_thread(draw_beer, self._seed * DRAWINGS + number, recipe.colour_srm, kind)
        name = f"{recipe.title.lower().replace(' ', '-')}-{kind}.jpg"
        caption = CAPTIONS[kind].format(recipe.title)
        batch = next(batch for batch in self._brewery.batches if batch.recipe == recipe.title)
        taken_at = self._about(round(batch.pitched_days_ago - TAKEN_DAYS[kind]), WRITTEN_H, name)
        recipe_id, created_at = self._recipe_ids[recipe.title], min(taken_at, self._now)
        await self._services.photos.add_copy(recipe_id, drawn, name, caption, str(uuid.uuid4()), created_at)
