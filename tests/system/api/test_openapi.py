"""The API's description: what the router does, valid, and true of real answers; its page works offline."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31

from gateway.http.endpoint import JSON
from tests.system.api.everything import BODIES, QUERIES, ROUTES, Filled, Running, fill, running

Json = dict[str, Any]

REFERENCE = "#/components/schemas/"

FETCHING = {"src", "srcset", "href", "action", "data", "poster", "background", "formaction", "ping"}
"""Attributes of HTML that name something to fetch or to go to."""


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


@pytest.fixture
async def document(service: Running) -> Json:
    answer = await service.ask("GET", "/openapi.json", "")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    document: Json = json.loads(answer.body)
    return document


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def everything_in(value: Any) -> Iterator[tuple[str, Any]]:
    """Every member of every object, however deep."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name, member
            yield from everything_in(member)
    elif isinstance(value, list):
        for item in value:
            yield from everything_in(item)


def answer_schema(document: Json, schema: Json) -> jsonschema_rs.Draft202012Validator:
    """What checks an answer; the document's schemas are its neighbours."""
    return jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})


async def test_the_document_has_the_routes_and_no_others(document: Json) -> None:
    described = [(method, path) for method, path, _ in operations(document)]
    assert sorted(described) == sorted(route for route in ROUTES if route[0] != "HEAD")
    assert {("GET", "/healthz"), ("GET", "/docs"), ("GET", "/openapi.json"), ("POST", "/")} < set(described)


async def test_the_document_is_valid_openapi_3_1(document: Json) -> None:
    assert document["openapi"] == "3.1.0"
    errors = jsonschema_rs.Draft202012Validator(OPENAPI_31).iter_errors(document)
    assert [error.message for error in errors] == []


async def test_every_schema_of_the_document_is_a_valid_one(document: Json) -> None:
    schemas = [schema for name, schema in everything_in(document["paths"]) if name == "schema"]
    assert len(schemas) > 100
    for schema in (*schemas, *document["components"]["schemas"].values()):
        jsonschema_rs.meta.validate(schema)
        answer_schema(document, schema)


async def test_every_reference_leads_somewhere_and_every_model_is_used(document: Json) -> None:
    references = {value for name, value in everything_in(document) if name == "$ref"}
    names = {reference.removeprefix(REFERENCE) for reference in references}
    assert names == set(document["components"]["schemas"])


async def test_operation_ids_are_unique_and_words(document: Json) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch("[a-z][a-z0-9_]*", name) for name in ids)


async def test_parameters_of_a_path_are_the_ones_in_it(document: Json) -> None:
    for _, path, operation in operations(document):
        described = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert described == set(re.findall(r"\{(\w+)\}", path))


async def test_what_needs_a_key_says_so(document: Json) -> None:
    for _, path, operation in operations(document):
        kept = path.startswith(("/v1/", "/manage/")) or path == "/metrics"
        assert operation.get("security") == ([{"key": []}] if kept else None), path
        assert not kept or {"401", "429"} <= set(operation["responses"])
    assert document["components"]["securitySchemes"] == {
        "key": {"type": "apiKey", "in": "header", "name": "X-API-KEY"}
    }


async def test_nothing_may_be_null_in_a_parameter_or_a_body(document: Json) -> None:
    for _, path, operation in operations(document):
        for parameter in operation["parameters"]:
            assert {"type": "null"} not in parameter["schema"].get("anyOf", []), (path, parameter["name"])
    for model in ("NewBrewSession", "NewKey", "NewFolder"):
        for name, about in document["components"]["schemas"][model]["properties"].items():
            assert {"type": "null"} not in about.get("anyOf", []), (model, name)


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[0] != "HEAD"])
async def test_real_answers_are_as_described(service: Running, method: str, path: str) -> None:
    mine = await fill(service.services, "owner", "MARK")
    document = json.loads((await service.ask("GET", "/openapi.json", "")).body)
    operation = document["paths"][path][method.lower()]
    for account, expected in ((mine, 200), (unknown(mine), None)):
        target = account.path(path + QUERIES.get((method, path), ""))
        answer = await service.ask(method, target, **BODIES.get((method, path), {}))
        if path == "/manage/sample-data":
            expected = 409  # the account has everything
        elif (method, path) == ("POST", "/manage/backup"):
            expected = 403  # through the Unix socket only
        assert expected in {None, answer.status} or answer.status in {202, 204}, answer.body
        described = operation["responses"][str(answer.status)].get("content")
        if described is None:
            assert (answer.status, answer.body) == (204, b"")
            continue
        media = answer.headers["Content-Type"].split(";")[0]
        assert media in described
        if media == JSON:
            answer_schema(document, described[media]["schema"]).validate(json.loads(answer.body))


def unknown(account: Filled) -> Filled:
    """The same account with records that are not there."""
    ids = {name: "4711" if name.endswith("_id") else value for name, value in account.ids.items()}
    return Filled(account.account_id, account.mark, account.key, ids)


async def test_the_descriptions_need_no_key_and_change_nothing_about_it(service: Running) -> None:
    for path in ("/docs", "/openapi.json"):
        for key in ("", "hg_unknown", service.key):
            assert (await service.ask("GET", path, key)).status == 200
        assert service.key.encode() not in (await service.ask("GET", path)).body


class Page(HTMLParser):
    """Collects what a browser would fetch, run or jump to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.handlers: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in FETCHING:
                self.links.add(value or "")
            elif name == "id":
                self.anchors.add(value or "")
            elif name.startswith("on"):
                self.handlers.add(name)


async def test_the_page_works_without_a_network_and_runs_nothing(service: Running) -> None:
    answer = await service.ask("GET", "/docs", "")
    text = answer.body.decode()
    page = Page(text)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "svg"}
    assert not page.handlers
    assert page.links - {f"#{anchor}" for anchor in page.anchors} == {"openapi.json"}
    assert not re.search(r"https?://|@import|url\(|javascript:", text)


async def test_the_page_has_every_operation_and_every_model(service: Running, document: Json) -> None:
    text = (await service.ask("GET", "/docs", "")).body.decode()
    for method, path, _ in operations(document):
        assert f"<b>{method}</b> {path}</h3>" in text
    for model in document["components"]["schemas"]:
        assert f'id="{model}"' in text
