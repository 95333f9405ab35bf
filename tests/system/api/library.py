"""Helpers that fill a brewery of its own in a running service, and ask for it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from multidict import CIMultiDictProxy
from PIL import Image
from yarl import URL

from gateway.domain.brewsession import BrewSession
from gateway.domain.key import ALL_SCOPES
from gateway.domain.payload import Payload
from gateway.domain.photo import Photo
from gateway.domain.recipe import CONTENT_MEMBERS, INGREDIENT_KINDS, Ingredient, Recipe, RecipeContent
from gateway.intake.intake import Intake
from gateway.services.brewsessions import SessionChange
from gateway.services.library import new_token
from tests.system.api.conftest import Service

NOT_FOUND = {"message": "not-found", "detail": "no records found"}

Query = Mapping[str, str] | Sequence[tuple[str, str]] | str

PORTER_RECORD: dict[str, str | None] = {
    "title": "Harbour Porter",
    "author": "R. Quay",
    "brewmethod": "allgrain",
    "styleid": "40",
    "stylename": "English Porter",
    "batchsize": "21",
    "batchsizeunit": "l",
    "boilsize": "26",
    "boiltime": "60",
    "boilgravity": "1.044",
    "efficiency": "74",
    "displayunits": "metric",
    "sugar_scale": "sg",
    "og": "1.055",
    "fg": "1.014",
    "abv": "5.38",
    "ibutinseth": "28.4",
    "srmmorey": "26.1",
    "srmecbmorey": "51.4",
    "notes": "Mash warm.",
    "url": "",
}
"""The example of api-decisions section 5."""

PORTER_INGREDIENTS: dict[str, list[Ingredient]] = {
    "fermentables": [
        {"name": "Pale Malt", "amount": "4.1", "unit": "kg", "percent": "82", "lovibond": "2.5"}
    ],
    "hops": [{"name": "Fuggle", "amount": "40", "unit": "g", "aa": "4.8", "hopuse": "Boil", "hoptime": "60"}],
    "yeasts": [{"name": "London Ale", "laboratory": "House", "attenuation": "75", "flocculation": None}],
    "mashsteps": [{"mashtype": "Infusion", "temp": "67", "mashtime": "60", "amount": "14", "unit": "L"}],
    "others": [],
}


def content(title: str = "Harbour Porter", *, xml: str = "", **said: Any) -> RecipeContent:
    """What a recipe says: ingredients by kind, all other names members of its record."""
    kinds = {kind: said.pop(kind, []) for kind in INGREDIENT_KINDS}
    return RecipeContent(
        {**dict.fromkeys(CONTENT_MEMBERS), "title": title, **said}, kinds, xml or "<RECIPE/>"
    )


def porter() -> RecipeContent:
    """A recipe that says something everywhere."""
    return RecipeContent(PORTER_RECORD, PORTER_INGREDIENTS, "<RECIPE/>")


def unix(text: str) -> int:
    """Unix seconds of a UTC time as records have it: `2026-03-01 18:05:12`."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@dataclass(frozen=True)
class Answer:
    """An answer, read to its end."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["Content-Type"].split(";")[0] == "application/json", self.headers
        return json.loads(self.body)


@dataclass
class Brewery:
    """An account that has nothing yet, not the service's first; `recipe`, `session` and so on fill it."""

    service: Service
    account_id: int
    headers: dict[str, str]
    intake: Intake = field(init=False)

    def __post_init__(self) -> None:
        services = self.service.services
        self.intake = Intake(services.store, services.notices, services.stats, services.clock)

    async def ask(self, path: str, query: Query = "", method: str = "GET", **headers: str) -> Answer:
        """One request to a path below /v1; a query of text is escaped already."""
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        url = URL(f"/v1/{path}?{query}" if isinstance(query, str) else f"/v1/{path}")
        if not isinstance(query, str):
            url = url.with_query(query)
        async with self.service.client.request(method, url, headers=sent) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def get(self, path: str, query: Query = "") -> Any:
        """The JSON of a request that must succeed."""
        answer = await self.ask(path, query)
        assert answer.status == 200, answer.body
        return answer.json

    async def refusal(self, path: str, query: Query = "") -> tuple[int, str, str]:
        """Status, message and detail of a request that must fail."""
        answer = await self.ask(path, query)
        assert answer.status >= 400
        body = answer.json
        assert list(body) == ["message", "detail"]
        return answer.status, body["message"], body["detail"]

    async def recipe(self, said: RecipeContent | str = "Harbour Porter", **row: Any) -> Recipe:
        """A recipe straight into the store; `row` are members of `Recipe`."""
        now = int(self.service.clock.now())
        recipe = Recipe(
            id=0,
            account_id=self.account_id,
            token=new_token(),
            content=content(said) if isinstance(said, str) else said,
            folder_id=None,
            folder_name=None,
            group_id=None,
            parent_id=None,
            snapshot=False,
            created_at=now,
            updated_at=now,
        )
        return await self.service.services.store.recipes.add(replace(recipe, **row))

    async def session(self, recipe: Recipe | None = None, **said: Any) -> BrewSession:
        """A brew session as people start one; `said` are members of `SessionChange`."""
        if recipe is not None:
            said["recipe_id"] = recipe.id
        elif "batchcode" not in said:
            said["batchcode"] = "HP001"
        return await self.service.services.brewsessions.add_session(self.account_id, SessionChange(**said))

    async def row(self, **row: Any) -> BrewSession:
        """A brew session straight into the store; `row` are members of `BrewSession`."""
        now = int(self.service.clock.now())
        session = BrewSession(0, self.account_id, "HP001", "Conditioning", 0, None, now, now)
        return await self.service.services.store.sessions.add(replace(session, **row))

    async def take(self, session: BrewSession, readings: list[dict[str, Any]], reset: bool = False) -> None:
        """An import that must succeed."""
        path, query = f"/v1/fermentation/{session.id}/import", {"reset": str(reset)}
        async with self.service.client.post(
            path, json=readings, params=query, headers=self.headers
        ) as answer:
            assert answer.status == 200, await answer.text()

    async def report(self, body: dict[str, Any], at: float = 0) -> None:
        """A device's delivery, `at` seconds after the clock."""
        received_at = self.service.clock.now() + at
        taken = await self.intake.take(Payload(json.dumps(body).encode(), received_at, "http /ingest"))
        assert taken.quarantined is None

    async def photo(self, recipe: Recipe, data: bytes, filename: str = "glass.jpg", **more: str) -> Photo:
        """A photo of a recipe."""
        return await self.service.services.photos.add(recipe.id, data, filename, **more)


async def opened(service: Service, name: str = "second") -> Brewery:
    """A brewery of its own account in the service."""
    account = await service.access.add_account(name)
    key = await service.access.add(name, ALL_SCOPES, name)
    return Brewery(service, account.id, {"X-API-KEY": key})


def picture(width: int, height: int, kind: str = "JPEG", **save: Any) -> bytes:
    """An image file whose left half is red and whose right half is blue."""
    image = Image.new("RGB", (width, height), "red")
    image.paste("blue", (width // 2, 0, width, height))
    out = BytesIO()
    image.save(out, kind, **save)
    return out.getvalue()


def assert_texts(record: dict[str, Any], *, null: set[str]) -> None:
    """All members are text, and those of `null` text or null."""
    for name, value in record.items():
        assert isinstance(value, str) or (value is None and name in null), (name, value)
