"""`/manage`: getting recipes, photos, folders, brew sessions, accounts and keys in, with an admin key."""

import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.brewsession import DETAIL_MEMBERS
from gateway.domain.recipe import DOCUMENT_BYTES
from gateway.formats.image_header import PHOTO_BYTES
from gateway.http.endpoint import JSON_BODY_BYTES
from tests.system.api.everything import BEERXML, Answer, Running, picture, running

XML = "application/xml"

BEERJSON = {
    "beerjson": {
        "version": 1.0,
        "recipes": [
            {
                "name": "Lighthouse Pale",
                "type": "all grain",
                "author": "R. Quay",
                "efficiency": {"brewhouse": {"unit": "%", "value": 74}},
                "batch_size": {"unit": "l", "value": 21},
                "ingredients": {
                    "fermentable_additions": [
                        {"name": "Pale Malt", "type": "grain", "amount": {"unit": "kg", "value": 4.1}}
                    ]
                },
            }
        ],
    }
}


@dataclass
class Desk:
    """A running service, and short words for what these tests do with it."""

    service: Running

    async def send(
        self, method: str, path: str, body: Any = None, *, media: str | None = None, key: str | None = None
    ) -> Answer:
        if body is None:
            return await self.service.ask(method, path, key)
        data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        headers = {"Content-Type": media or "application/json"}
        return await self.service.ask(method, path, key, data=data, headers=headers)

    async def done(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """What a request that must work is answered with."""
        answer = await self.send(method, path, body, **more)
        members = json.loads(answer.body)
        assert (answer.status, members.pop("message")) == (200, "success"), answer.body
        return members

    async def done_without_message(self, method: str, path: str, body: Any = None) -> Any:
        """The answer of a request that must work, where it is a record of its own."""
        answer = await self.send(method, path, body)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)

    async def refused(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, str]:
        """Status and detail of a refusal."""
        answer = await self.send(method, path, body, **more)
        members = json.loads(answer.body)
        assert set(members) == {"message", "detail"}, answer.body
        assert answer.status >= 400
        return answer.status, members["detail"]

    async def recipe(self) -> str:
        imported = await self.done("POST", "/manage/recipes", BEERXML, media=XML)
        return str(imported["recipes"][0]["id"])

    async def folder(self, kind: str = "recipe", name: str = "Winter") -> str:
        made = await self.done("POST", "/manage/folders", {"kind": kind, "name": name})
        return str(made["folders"][0]["id"])

    async def session(self, **said: Any) -> dict[str, Any]:
        made = await self.done("POST", "/manage/brewsessions", {"batchcode": "HP001", **said})
        entry: dict[str, Any] = made["brewsessions"][0]
        return entry

    async def account(self, name: str) -> str:
        """Another account's full key."""
        await self.done("POST", "/manage/accounts", {"name": name})
        made = await self.done(
            "POST", "/manage/keys", {"name": f"{name}'s", "account": name, "scopes": ["admin"]}
        )
        return str(made["keys"][0]["key"])


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with running(tmp_path) as service:
        yield Desk(service)


# Recipes


@pytest.mark.parametrize("media", [XML, "text/xml", "application/xml; charset=UTF-8"])
async def test_a_beerxml_document_becomes_recipes(desk: Desk, media: str) -> None:
    answer = await desk.done("POST", "/manage/recipes", BEERXML, media=media)
    (imported,) = answer["recipes"]
    assert (answer["count"], imported["id"], imported["title"]) == ("1", "1", "Harbour Porter")
    assert "RECIPE: BREWER is missing; written as Unknown" in imported["changes"]
    (shown,) = (await desk.done("GET", "/v1/recipes/1"))["recipes"]
    assert (shown["title"], shown["batchsize"], shown["folder_id"]) == ("Harbour Porter", "21", None)


async def test_a_beerjson_document_becomes_recipes(desk: Desk) -> None:
    answer = await desk.done("POST", "/manage/recipes", BEERJSON)
    assert [recipe["title"] for recipe in answer["recipes"]] == ["Lighthouse Pale"]
    (shown,) = (await desk.done("GET", f"/v1/recipes/{answer['recipes'][0]['id']}"))["recipes"]
    assert shown["fermentables"][0]["name"] == "Pale Malt"


async def test_several_recipes_of_a_document_come_in_its_order(desk: Desk) -> None:
    one = BEERXML[BEERXML.index(b"<RECIPE>") : BEERXML.index(b"</RECIPES>")]
    names = [b"C", b"A", b"B"]
    body = b"<RECIPES>" + b"".join(one.replace(b"Harbour Porter", name) for name in names) + b"</RECIPES>"
    answer = await desk.done("POST", "/manage/recipes", body, media=XML)
    assert answer["count"] == "3"
    assert [recipe["title"] for recipe in answer["recipes"]] == ["C", "A", "B"]


async def test_a_document_goes_into_a_folder(desk: Desk) -> None:
    folder = await desk.folder()
    await desk.done("POST", f"/manage/recipes?folder_id={folder}", BEERXML, media=XML)
    await desk.done("POST", "/manage/recipes?folder_id=", BEERXML, media=XML)
    await desk.done("POST", "/manage/recipes?folder_id=0", BEERXML, media=XML)
    found = await desk.done("GET", f"/v1/recipes?folder_id={folder}")
    assert [(r["id"], r["folder_name"]) for r in found["recipes"]] == [("1", "Winter")]


@pytest.mark.parametrize(
    ("query", "body", "media", "status", "said"),
    [
        ("", BEERXML, "text/plain", 415, "the Content-Type must be application/xml or text/xml or"),
        ("", BEERXML, "application/x-www-form-urlencoded", 415, "the Content-Type must be"),
        ("", b"<RECIPES><RECIPE>", XML, 400, "RECIPE"),
        ("", b"<X/>", XML, 400, "no RECIPE"),
        ("", b'<!DOCTYPE x [<!ENTITY y "z">]><RECIPES/>', XML, 400, "document type declaration"),
        ("", b"", XML, 400, "empty"),
        ("", b"{", "application/json", 400, ""),
        ("", b" " * (DOCUMENT_BYTES + 1), XML, 413, str(DOCUMENT_BYTES)),
        ("?folder_id=1", BEERXML, XML, 404, "no records found"),
        ("?folder_id=x", BEERXML, XML, 400, "folder_id must be a whole number"),
    ],
)
async def test_documents_that_are_refused_leave_nothing(
    desk: Desk, query: str, body: bytes, media: str, status: int, said: str
) -> None:
    refusal = await desk.refused("POST", f"/manage/recipes{query}", body, media=media)
    assert refusal[0] == status
    assert said in refusal[1]
    assert (await desk.done("GET", "/v1/recipes"))["count"] == "0"


async def test_recipes_do_not_go_into_folders_of_brew_sessions(desk: Desk) -> None:
    folder = await desk.folder("brewsession")
    path = f"/manage/recipes?folder_id={folder}"
    assert (await desk.refused("POST", path, BEERXML, media=XML))[0] == 404
    recipe = await desk.recipe()
    assert (await desk.refused("PATCH", f"/manage/recipes/{recipe}", {"folder_id": folder}))[0] == 404


@pytest.mark.parametrize("as_text", [True, False])
async def test_a_recipe_is_filed_and_taken_out_again(desk: Desk, as_text: bool) -> None:
    recipe, folder = await desk.recipe(), await desk.folder()
    path, number = f"/manage/recipes/{recipe}", folder if as_text else int(folder)
    (shown,) = (await desk.done("PATCH", path, {"folder_id": number}))["recipes"]
    assert (shown["folder_id"], shown["folder_name"]) == (folder, "Winter")
    assert (await desk.done("GET", f"/v1/recipes/{recipe}"))["recipes"] == [shown]
    (shown,) = (await desk.done("PATCH", path, {"folder_id": "0" if as_text else 0}))["recipes"]
    assert (shown["folder_id"], shown["folder_name"]) == (None, None)


async def test_a_deleted_recipe_is_gone_and_its_session_keeps_the_copy(desk: Desk) -> None:
    recipe = await desk.recipe()
    session = await desk.session(recipe_id=recipe)
    await desk.done("DELETE", f"/manage/recipes/{recipe}")
    assert (await desk.refused("GET", f"/v1/recipes/{recipe}"))[0] == 404
    assert (await desk.refused("DELETE", f"/manage/recipes/{recipe}"))[0] == 404
    again = await desk.done("GET", f"/v1/brewsessions/{session['id']}")
    assert again["brewsessions"][0]["recipe"]["title"] == "Harbour Porter"
    status, said = await desk.refused("DELETE", f"/manage/recipes/{session['recipeid']}")
    assert (status, f"brew session {session['id']}" in said) == (400, True)


# Photos


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif"])
async def test_a_photo_is_added_shown_and_removed(desk: Desk, kind: str) -> None:
    recipe, data = await desk.recipe(), picture(kind)
    path = f"/manage/recipes/{recipe}/photos"
    query = "?filename=glass.x&caption=In%20the%20glass"
    answer = await desk.done("POST", f"{path}{query}", data, media=f"image/{kind}")
    (photo,) = answer["photos"]
    assert answer["count"] == "1"
    assert (photo["filename"], photo["caption"]) == ("glass.x", "In the glass")
    assert (photo["mimetype"], photo["size"]) == (f"image/{kind}", str(len(data)))
    assert await desk.done("GET", f"/v1/recipes/{recipe}/photos") == answer
    image = await desk.send("GET", f"/v1/recipes/{recipe}/photo?uuid={photo['uuid']}")
    assert image.body == data
    body = json.dumps({"caption": "At high krausen"}).encode()
    changed = await desk.done("PATCH", f"{path}/{photo['uuid']}", body, media="application/json")
    assert changed["photos"] == [{**photo, "caption": "At high krausen"}]
    await desk.done("DELETE", f"{path}/{photo['uuid'].upper()}")
    assert (await desk.done("GET", f"/v1/recipes/{recipe}/photos"))["count"] == "0"
    assert (await desk.refused("DELETE", f"{path}/{photo['uuid']}"))[0] == 404


async def test_the_bytes_decide_what_kind_of_photo_it_is(desk: Desk) -> None:
    recipe = await desk.recipe()
    path = f"/manage/recipes/{recipe}/photos"
    (photo,) = (await desk.done("POST", path, picture("gif"), media="image/png"))["photos"]
    assert (photo["mimetype"], photo["filename"], photo["caption"]) == ("image/gif", "", "")


@pytest.mark.parametrize(
    ("query", "body", "media", "status", "said"),
    [
        ("", picture(), "image/webp", 415, "image/jpeg or image/png or image/gif"),
        ("", picture(), "application/x-www-form-urlencoded", 415, "the Content-Type must be"),
        ("", b"no picture", "image/png", 400, "neither a JPEG nor a PNG nor a GIF"),
        ("", b"", "image/png", 400, "neither a JPEG nor a PNG nor a GIF"),
        ("", b"\0" * (PHOTO_BYTES + 1), "image/png", 413, str(PHOTO_BYTES)),
        (f"?filename={'x' * 256}", picture(), "image/png", 400, "filename: has more than 255"),
        (f"?caption={'x' * 1001}", picture(), "image/png", 400, "caption: has more than 1000"),
        ("?caption=a%00", picture(), "image/png", 400, "caption has a NUL in it"),
    ],
)
async def test_photos_that_are_refused_leave_nothing(
    desk: Desk, query: str, body: bytes, media: str, status: int, said: str
) -> None:
    recipe = await desk.recipe()
    refusal = await desk.refused("POST", f"/manage/recipes/{recipe}/photos{query}", body, media=media)
    assert refusal[0] == status
    assert said in refusal[1]
    assert (await desk.done("GET", f"/v1/recipes/{recipe}/photos"))["count"] == "0"


async def test_a_photo_of_no_recipe_is_refused_before_it_is_sent(desk: Desk) -> None:
    huge = b"\0" * (PHOTO_BYTES + 1)
    assert await desk.refused("POST", "/manage/recipes/7/photos", huge) == (404, "no records found")


# Folders


async def test_folders_are_made_listed_renamed_and_removed(desk: Desk) -> None:
    recipe, folder = await desk.recipe(), await desk.folder()
    other = await desk.folder("brewsession")
    await desk.done("PATCH", f"/manage/recipes/{recipe}", {"folder_id": folder})
    listed = await desk.done("GET", "/manage/folders")
    assert listed["count"] == "2"
    assert [(f["id"], f["kind"], f["name"], f["filed"]) for f in listed["folders"]] == [
        (folder, "recipe", "Winter", "1"),
        (other, "brewsession", "Winter", "0"),
    ]
    only = await desk.done("GET", "/manage/folders?kind=brewsession")
    assert [f["id"] for f in only["folders"]] == [other]
    (renamed,) = (await desk.done("PATCH", f"/manage/folders/{folder}", {"name": " Summer "}))["folders"]
    assert renamed == {**listed["folders"][0], "name": "Summer"}
    await desk.done("DELETE", f"/manage/folders/{folder}")
    assert (await desk.done("GET", "/manage/folders"))["folders"] == [listed["folders"][1]]
    (shown,) = (await desk.done("GET", f"/v1/recipes/{recipe}"))["recipes"]
    assert (shown["folder_id"], shown["folder_name"]) == (None, None)


async def test_one_name_is_one_folder_of_a_kind(desk: Desk) -> None:
    await desk.folder()
    second = await desk.folder(name="Summer")
    status, said = await desk.refused("POST", "/manage/folders", {"kind": "recipe", "name": "Winter"})
    assert (status, said) == (409, "there is a recipe folder named 'Winter'")
    status, said = await desk.refused("PATCH", f"/manage/folders/{second}", {"name": "Winter"})
    assert (status, said) == (409, "there is a folder named 'Winter'")
    assert [f["name"] for f in (await desk.done("GET", "/manage/folders"))["folders"]] == ["Summer", "Winter"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "recipe"}, "name: is missing"),
        ({"kind": "recipe", "name": ""}, "name: is empty"),
        ({"kind": "recipe", "name": " \t"}, "name: is empty"),
        ({"kind": "recipe", "name": "x" * 201}, "name: has more than 200 characters"),
        ({"kind": "recipe", "name": "a\0b"}, "name is blank, or has a NUL in it"),
        ({"kind": "recipe", "name": 1}, "name: text is needed"),
        ({"kind": "recipe", "name": None}, "name is null; leave it out instead"),
        ({"kind": "keg", "name": "a"}, "kind: it has to be 'recipe' or 'brewsession'"),
        ({"kind": "recipe", "name": "a", "colour": 1}, "colour: is not known"),
        ({"kind": "recipe", "name": "a", "x" * 500: 1}, "x" * 100 + ": is not known"),
        ([], "the body: it has to be an object"),
        (b"", "the body: is not JSON"),
        (b'{"kind": "recipe"', "the body: is not JSON"),
        (b'{"name": "\xff"}', "the body: is not JSON"),
        (b'{"name": "\\ud800"}', "the body: is not JSON"),
        (b"[" * 100_000, "the body: is not JSON"),
    ],
)
async def test_a_body_that_is_wrong_is_refused_by_the_name_of_its_member(
    desk: Desk, body: Any, said: str
) -> None:
    status, detail = await desk.refused("POST", "/manage/folders", body)
    assert (status, detail[: len(said)]) == (400, said)
    assert (await desk.done("GET", "/manage/folders"))["count"] == "0"


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "text/json"])
async def test_a_body_of_another_type_is_415(desk: Desk, media: str) -> None:
    refusal = await desk.refused("POST", "/manage/folders", {"kind": "recipe", "name": "a"}, media=media)
    assert refusal == (415, "the Content-Type must be application/json")


async def test_a_body_that_is_too_large_is_413(desk: Desk) -> None:
    body = b" " * (JSON_BODY_BYTES + 1)
    assert (await desk.refused("POST", "/manage/folders", body))[0] == 413


# Brew sessions


async def test_a_brew_session_is_made_as_the_service_shows_it(desk: Desk) -> None:
    recipe, folder = await desk.recipe(), await desk.folder("brewsession")
    entry = await desk.session(
        recipe_id=recipe,
        phase="Conditioning",
        userdate="2026-03-01",
        notes="Mash warm.\nPitch cool.",
        folder_id=folder,
        upstream_id=4101,
        details={"chillmethod": "counterflow", "source_ca": "50"},
    )
    shown = await desk.done("GET", f"/v1/brewsessions/{entry['id']}")
    assert shown == {"count": "1", "brewsessions": [entry]}
    told = ("batchcode", "phase", "userdate", "session_notes", "folder_name", "chillmethod", "source_ca")
    assert [entry[name] for name in told] == [
        *("HP001", "Conditioning", "2026-03-01", "Mash warm.\nPitch cool.", "Winter", "counterflow", "50")
    ]
    assert (entry["recipe"]["snapshot"], entry["recipe"]["copy_parent_id"]) == ("1", recipe)
    assert entry["recipe"]["id"] == entry["recipeid"] != recipe
    session = await desk.service.services.store.sessions.get(int(entry["id"]))
    assert session is not None
    assert session.upstream_id == 4101


async def test_a_batch_code_is_made_from_the_recipe(desk: Desk) -> None:
    recipe = await desk.recipe()
    codes = []
    for _ in range(2):
        made = await desk.done("POST", "/manage/brewsessions", {"recipe_id": int(recipe)})
        codes.append(made["brewsessions"][0]["batchcode"])
    assert codes == ["HP001", "HP002"]


async def test_a_batch_code_that_another_beer_has_is_refused(desk: Desk) -> None:
    said = {"batchcode": "HP001"}
    assert (await desk.done("POST", "/manage/brewsessions", said))["warnings"] == []
    status, detail = await desk.refused("POST", "/manage/brewsessions", said)
    assert (status, detail.partition(";")[0]) == (409, "HP001 is brew session 1 already")
    (warning,) = (await desk.done("POST", "/manage/brewsessions", {**said, "again": True}))["warnings"]
    assert warning.startswith(
        "brew session 1 has the batch code HP001, too; if it is the same beer, keep one: "
    )
    done = await desk.done("PATCH", "/manage/brewsessions/1", {"phase": "All Gone"})
    assert len(done["warnings"]) == 1
    assert (await desk.done("PATCH", "/manage/brewsessions/2", {}))["warnings"] == []


async def test_a_brew_session_is_changed_in_what_is_said(desk: Desk) -> None:
    first = await desk.session(
        notes="old", phase="Planning", details={"chillmethod": "ice", "userunit": "us"}
    )
    path = f"/manage/brewsessions/{first['id']}"
    change = {"phase": "All Gone", "notes": "", "details": {"chillmethod": None, "totalwater": "31"}}
    (changed,) = (await desk.done("PATCH", path, change))["brewsessions"]
    assert (changed["phase"], changed["session_notes"], changed["batchcode"]) == ("All Gone", "", "HP001")
    assert (changed["chillmethod"], changed["totalwater"], changed["userunit"]) == ("", "31", "us")
    assert (await desk.done("GET", f"/v1/brewsessions/{first['id']}"))["brewsessions"] == [changed]
    (same,) = (await desk.done("PATCH", path, {}))["brewsessions"]
    assert {**same, "updated_at": ""} == {**changed, "updated_at": ""}


async def test_a_brew_session_is_taken_out_of_its_folder_and_from_forwarding(desk: Desk) -> None:
    folder = await desk.folder("brewsession")
    entry = await desk.session(folder_id=folder, upstream_id="4101")
    path = f"/manage/brewsessions/{entry['id']}"
    (changed,) = (await desk.done("PATCH", path, {"folder_id": 0, "upstream_id": 0.0}))["brewsessions"]
    assert (entry["folder_id"], changed["folder_id"]) == (folder, None)
    session = await desk.service.services.store.sessions.get(int(entry["id"]))
    assert session is not None
    assert session.upstream_id is None


async def test_every_detail_is_kept_and_shown(desk: Desk) -> None:
    details = {name: f"{place}" for place, name in enumerate(DETAIL_MEMBERS)}
    entry = await desk.session(details=details)
    assert {name: entry[name] for name in DETAIL_MEMBERS} == details


async def test_the_longest_notes_fit_into_a_body_however_they_are_written(desk: Desk) -> None:
    notes = "\N{BEER MUG}" * 100_000
    entry = await desk.session(notes=notes)  # sent as 1.2 million characters of \ud83c\udf7a
    assert entry["session_notes"] == notes


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 400, "a brew session needs a batch code, or a recipe to make one from"),
        ({"recipe_id": 0}, 400, "a brew session needs a batch code"),
        ({"batchcode": " "}, 400, "batchcode: is empty"),
        ({"batchcode": "x" * 1001}, 400, "batchcode: has more than 1000 characters"),
        ({"batchcode": "B", "phase": "a\0"}, 400, "phase has a NUL in it"),
        ({"batchcode": "B", "notes": "a\0"}, 400, "notes has a NUL in it"),
        ({"batchcode": "B", "notes": "x" * 100_001}, 400, "notes: has more than 100000"),
        ({"batchcode": "B", "userdate": "1.3.2026"}, 400, "userdate must be a day, YYYY-MM-DD"),
        ({"batchcode": "B", "userdate": "2026-02-30"}, 400, "userdate is no day of the calendar"),
        ({"batchcode": "B", "userdate": 1772323200}, 400, "userdate must be a day, YYYY-MM-DD"),
        ({"batchcode": "B", "folder_id": True}, 400, "folder_id must be a whole number"),
        ({"batchcode": "B", "folder_id": -1}, 400, "folder_id must be a whole number"),
        ({"batchcode": "B", "folder_id": 1.5}, 400, "folder_id must be a whole number"),
        ({"batchcode": "B", "folder_id": 10**15}, 400, "folder_id must be a whole number"),
        ({"batchcode": "B", "folder_id": "1_0"}, 400, "folder_id must be a whole number"),
        ({"batchcode": "B", "details": {"colour": "x"}}, 400, "details.colour.[key] is none of"),
        ({"batchcode": "B", "details": {"userunit": 1}}, 400, "details.userunit: text is needed"),
        ({"batchcode": "B", "details": {"userunit": "x" * 1001}}, 400, "details.userunit: has more than"),
        ({"batchcode": "B", "details": {"userunit": "\0"}}, 400, "details.userunit has a NUL in it"),
        ({"batchcode": "B", "meter_active": "1"}, 400, "meter_active: is not known"),
        ({"recipe_id": 7}, 404, "no records found"),
        ({"batchcode": "B", "folder_id": 7}, 404, "no records found"),
    ],
)
async def test_brew_sessions_that_are_refused_are_not_made(
    desk: Desk, body: dict[str, Any], status: int, said: str
) -> None:
    refusal = await desk.refused("POST", "/manage/brewsessions", body)
    assert (refusal[0], refusal[1][: len(said)]) == (status, said)
    assert (await desk.done("GET", "/v1/brewsessions"))["count"] == "0"
    assert (await desk.done("GET", "/v1/recipes?snapshots=true"))["count"] == "0"


async def test_a_brew_session_keeps_the_recipe_it_began_with(desk: Desk) -> None:
    recipe, entry = await desk.recipe(), await desk.session()
    refusal = await desk.refused("PATCH", f"/manage/brewsessions/{entry['id']}", {"recipe_id": recipe})
    assert refusal == (400, "recipe_id: is not known")


async def test_a_deleted_brew_session_is_gone(desk: Desk) -> None:
    entry = await desk.session()
    await desk.done("DELETE", f"/manage/brewsessions/{entry['id']}")
    assert (await desk.done("GET", "/v1/brewsessions"))["count"] == "0"
    for method, path in (("GET", "/v1"), ("DELETE", "/manage"), ("PATCH", "/manage")):
        body = {"phase": "x"} if method == "PATCH" else None
        assert (await desk.refused(method, f"{path}/brewsessions/{entry['id']}", body))[0] == 404


# Accounts and keys


async def test_the_owner_makes_accounts_and_their_keys(desk: Desk) -> None:
    key = await desk.account("Quay")
    listed = await desk.done("GET", "/manage/accounts")
    assert [(a["id"], a["name"]) for a in listed["accounts"]] == [("1", "owner"), ("2", "Quay")]
    await desk.done("POST", "/manage/brewsessions", {"batchcode": "Q1"}, key=key)
    (mine,) = (await desk.done("GET", "/v1/brewsessions", key=key))["brewsessions"]
    assert (mine["batchcode"], mine["loginid"]) == ("Q1", "2")
    assert await desk.refused("POST", "/manage/accounts", {"name": "Quay"}) == (
        409,
        "there is an account named 'Quay' already; `accounts list` shows them",
    )


async def test_nobody_else_sees_or_makes_accounts(desk: Desk) -> None:
    key = await desk.account("Quay")
    for method, body in (("GET", None), ("POST", {"name": "Third"})):
        status, said = await desk.refused(method, "/manage/accounts", body, key=key)
        assert (status, said) == (403, "only a key of the owner's account may do that")
    assert (await desk.done("GET", "/manage/accounts"))["count"] == "2"


async def test_a_key_is_shown_once_and_works_until_it_is_revoked(desk: Desk) -> None:
    made = (await desk.done("POST", "/manage/keys", {"name": "phone", "scopes": ["read"]}))["keys"][0]
    key = made.pop("key")
    assert (made["name"], made["scopes"], made["account_id"]) == ("phone", ["read"], "1")
    assert key.startswith(made["shown"])
    listed = await desk.send("GET", "/manage/keys")
    assert key.encode() not in listed.body
    assert json.loads(listed.body)["keys"][1] == made
    assert (await desk.send("GET", "/v1/recipes", key=key)).status == 200
    assert (await desk.send("GET", "/manage/keys", key=key)).status == 401
    await desk.done("DELETE", "/manage/keys?name=phone")
    assert (await desk.send("GET", "/v1/recipes", key=key)).status == 401
    assert (await desk.refused("DELETE", "/manage/keys?name=phone"))[0] == 404


async def test_a_key_without_scopes_said_only_looks(desk: Desk) -> None:
    made = (await desk.done("POST", "/manage/keys", {"name": "tablet"}))["keys"][0]
    assert made["scopes"] == ["read"]
    end = "2126-01-01T00:00:00Z"
    made = (await desk.done("POST", "/manage/keys", {"name": "vat", "device": "i1", "expires_at": end}))[
        "keys"
    ]
    assert (made[0]["scopes"], made[0]["device"]) == (["ingest"], "i1")
    assert made[0]["expires_at"] == "2126-01-01 00:00:00"
    assert (await desk.send("POST", "/v1/fermentation/1/import", [], key=made[0]["key"])).status == 401


async def test_two_keys_of_a_name_are_valid_while_the_old_one_is_changed(desk: Desk) -> None:
    old = (await desk.done("POST", "/manage/keys", {"name": "tablet"}))["keys"][0]
    new = (await desk.done("POST", "/manage/keys/rotate", {"name": "tablet"}))["keys"][0]
    for key in (old["key"], new["key"]):
        await desk.done("GET", "/v1/recipes", key=key)
    listed = (await desk.done("GET", "/manage/keys"))["keys"]
    assert [(key["name"], key["replaced"]) for key in listed[1:]] == [("tablet", True), ("tablet", False)]
    assert listed[2]["last_used_at"] is not None
    assert listed[2]["last_source"] == "127.0.0.1"
    assert (await desk.refused("POST", "/manage/keys/rotate", {"name": "nobody"}))[0] == 404
    await desk.done("POST", "/manage/keys/rotate", {"name": "tablet", "overlap_s": 0})
    assert (await desk.send("GET", "/v1/recipes", key=new["key"])).status == 401


async def test_an_account_has_its_own_keys_and_the_owner_may_name_it(desk: Desk) -> None:
    key = await desk.account("Quay")
    await desk.done("POST", "/manage/keys", {"name": "tablet"}, key=key)
    own = await desk.done("GET", "/manage/keys", key=key)
    assert [(k["name"], k["account_id"]) for k in own["keys"]] == [("Quay's", "2"), ("tablet", "2")]
    assert await desk.done("GET", "/manage/keys?account=Quay") == own
    assert [k["name"] for k in (await desk.done("GET", "/manage/keys"))["keys"]] == ["test"]
    await desk.done("DELETE", "/manage/keys?name=tablet&account=Quay")
    assert (await desk.done("GET", "/manage/keys?account=Quay", key=key))["count"] == "1"
    for path in ("/manage/keys?account=owner", "/manage/keys?account=Nobody"):
        assert (await desk.refused("GET", path, key=key))[0] == 403
    assert (await desk.refused("GET", "/manage/keys?account=Nobody"))[0] == 404
    assert (await desk.refused("DELETE", "/manage/keys?name=test", key=key))[0] == 404


async def test_the_last_way_in_cannot_be_shut(desk: Desk) -> None:
    status, said = await desk.refused("DELETE", "/manage/keys?name=test")
    assert (status, said.split(";")[0]) == (400, "that is the key of this very request")
    assert (await desk.done("GET", "/manage/keys"))["count"] == "1"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"name": "test"}, 409, "there is an active key named 'test'; revoke it first"),
        ({"name": "a", "scopes": []}, 400, "scopes: List should have at least 1 item"),
        ({"name": "a", "scopes": ["root"]}, 400, "scopes.0: it has to be 'read', 'ingest' or 'admin'"),
        ({"name": "a", "account": "Nobody"}, 404, "no records found"),
        ({"name": ""}, 400, "name: is empty"),
        ({"name": "a\0"}, 400, "name is blank, or has a NUL in it"),
        ({}, 400, "name: is missing"),
    ],
)
async def test_keys_that_are_refused_are_not_made(
    desk: Desk, body: dict[str, Any], status: int, said: str
) -> None:
    refusal = await desk.refused("POST", "/manage/keys", body)
    assert (refusal[0], refusal[1][: len(said)]) == (status, said)
    assert (await desk.done("GET", "/manage/keys"))["count"] == "1"


async def test_which_key_to_revoke_must_be_said(desk: Desk) -> None:
    assert await desk.refused("DELETE", "/manage/keys") == (400, "name: is missing")
