"""Two real gateways: one is copied by the other. Waits take no time, and every request can be looked at."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from PIL import Image

from gateway.clock import SystemClock
from gateway.domain.brewsession import BrewSession
from gateway.domain.key import ALL_SCOPES
from gateway.domain.objectid import new_object_id
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.recipe import CONTENT_MEMBERS, Ingredient, Recipe, RecipeContent
from gateway.formats.recipes import parse, skeleton
from gateway.intake.intake import Intake
from gateway.mirror.copying import mirror
from gateway.mirror.counts import MirrorCounts
from gateway.mirror.run import MirrorSource
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services, build_services
from gateway.site import build
from gateway.store.sqlite.store import SqliteStore

NOW = 1_772_700_000.0
"""2026-03-05 08:40 UTC."""

Json = Any
Seen = tuple[str, dict[str, str]]
"""Path and query of a request."""

FAST = 10_000.0

FIRST = int(NOW) - 40 * 86_400
"""When the readings begin that an import brings."""


class LeapClock(SystemClock):
    """Sleeping moves it on at once; `naps` are the sleeps that were asked for."""

    def __init__(self) -> None:
        self.naps: list[float] = []
        self._passed = 0.0

    def now(self) -> float:
        return NOW + self._passed

    def monotonic(self) -> float:
        return 1000.0 + self._passed

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self._passed += max(seconds, 0.0)
        await asyncio.sleep(0)


@dataclass
class Instance:
    """A gateway that answers; `seen` is what it was asked, `before` may answer in its place."""

    directory: Path
    clock: LeapClock = field(default_factory=LeapClock)
    seen: list[Seen] = field(default_factory=list)
    before: Callable[[web.Request], Awaitable[web.StreamResponse | None]] | None = None
    store: SqliteStore = field(init=False)
    services: Services = field(init=False)
    server: TestServer = field(init=False)
    http: aiohttp.ClientSession = field(init=False)
    key: str = field(init=False, default="")

    async def open(self) -> None:
        """Open the store, with a key of its own for this time."""
        self.store = SqliteStore(self.directory)
        await self.store.open()
        self.parts = build_services(self.store, self.directory, self.clock)
        await self.parts.access.start()
        self.key = await self.parts.access.add(f"test {uuid4()}", ALL_SCOPES)

    async def listen(self) -> None:
        app = build(self.parts)
        app.middlewares.insert(0, self._look)
        self.server = TestServer(app)
        await self.server.start_server(auto_decompress=False)
        self.http = aiohttp.ClientSession()

    async def close(self) -> None:
        await self.http.close()
        await self.server.close()

    @property
    def url(self) -> str:
        return str(self.server.make_url("/")).rstrip("/")

    @property
    def source(self) -> MirrorSource:
        return MirrorSource(self.url, self.key, photos=True, rate=FAST)

    @web.middleware
    async def _look(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.seen.append((request.path, dict(request.query)))
        if self.before is not None and (answer := await self.before(request)) is not None:
            return answer
        return await handler(request)

    def hide_snapshots(self, *, alone: bool = False) -> None:
        """Lists leave them out; with `alone`, they are not even there by themselves."""

        async def hide(request: web.Request) -> web.StreamResponse | None:
            if request.path == "/v1/recipes" and "snapshots" in request.query:
                query = {name: text for name, text in request.query.items() if name != "snapshots"}
                async with self.http.get(request.url.with_query(query), headers=request.headers) as answer:
                    return web.Response(body=await answer.read(), content_type="application/json")
            number = request.path.removeprefix("/v1/recipes/").removesuffix(".xml")
            if alone and number.isdigit():
                recipe = await self.store.recipes.get(int(number))
                if recipe is not None and recipe.snapshot:
                    return web.json_response({"message": "not-found", "detail": ""}, status=404)
            return None

        self.before = hide

    async def get(self, path: str) -> Json:
        """The JSON of a path that must be there; the key is in no request that is counted."""
        status, body = await self.ask(path)
        assert status == 200, (path, body)
        return json.loads(body)

    async def ask(self, path: str) -> tuple[int, bytes]:
        async with self.http.get(self.server.make_url(path), headers={"X-API-KEY": self.key}) as answer:
            return answer.status, await answer.read()

    async def take(self, session_id: int, readings: Sequence[Json], query: str = "") -> None:
        """Import readings, by the API."""
        url = self.server.make_url(f"/v1/fermentation/{session_id}/import{query}")
        async with self.http.post(url, json=readings, headers={"X-API-KEY": self.key}) as answer:
            assert answer.status == 200, await answer.text()


@asynccontextmanager
async def opened(directory: Path, *, listening: bool = True) -> AsyncIterator[Instance]:
    instance = Instance(directory)
    await instance.open()
    try:
        if listening:
            await instance.listen()
        yield instance
    finally:
        if listening:
            await instance.close()
        await instance.store.close()


@asynccontextmanager
async def two(directory: Path) -> AsyncIterator[tuple[Instance, Instance]]:
    """What is copied, and what copies."""
    async with opened(directory / "there") as there, opened(directory / "here") as here:
        yield there, here


def silent(_done: int, _of: int, _what: str) -> None:
    """Nobody watches."""


async def copy(here: Instance, source: MirrorSource, account_id: int = 1) -> MirrorCounts:
    return await mirror(here.parts, source, account_id, silent)


def counts(tally: MirrorCounts) -> dict[str, tuple[int, int, int, int, int]]:
    """By kind: copied, updated, unchanged, kept, failed; kinds without any are left out."""
    rows = {kind: (c.copied, c.updated, c.unchanged, c.kept, c.failed) for kind, c in tally.counts.items()}
    return {kind: row for kind, row in rows.items() if any(row)}


def content(title: str, **said: str | None) -> RecipeContent:
    """What a plain recipe says, with BeerXML that was made from it."""
    record = {
        **dict.fromkeys(CONTENT_MEMBERS),
        "title": title,
        "author": "R. Quay",
        "stylename": "Porter",
        **said,
    }
    ingredients: dict[str, list[Ingredient]] = {
        "fermentables": [{"name": "Pale Malt", "amount": "4.1", "unit": "kg", "ppg": "37"}],
        "hops": [{"name": f"Fuggle {title}", "amount": "40", "unit": "g", "aa": "4.8", "hopuse": "Boil",
                  "hoptime": "60", "form": None}],
        "yeasts": [],
        "mashsteps": [{"mashtype": "Infusion", "temp": "67", "mashtime": "60"}],
        "others": [],
    }  # fmt: skip
    return RecipeContent(record, ingredients, skeleton(record, ingredients))


def full_content(title: str) -> RecipeContent:
    """A recipe as it comes from a BeerXML document of another program."""
    document = f"""<?xml version="1.0"?><RECIPES><RECIPE><NAME>{title}</NAME><VERSION>1</VERSION>
    <TYPE>All Grain</TYPE><BREWER>Kai</BREWER><BATCH_SIZE>21</BATCH_SIZE><BOIL_SIZE>26</BOIL_SIZE>
    <BOIL_TIME>60</BOIL_TIME><EFFICIENCY>74</EFFICIENCY><ODD_THING>kept &amp; shown</ODD_THING>
    <NOTES>Süß, 2 Tage</NOTES><HOPS><HOP><NAME>Saaz</NAME><VERSION>1</VERSION><ALPHA>4</ALPHA>
    <AMOUNT>0.03</AMOUNT><USE>Dry Hop</USE><TIME>5760</TIME></HOP></HOPS>
    <FERMENTABLES><FERMENTABLE><NAME>Pils</NAME><VERSION>1</VERSION><TYPE>Grain</TYPE><AMOUNT>5</AMOUNT>
    <YIELD>80</YIELD><COLOR>2</COLOR></FERMENTABLE></FERMENTABLES></RECIPE></RECIPES>"""
    return parse(document.encode())[0].content


def picture(colour: str, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 6), colour).save(out, kind)
    return out.getvalue()


def item(number: int, **more: Json) -> Json:
    """A reading as an import brings it, 15 minutes after the one before."""
    created_at = FIRST + number * 900
    return {
        "_id": {"$oid": f"{created_at:08x}{number:016x}"},
        "name": "GREEN", "gravity": f"1.0{99 - number % 90:02d}", "gravity_unit": "G", "temp": "66.5",
        "temp_unit": "F", "comment": "", "beer": "Porter", "interval": f"{46_000 + number / 96}",
        "created_at": iso(created_at), "source": "meter", **more,
    }  # fmt: skip


def iso(unix_seconds: int) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat()


def reading(number: int, **more: Any) -> Reading:
    """A reading as a device of ours sends it."""
    created_at = int(NOW) - 3600 + number
    return Reading(
        **{
            "oid": new_object_id(created_at), "created_at": created_at, "received_at": int(NOW * 1000),
            "name": "RED", "gravity": f"1.0{number:02d}", "gravity_unit": "G", "temp": "20", "temp_unit": "C",
            "comment": "", "beer": "", "interval": "46085.4", "source": "tilt", "ip": "192.0.2.1", "sg": None,
            "celsius": None, **more,
        }
    )  # fmt: skip


async def add_recipe(at: Instance, said: RecipeContent, **row: Any) -> Recipe:
    """A recipe straight into the store; `row` are members of `Recipe`."""
    made = int(NOW) - 30 * 86_400
    members = {
        "id": 0, "account_id": 1, "token": "69a47fd8a1b2c", "content": said, "folder_id": None,
        "folder_name": None, "group_id": None, "parent_id": None, "snapshot": False,
        "created_at": made, "updated_at": made, **row,
    }  # fmt: skip
    return await at.store.recipes.add(Recipe(**members))


async def fill(there: Instance, recipes: int = 23, readings: int = 2300) -> None:
    """A brewery: folders, recipes of every kind, sessions with snapshots, readings with extras, photos."""
    library, brewing = there.parts.library, there.parts.brewsessions
    porters = await library.add_folder(1, "recipe", "Porters")
    cellar = await library.add_folder(1, "brewsession", "Cellar 2")
    said = {"public": "1", "viewcount": "12", "equipment_profile": '{"name":"Kettle"}', "ca2": None}
    full = await library.add(1, full_content("Dänisches Pils"), folder_id=porters.id)
    plain = await add_recipe(there, content("Harbour Porter", **said), group_id="g7", token="aaaabbbbcccc1")
    for number in range(recipes - 4):
        await add_recipe(
            there, content(f"Recipe {number}"), token=f"{number:013x}", created_at=int(NOW) - number
        )
    first = await brewing.add_session(1, SessionChange(recipe_id=plain.id, batchcode="HP001"))
    second = await brewing.add_session(
        1, SessionChange(recipe_id=full.id, folder_id=cellar.id, notes="Hazy.\n2")
    )
    bare = await brewing.add_session(1, SessionChange(batchcode="NONE", phase="Planning"))
    details = {"totalwater": "31.5", "source_ca": "60", "chillmethod": "immersion"}
    await brewing.update_session(
        first, SessionChange(phase="All Gone", userdate="2026-01-31", details=details)
    )
    rows = [item(number) for number in range(readings)]
    rows[1] |= {
        "ph": 4.40,
        "battery": "3.95",
        "ambient": True,
        "gravity": "",
        "comment": "cold \u00e4 \\u0000",
    }
    rows[3] |= {"gravity": " 12.50 ", "gravity_unit": "P", "temp": 18.50, "temp_unit": "C"}
    await there.take(first.id, rows)
    await there.take(second.id, [item(n + 5000, created_at="2026-03-01T00:00:00Z") for n in range(3)])
    await device_reports(there, second, 3)
    assert bare.id
    await there.parts.photos.add(plain.id, picture("red"), "glass.png", "The first glass")
    await there.parts.photos.add(plain.id, picture("blue", "JPEG"), "keg.jpg")
    await there.parts.photos.add(full.id, picture("green", "GIF"), "pint.gif")


async def device_reports(at: Instance, session: BrewSession, number: int) -> None:
    """An iSpindel in the session reports so often."""
    intake = Intake(at.store, at.parts.notices, at.parts.stats, at.clock)
    await intake.start()
    for n in range(number):
        body = {"name": "iSpindel042", "ID": 42, "angle": 45.25, "temperature": 20.5, "temp_units": "C",
                "battery": 3.95, "gravity": 12.5 - n, "interval": 900, "RSSI": -61}  # fmt: skip
        received_at = NOW + n * 900 - 7200
        await intake.take(Payload(json.dumps(body).encode(), received_at, "http /ingest/ispindel"))
        if n == 0:
            await at.parts.brewsessions.assign("iSpindel042", session.id, 0)


async def everything(at: Instance) -> dict[str, Json]:
    """What every read endpoint answers about every record, by path."""
    answers: dict[str, Json] = {}

    async def read(path: str) -> Json:
        answers[path] = await at.get(path)
        return answers[path]

    for recipe in (await read("/v1/recipes?limit=100&snapshots=true&sort=title:1"))["recipes"]:
        path = f"/v1/recipes/{recipe['id']}"
        await read(path)
        answers[f"{path}.xml"] = (await at.ask(f"{path}.xml"))[1].decode()
        for photo in (await read(f"{path}/photos"))["photos"]:
            answers[f"{path}/photo?uuid={photo['uuid']}"] = (
                await at.ask(f"{path}/photo?uuid={photo['uuid']}")
            )[1]
    for session in (await read("/v1/brewsessions?limit=1000&sort=batchcode:1"))["brewsessions"]:
        await read(f"/v1/brewsessions/{session['id']}")
        await read(f"/v1/brewsessions/{session['id']}/logs")
        await read(f"/v1/fermentation/{session['id']}")
    return answers


def without(value: Json, *names: str) -> Json:
    """The same without these members, wherever they are."""
    if isinstance(value, dict):
        return {name: without(member, *names) for name, member in value.items() if name not in names}
    if isinstance(value, list):
        return [without(member, *names) for member in value]
    return value


async def same(there: Instance, here: Instance) -> None:
    """Every answer is the same but for folder ids, which are each gateway's own."""
    expected, found = await everything(there), await everything(here)
    assert list(found) == list(expected)
    for path, answer in expected.items():
        assert without(found[path], "folder_id") == without(answer, "folder_id"), path


async def fits(there: Instance, here: Instance) -> None:
    """Every answer is the same once ids are translated by the mapping."""
    maps = {
        kind: {r: m.local_id for r, m in (await here.store.mirrors.copies(there.url, 1, kind)).items()}
        for kind in ("recipe", "brewsession", "photo")
    }
    recipe, session = maps["recipe"], maps["brewsession"]
    for remote, local in recipe.items():
        theirs, ours = await there.get(f"/v1/recipes/{remote}"), await here.get(f"/v1/recipes/{local}")
        (expected,), (found,) = theirs["recipes"], ours["recipes"]
        _translate_recipe(expected, recipe, session)
        assert without(found, "folder_id") == without(expected, "folder_id")
        assert await here.ask(f"/v1/recipes/{local}.xml") == await there.ask(f"/v1/recipes/{remote}.xml")
        theirs, ours = (
            await there.get(f"/v1/recipes/{remote}/photos"),
            await here.get(f"/v1/recipes/{local}/photos"),
        )
        for photo in theirs["photos"]:
            photo |= {"uuid": maps["photo"][photo["uuid"]], "recipe_id": local}
        assert sorted(ours["photos"], key=str) == sorted(theirs["photos"], key=str)
    for remote, local in session.items():
        theirs, ours = (
            await there.get(f"/v1/brewsessions/{remote}"),
            await here.get(f"/v1/brewsessions/{local}"),
        )
        (expected,), (found,) = theirs["brewsessions"], ours["brewsessions"]
        expected |= {"id": local, "recipeid": recipe.get(expected["recipeid"], "0")}
        if expected["recipe"]["id"] != "0":
            _translate_recipe(expected["recipe"], recipe, session)
        assert without(found, "folder_id") == without(expected, "folder_id")
        theirs, ours = (
            await there.get(f"/v1/fermentation/{remote}"),
            await here.get(f"/v1/fermentation/{local}"),
        )
        names = ("_id", "brewevent_id", "recipe_id")
        assert without(ours, *names) == without(theirs, *names)
        assert {r["brewevent_id"] for r in ours["readings"]} <= {int(local)}


def _translate_recipe(record: Json, recipe: dict[str, str], session: dict[str, str]) -> None:
    record["id"] = recipe[record["id"]]
    record["copy_parent_id"] = record["copy_parent_id"] and recipe[record["copy_parent_id"]]
    brewed = json.loads(record["brew_sessions"])
    moved = [{**entry, "breweventid": int(session[str(entry["breweventid"])])} for entry in brewed]
    record["brew_sessions"] = json.dumps(moved, separators=(",", ":"))
