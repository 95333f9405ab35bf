"""An endpoint as one row of a table: its path, what it takes and gives, and the function behind it.

The router, the checks of query and body, and the API's document are all made from these rows.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.domain.key import ApiKey, Scope
from gateway.errors import InvalidInput, NotFound, UnsupportedMedia
from gateway.parameters import decimal_digits
from gateway.web import API_KEY, read_body, scope_of

JSON = "application/json"

JSON_BODY_BYTES = 64 * 1024
"""Of a JSON body that is not a file."""


class Query(BaseModel):
    """Query parameters; those that nobody knows are ignored, a blank text filters nothing."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, populate_by_name=True)

    blank_is_absent: ClassVar[frozenset[str]] = frozenset()


class Body(BaseModel):
    """A JSON body; members that nobody knows are refused, so that a misspelled one is not lost silently."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class ErrorBody(BaseModel):
    """What every refusal looks like."""

    model_config = ConfigDict(extra="forbid")

    message: str
    detail: str


@dataclass(frozen=True, slots=True)
class Document:
    """A body that is a file: its media types and its size in bytes at most. The handler reads it."""

    media: tuple[str, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Media:
    """An answer that is no JSON object of ours: its media types."""

    types: tuple[str, ...]


Q = TypeVar("Q", bound=Query)
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Call(Generic[Q, B]):
    """One request; its key has been checked, and its body where that is JSON."""

    request: web.Request
    query_model: type[Q]
    body: B

    @property
    def query(self) -> Q:
        """The query, checked when it is asked for: a handler looks for the path's record first."""
        return parse_query(self.query_model, self.request)

    @property
    def key(self) -> ApiKey:
        """The key it came with."""
        return self.request[API_KEY]

    @property
    def app(self) -> web.Application:
        """The application, for what stands under its keys."""
        return self.request.app

    def path_id(self, name: str) -> int:
        """A record id from the path; what is no decimal integer is simply not found."""
        text = self.request.match_info[name]
        if not decimal_digits(text):
            raise NotFound
        return int(text)


Answer = BaseModel | web.StreamResponse


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[Q, B]):
    """One row. `answer` is the model of a 200.

    `refusals` are statuses beyond those that follow from the rest.
    """

    method: str
    path: str
    handler: Callable[[Call[Q, B]], Awaitable[Answer]]
    summary: str
    query: type[Q]
    answer: type[BaseModel] | Media
    body: type[B] | Document | None = None  # a `Body`, where it is a type
    refusals: tuple[int, ...] = ()

    @property
    def scope(self) -> Scope | None:
        """What a key must allow for this; None where none is needed."""
        return scope_of(self.method, self.path)

    def route(self) -> web.RouteDef:
        """The row as the router takes it."""
        if self.method == hdrs.METH_GET:
            return web.get(self.path, self._serve)  # answers HEAD as well
        return web.route(self.method, self.path, self._serve)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body: Any = None
        if isinstance(self.body, type) and issubclass(self.body, Body):
            body = await _parse_body(self.body, request)
        answer = await self.handler(Call(request, self.query, body))
        if isinstance(answer, BaseModel):
            return web.Response(body=answer.model_dump_json(by_alias=True).encode(), content_type=JSON)
        return answer


AnyEndpoint = Endpoint[Any, Any]


def parse_query(model: type[Q], request: web.Request) -> Q:
    """The query's parameters, the first of each; `InvalidInput` names the one that is wrong."""
    given = {}
    for field, about in model.model_fields.items():
        name = about.alias or field
        value = request.query.get(name)
        if value is not None and (value or field not in model.blank_is_absent):
            given[name] = value
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise InvalidInput(_first(error)) from error


async def _parse_body(model: type[Body], request: web.Request) -> Body:
    if request.content_type != JSON:
        raise UnsupportedMedia("the Content-Type must be application/json")
    raw = await read_body(request, JSON_BODY_BYTES)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise InvalidInput(_first(error)) from error


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, as a sentence."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "the body"
    text = first["msg"]
    return f"{where} {text.removeprefix('Value error, ')}" if "ctx" in first else f"{where}: {text}"
