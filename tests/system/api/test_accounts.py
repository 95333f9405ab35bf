"""The account matrix: on no route does a key do more than its scope, or see records of another account.

Everything is taken from the router itself: a new route with a path parameter, a body or a list that this
test does not know fails it.
"""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.key import Scope
from tests.system.api.everything import (
    BODIES,
    KEPT_PATHS,
    OWNER_ONLY,
    QUERIES,
    ROUTES,
    Answer,
    Filled,
    Running,
    fill,
    running,
)

UNAUTHORIZED = {"message": "unauthorized", "detail": "invalid api key"}
NOT_FOUND = {"message": "not-found", "detail": "no records found"}

KEPT = [(method, path) for method, path in ROUTES if path in KEPT_PATHS]
OF_ALL = {"/manage/devices/{device_id}/series"}
"""Paths of records that are the gateway's: the owner sees all of them."""

OF_A_RECORD = [route for route in KEPT if "{" in route[1] and route not in OWNER_ONLY]
LISTS = [
    (method, path)
    for method, path in KEPT
    if "{" not in path and method in {"GET", "HEAD"} and (method, path) not in QUERIES
]
MAKING = [
    (method, path)
    for method, path in KEPT
    if "{" not in path and method not in {"GET", "HEAD"} and (method, path) not in OWNER_ONLY
]

WATCHED = {"/manage/status"}
"""Shows counts of all accounts together, to whoever may read the owner's records."""

TO_READ = {
    "/manage/brewsessions/{brew_session_id}/figures",
    "/manage/brewsessions/{brew_session_id}/insight",
    "/manage/brewsessions/{brew_session_id}/events",
    "/manage/brewsessions/{brew_session_id}/events/{event_id}",
    "/manage/brewsessions/{brew_session_id}/series",
    "/manage/devices/{device_id}/series",
    "/manage/events",
    "/manage/alarms",
    "/manage/alarms/check",
    "/manage/alarms/history",
    "/manage/alarms/settings",
    "/manage/channels",
}
"""Paths below `/manage` for which a key that reads is enough."""

STREAMS = {"/manage/events"}
"""Names what changes, from now on."""

NOBODYS = {"/manage/families"}
"""Is the same for all accounts, and shows records of none, to whoever may read."""

OF_A_DEVICE = {"/manage/alarms/check"}
"""Shows brews with a device in them alone."""

OWNERS = {"/manage/accounts", *WATCHED, *(path for _, path in OWNER_ONLY)}

WHOLE = {"/manage/backup", "/manage/audit", "/metrics"}
"""Hold all accounts for the owner; the others see nothing, or what is their own."""

LAST_USE = re.compile(rb'"last_used_at":"[^"]*"')
NOW = re.compile(rb'"(now|day)":("[^"]*"|[0-9.]+)')

SCOPES: tuple[Scope, ...] = ("read", "ingest", "admin")

XML = {"data": b"<RECIPES/>", "headers": {"Content-Type": "application/xml"}}

NAMING: dict[tuple[str, str], list[tuple[str, dict[str, Any], int]]] = {
    ("POST", "/manage/recipes"): [("?folder_id={folder_id}", XML, 404)],
    ("PATCH", "/manage/recipes"): [
        ("", {"json": {"recipe_ids": ["{recipe_id}"], "folder_id": 0}}, 400),
        ("", {"json": {"recipe_ids": ["{own_recipe_id}"], "folder_id": "{folder_id}"}}, 404),
    ],
    ("POST", "/manage/folders"): [],
    ("POST", "/manage/channels"): [],
    ("POST", "/manage/links"): [
        ("", {"json": {"kind": "picture", "name": "n", "brew_session_id": "{brew_session_id}"}}, 404)
    ],
    ("POST", "/manage/brewsessions"): [
        ("", {"json": {"recipe_id": "{recipe_id}"}}, 404),
        ("", {"json": {"batchcode": "B", "folder_id": "{session_folder_id}"}}, 404),
    ],
    ("PUT", "/manage/alarms/settings"): [
        ("", {"json": {"rule": "stuck", "setting": {"off": True}}}, 403),
        (
            "",
            {"json": {"rule": "stuck", "scope": "brew", "subject": "{brew_session_id}", "default": True}},
            404,
        ),
    ],
    ("POST", "/manage/alarms/test"): [("", {"json": {"channel": "{mark}"}}, 404)],
    ("POST", "/manage/accounts"): [("", {"json": {"name": "third"}}, 403)],
    ("POST", "/manage/keys"): [("", {"json": {"name": "new", "account": "{account}"}}, 403)],
    ("POST", "/manage/keys/rotate"): [
        ("", {"json": {"name": "{mark}"}}, 404),
        ("", {"json": {"name": "{mark}", "account": "{account}"}}, 403),
    ],
    ("DELETE", "/manage/keys"): [("?name={mark}", {}, 404), ("?name={mark}&account={account}", {}, 403)],
}
"""Requests of the second account that name something of the first: query, body, and how they are refused."""

FILTERS = {
    "/v1/recipes": ("id={recipe_id}", "folder_id={folder_id}", "author={mark}", "keyword={mark}"),
    "/v1/brewsessions": ("id={brew_session_id}", "folder_id={session_folder_id}", "keyword={mark}"),
}


@dataclass(frozen=True)
class Two:
    """A service with two filled accounts."""

    service: Running
    owner: Filled
    other: Filled

    def sides(self, attacker: str) -> tuple[Filled, Filled]:
        """Who asks, and whose records are asked for."""
        return (self.owner, self.other) if attacker == "owner" else (self.other, self.owner)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


@pytest.fixture
async def two(service: Running) -> Two:
    await service.services.access.add_account("other")
    owner = await fill(service.services, "owner", "OWNERMARK")
    return Two(service, owner, await fill(service.services, "other", "OTHERMARK"))


def needed(method: str, path: str) -> Scope:
    if path.startswith("/manage/") and path not in WATCHED | NOBODYS:
        return "read" if path in TO_READ and method in {"GET", "HEAD"} else "admin"
    return "read" if method in {"GET", "HEAD"} else "ingest"


def request_of(method: str, path: str, account: Filled) -> tuple[str, dict[str, Any]]:
    """A request that is right in everything, if one owns those records."""
    body = BODIES[method, path] if method in {"POST", "PUT", "PATCH"} else {}
    return account.path(path + QUERIES.get((method, path), "")), body


def assert_refusal(answer: Answer, method: str, body: dict[str, str]) -> None:
    assert answer.body == b"" if method == "HEAD" else json.loads(answer.body) == body


def assert_unmarked(answer: Answer, account: Filled) -> None:
    said = answer.body + str(sorted(answer.headers.items())).encode()
    assert account.mark.encode() not in said
    assert account.ids["uuid"].encode() not in said


@pytest.mark.parametrize(("method", "path"), KEPT)
async def test_a_key_does_what_its_scope_says_and_nothing_else(
    service: Running, method: str, path: str
) -> None:
    mine = await fill(service.services, "owner", "MARK")
    for scope in SCOPES:
        key = await service.services.access.add(scope, frozenset({scope}))
        answer = await service.ask(method, mine.path(path), key)
        if scope in {needed(method, path), "admin"}:
            assert answer.status not in {401, 403}, scope
        else:
            assert answer.status == 401, scope
            assert_refusal(answer, method, UNAUTHORIZED)


@pytest.mark.parametrize("attacker", ["owner", "other"])
@pytest.mark.parametrize(("method", "path"), OF_A_RECORD)
async def test_records_of_another_account_do_not_exist(
    two: Two, method: str, path: str, attacker: str
) -> None:
    asking, asked = two.sides(attacker)
    target, body = request_of(method, path, asked)
    before = await everything_of(two.service, asked)
    answer = await two.service.ask(method, target, asking.key, **body)
    if path in OF_ALL and attacker == "owner":
        assert answer.status == 200
        return
    assert answer.status == 404
    assert_refusal(answer, method, NOT_FOUND)
    assert_unmarked(answer, asked)
    assert await everything_of(two.service, asked) == before
    # Not because anything else was wrong with it: to whom it belongs, the same is given.
    assert (await two.service.ask(method, target, asked.key, **body)).status == 200


@pytest.mark.parametrize(("method", "path"), sorted(OWNER_ONLY))
async def test_what_is_the_owners_is_refused_to_other_accounts(two: Two, method: str, path: str) -> None:
    target, body = request_of(method, path, two.owner)
    before = await everything_of(two.service, two.owner)
    answer = await two.service.ask(method, target, two.other.key, **body)
    assert answer.status == 403
    expected = {"message": "failure", "detail": "only a key of the owner's account may do that"}
    assert_refusal(answer, method, expected)
    assert await everything_of(two.service, two.owner) == before


@pytest.mark.parametrize("attacker", ["owner", "other"])
@pytest.mark.parametrize(("method", "path"), [route for route in OF_A_RECORD if "/photo" in route[1]])
async def test_photos_of_another_account_are_none_of_ones_own_recipe(
    two: Two, method: str, path: str, attacker: str
) -> None:
    asking, asked = two.sides(attacker)
    mixed = replace(asking, ids={**asking.ids, "uuid": asked.ids["uuid"]})
    target, body = request_of(method, path, mixed)
    answer = await two.service.ask(method, target, asking.key, **body)
    assert answer.status == (404 if asked.ids["uuid"] in target else 200)
    assert_unmarked(answer, asked)


@pytest.mark.parametrize("attacker", ["owner", "other"])
@pytest.mark.parametrize(("method", "path"), LISTS)
async def test_lists_have_ones_own_records_only(two: Two, method: str, path: str, attacker: str) -> None:
    asking, asked = two.sides(attacker)
    answer = await two.service.ask(method, path + QUERIES.get((method, path), ""), asking.key)
    if path not in WHOLE or attacker != "owner":
        assert_unmarked(answer, asked)
    if path in OWNERS:
        assert answer.status == (200 if attacker == "owner" else 403)
        return
    assert answer.status == 200
    if method == "GET" and path not in NOBODYS | STREAMS | OF_A_DEVICE:
        assert asking.mark.encode() in answer.body


@pytest.mark.parametrize("attacker", ["owner", "other"])
@pytest.mark.parametrize("path", [path for method, path in LISTS if method == "GET" and path in FILTERS])
async def test_no_filter_finds_records_of_another_account(two: Two, path: str, attacker: str) -> None:
    asking, asked = two.sides(attacker)
    for template in (*FILTERS[path], f"brewer_author_id={asked.account_id}"):
        query = template.format_map({**asked.ids, "mark": asked.mark})
        answer = await two.service.ask("GET", f"{path}?snapshots=true&{query}", asking.key)
        assert json.loads(answer.body)["count"] == "0", query
        assert_unmarked(answer, asked)
        found = await two.service.ask("GET", f"{path}?snapshots=true&{query}", asked.key)
        assert json.loads(found.body)["count"] != "0", query


@pytest.mark.parametrize("attacker", ["owner", "other"])
async def test_recipes_of_another_account_are_not_written_as_a_document(two: Two, attacker: str) -> None:
    asking, asked = two.sides(attacker)
    for ids in (asked.ids["recipe_id"], f"{asking.ids['recipe_id']},{asked.ids['recipe_id']}"):
        answer = await two.service.ask("GET", f"/manage/recipes.xml?ids={ids}", asking.key)
        assert answer.status == 400
        assert_unmarked(answer, asked)
    path = f"/manage/recipes.xml?ids={asking.ids['recipe_id']}"
    assert asking.mark.encode() in (await two.service.ask("GET", path, asking.key)).body


def test_every_list_of_the_service_has_its_filters_here() -> None:
    assert {path for _, path in LISTS if path.startswith("/v1/")} == set(FILTERS)


@pytest.mark.parametrize(("method", "path"), MAKING)
async def test_nothing_is_made_from_records_of_another_account(two: Two, method: str, path: str) -> None:
    asking, asked = two.sides("other")
    before = await everything_of(two.service, asked)
    for query, body, status in NAMING[method, path]:
        names = {**asked.ids, "mark": asked.mark, "account": "owner"}
        names["own_recipe_id"] = asking.ids["recipe_id"]
        more = {name: filled(value, names) for name, value in body.items()}
        answer = await two.service.ask(method, path + query.format_map(names), asking.key, **more)
        assert answer.status == status, (query, body)
        assert_unmarked(answer, asked)
    assert await everything_of(two.service, asked) == before


@pytest.mark.parametrize("attacker", ["owner", "other"])
async def test_ones_own_records_do_not_go_into_folders_of_another_account(two: Two, attacker: str) -> None:
    asking, asked = two.sides(attacker)
    for path, folder in (
        ("/manage/recipes/{recipe_id}", "folder_id"),
        ("/manage/brewsessions/{brew_session_id}", "session_folder_id"),
    ):
        for whose, status in ((asked, 404), (asking, 200)):
            body = {"folder_id": whose.ids[folder]}
            answer = await two.service.ask("PATCH", asking.path(path), asking.key, json=body)
            assert answer.status == status


async def test_key_names_of_another_account_stay_its_own(two: Two) -> None:
    """The same name is free in every account, and revoking it there leaves the other's alone."""
    answer = await two.service.ask("POST", "/manage/keys", two.other.key, json={"name": two.owner.mark})
    assert answer.status == 200
    path = f"/manage/keys?name={two.owner.mark}"
    assert (await two.service.ask("DELETE", path, two.other.key)).status == 200
    assert (await two.service.ask("DELETE", path, two.other.key)).status == 404
    assert (await two.service.ask("GET", "/v1/recipes", two.owner.key)).status == 200


async def everything_of(service: Running, account: Filled) -> dict[str, bytes]:
    """What an account gets to see of all its records."""
    pages = {}
    for method, path in KEPT:
        if method == "GET" and path not in {*OWNERS, "/metrics"}:  # ages of values change by themselves
            target, _ = request_of(method, path, account)
            body = (await service.ask(method, target, account.key)).body
            # This very request is a use of the key, and time goes on.
            pages[path] = NOW.sub(b"", LAST_USE.sub(b"", body))
    return pages


def filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: filled(member, names) for name, member in value.items()}
    if isinstance(value, list):
        return [filled(member, names) for member in value]
    return value.format_map(names) if isinstance(value, str) else value
