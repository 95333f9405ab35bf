"""The API's own description: an OpenAPI 3.1 document made from the endpoints' rows, and a page to read it."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Literal

from aiohttp import hdrs, web
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from gateway import __version__
from gateway.drivers import BY_NAME
from gateway.http.both_ends import LINES
from gateway.http.docs_page import page
from gateway.http.endpoint import (
    JSON,
    AnyEndpoint,
    Call,
    Document,
    Endpoint,
    ErrorBody,
    Media,
    Query,
    not_null,
)
from gateway.http.hardening import POLICY
from gateway.http.kept import KeptDocument
from gateway.http.middleware import KEY_HEADER
from gateway.http.parameters import NEEDED, path_parameters, path_template

VERSION = "3.1.0"

Json = dict[str, Any]

DESCRIPTION = """The Brewing Data Service API (`/v1`), served from this gateway's own database, and what the
gateway adds to it (`/manage`). Hydrometers report on the device paths."""

TAGS = {"v1": "Brewing Data Service", "manage": "Management", "devices": "Devices", "gateway": "Gateway"}

REF = "#/components/schemas/{model}"

DEVICE_REFUSALS = (400, 401, 403, 413, 415, 429, 503)

RETRIED = frozenset({429, 503})
"""Statuses whose answer says when to try again."""

RETRY_AFTER: Json = {"description": "Seconds.", "required": True, "schema": {"type": "integer", "minimum": 1}}

REPORTED: Json = {
    "name": "reported",
    "in": "query",
    "style": "form",
    "explode": True,
    "description": "What is reported, each value under its own name. Without any, nothing is reported.",
    "schema": {"type": "object", "additionalProperties": {"type": "string"}},
}


class Whole(BaseModel):
    """An OpenAPI document."""

    openapi: Literal["3.1.0"]
    info: dict[str, Any]
    paths: dict[str, Any]


def endpoints(
    described: Sequence[AnyEndpoint], device_routes: Sequence[web.RouteDef]
) -> tuple[AnyEndpoint, ...]:
    """Return `/openapi.json` and `/docs`, which describe all endpoints and the device paths."""

    def whole() -> Json:
        return document((*described, *own), device_routes)

    # Everything is in the page; nothing may be fetched or run, so it works offline and stays harmless.
    policy = {POLICY: "default-src 'none'; style-src 'unsafe-inline'"}
    as_json = KeptDocument(lambda: json.dumps(whole()).encode(), JSON)
    as_page = KeptDocument(lambda: page(whole()).encode(), "text/html", policy)

    async def openapi(call: Call[Query, None]) -> web.Response:
        return await as_json.answer(call.request)

    async def docs(call: Call[Query, None]) -> web.Response:
        return await as_page.answer(call.request)

    answer = Media((JSON,), Whole)
    own: tuple[AnyEndpoint, ...] = (
        Endpoint(
            "GET",
            "/openapi.json",
            openapi,
            "This description, as OpenAPI",
            Query,
            answer,
            refusals=(304,),
        ),
        Endpoint(
            "GET",
            "/docs",
            docs,
            "This description, to read",
            Query,
            Media(("text/html",)),
            refusals=(304,),
        ),
    )
    return own


def document(described: Sequence[AnyEndpoint], device_routes: Sequence[web.RouteDef] = ()) -> Json:
    """Return the OpenAPI document."""
    paths: dict[str, Json] = {}
    for endpoint in described:
        paths.setdefault(path_template(endpoint.path), {})[endpoint.method.lower()] = _operation(endpoint)
    for route in device_routes:
        paths.setdefault(path_template(route.path), {})[route.method.lower()] = _device_operation(route)
    return {
        "openapi": VERSION,
        "info": {
            "title": "hydrometer-gateway",
            "version": __version__,
            "description": DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in TAGS.values()],
        "paths": paths,
        "components": {
            "schemas": _schemas(frozenset(model for one in described for model in _models(one))),
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": KEY_HEADER}},
        },
    }


@cache
def _schemas(models: frozenset[tuple[type[BaseModel], JsonSchemaMode]]) -> Json:
    """Return the schemas of the models. They take a quarter of a second, so they are made only once."""
    named = sorted(models, key=lambda entry: entry[0].__name__)
    schemas: Json = models_json_schema(named, ref_template=REF)[1]["$defs"]
    return schemas


def _models(endpoint: AnyEndpoint) -> Iterator[tuple[type[BaseModel], JsonSchemaMode]]:
    """Yield the models whose schemas an endpoint refers to, each as an answer or as a body."""
    answer = endpoint.answer.model if isinstance(endpoint.answer, Media) else endpoint.answer
    for model in (answer, endpoint.unavailable, ErrorBody):
        if model is not None:
            yield model, "serialization"
    body = endpoint.body.model if isinstance(endpoint.body, Document) else endpoint.body
    if body is not None:
        yield body, "validation"


def _operation(endpoint: AnyEndpoint) -> Json:
    operation: Json = {
        # Endpoints 9 and 10 share a handler: the suffix tells them apart.
        "operationId": endpoint.handler.__name__ + ("_logs" if endpoint.path.endswith("/logs") else ""),
        "summary": endpoint.summary,
        "tags": [TAGS.get(endpoint.path.split("/")[1], TAGS["gateway"])],
        "parameters": [*path_parameters(endpoint.path), *_query_parameters(endpoint.query)],
        "responses": _responses(endpoint),
    }
    if endpoint.scope is not None:
        operation["security"] = [{"key": []}]
        operation["description"] = _needs(endpoint)
    body = _request_body(endpoint)
    if body is not None:
        operation["requestBody"] = body
    return operation


def _needs(endpoint: AnyEndpoint) -> str:
    """Describe the key that an endpoint needs and, for a long endpoint, its answer."""
    of = " of the owner's account" if endpoint.owner_only else ""
    sentences = [f"Needs a key{of} with the scope `{endpoint.scope}`."]
    if endpoint.long:
        sentences.append(
            f"Takes long: with `Accept: {LINES}` it answers JSON lines, its progress first, at last one with "
            "`result` or `error`. It ends when the client leaves; what is stored by then stays."
        )
    return " ".join(sentences)


def _query_parameters(model: type[Query]) -> list[Json]:
    schema = model.model_json_schema(by_alias=True)
    parameters = []
    for name, about in schema.get("properties", {}).items():
        description = about.pop("description", "")
        about.pop("title", None)
        if about.get("default") is False:
            about["default"] = "false"
        needed = about.pop(NEEDED, False) or name in schema.get("required", ())
        parameter = {"name": name, "in": "query", "description": description, "schema": not_null(about)}
        if needed:
            parameter["required"] = True
        parameters.append(parameter)
    return parameters


def _request_body(endpoint: AnyEndpoint) -> Json | None:
    if endpoint.body is None:
        return None
    if isinstance(endpoint.body, Document):
        content = _contents(endpoint.body.media, endpoint.body.model)
        return {"required": True, "content": content, "description": f"{endpoint.body.limit} bytes at most."}
    return {"required": True, "content": {JSON: {"schema": _ref(endpoint.body)}}}


def _contents(types: Sequence[str], model: type[BaseModel] | None) -> Json:
    """Return the content of files by media type; only JSON can be described."""
    described = {} if model is None else {"schema": _ref(model)}
    return {media: described if media == JSON else {} for media in types}


def _ref(model: Any) -> Json:
    return {"$ref": REF.format(model=model.__name__)}


def _responses(endpoint: AnyEndpoint) -> Json:
    answer = endpoint.answer
    if isinstance(answer, Media):
        content = _contents(answer.types, answer.model)
    else:
        content = {JSON: {"schema": _ref(answer)}, **({LINES: {}} if endpoint.long else {})}
    responses: Json = {"200": {"description": "Success", "content": content}}
    for status in _refusals(endpoint):
        responses[str(status)] = _refusal(status)
    if endpoint.unavailable is not ErrorBody:
        responses["503"] = {
            "description": HTTPStatus.SERVICE_UNAVAILABLE.phrase,
            "content": {JSON: {"schema": _ref(endpoint.unavailable)}},
        }
    return responses


def _refusals(endpoint: AnyEndpoint) -> list[int]:
    """Return the statuses of refusals: by host, key, path, query and body, and the ones that the row adds."""
    statuses = {400, 403, 429, *endpoint.refusals}
    if endpoint.scope is not None:
        statuses |= {401, 503}
    if "{" in endpoint.path:
        statuses.add(404)
    if endpoint.body is not None:
        statuses |= {413, 415}
    return sorted(statuses)


def _refusal(status: int) -> Json:
    if status == HTTPStatus.NOT_MODIFIED:
        return {"description": "What the client has is current"}
    answer: Json = {
        "description": HTTPStatus(status).phrase,
        "content": {JSON: {"schema": _ref(ErrorBody)}},
    }
    if status == HTTPStatus.BAD_REQUEST:
        answer["content"]["text/plain"] = {}
        answer["description"] += "; no JSON where the head of the request is longer than 8190 bytes a line"
    return {**answer, "headers": {hdrs.RETRY_AFTER: RETRY_AFTER}} if status in RETRIED else answer


def _device_answers(path: str) -> Json:
    """Return the successes of a path: the status that the firmware expects, and a browser's 200."""
    with_body = {"description": "Stored", "content": {JSON: {"schema": {"type": "object"}}}}
    driver = BY_NAME.get(path.rpartition("/")[2])
    if driver is None or driver.status == HTTPStatus.OK:
        return {"200": with_body}
    own = {"description": "Stored"} if driver.status == HTTPStatus.NO_CONTENT else with_body
    return {"200": with_body, str(int(driver.status)): own}


def _device_operation(route: web.RouteDef) -> Json:
    refusals = (*DEVICE_REFUSALS, *((404,) if "{" in route.path else ()))
    operation: Json = {
        "operationId": f"report_{route.method.lower()}_{re.sub('[^a-z0-9]+', '_', route.path.lower())}",
        "summary": "A hydrometer reports",
        "description": "From the local network without a key. Also what is not understood is kept.",
        "tags": [TAGS["devices"]],
        "parameters": path_parameters(route.path),
        "responses": {
            **_device_answers(route.path),
            **{str(status): _refusal(status) for status in sorted(refusals)},
        },
    }
    if route.method in {hdrs.METH_POST, hdrs.METH_PUT}:
        operation["requestBody"] = {"content": {JSON: {}, "application/x-www-form-urlencoded": {}}}
    else:
        operation["parameters"].append(REPORTED)
    return operation
