"""An endpoint as one row of a table: its path, its query and body, its answer, and its handler.

The router, the checks of query and body, and the API's document are all made from these rows.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from gateway.config import plainly
from gateway.domain.account import OWNER_ID
from gateway.domain.key import Scope
from gateway.domain.progress import Progress, no_progress
from gateway.domain.texts import decimal_digits
from gateway.errors import Forbidden, InvalidInput, NotFound, UnsupportedMedia
from gateway.http.both_ends import JSON as JSON
from gateway.http.gzipped import packed
from gateway.http.lines import asks_for_lines, plain, run_long
from gateway.http.middleware import CALLER, SERVICES, Caller, KeyedRow, read_body, scope_of
from gateway.http.parameters import PATTERN_SAYS
from gateway.services.build import Services
from gateway.store.protocol import Store

JSON_BODY_BYTES = 2 * 1024 * 1024
"""Bytes of a JSON body that is not a file: enough for the longest notes with every character escaped."""

LATER = ConfigDict(defer_build=True)
"""Build a model at its first use: models take memory, and most gateways use few of them."""

NAMED_CHARACTERS = 100
"""Characters of a member's name in an error: a sender may have made up a long name."""


class AnswerModel(BaseModel):
    """An object of an answer."""

    model_config = LATER


class Page(AnswerModel):
    """A page of records; `count` counts all that match, whatever the limit and the offset are."""

    message: Literal["success"] = "success"
    count: str


class Single(AnswerModel):
    """A single record, in an array of one."""

    message: Literal["success"] = "success"
    count: Literal["1"] = "1"


class Query(BaseModel):
    """Query parameters. Unknown ones are ignored; a blank one counts as left out."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, populate_by_name=True, **LATER)


class Body(BaseModel):
    """A JSON body. An unknown member is refused, so that a misspelled one is not lost silently.

    Null is refused, too: leave the member out instead.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, **LATER)

    @model_validator(mode="before")
    @classmethod
    def _no_nulls(cls, given: Any) -> Any:
        nulls = [name for name, value in given.items() if value is None] if isinstance(given, dict) else []
        if nulls:
            raise ValueError(f"{nulls[0][:NAMED_CHARACTERS]} is null; leave it out instead")
        return given

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        schema["properties"] = {name: not_null(about) for name, about in schema["properties"].items()}
        return schema


class Done(AnswerModel):
    """Success, with nothing to show."""

    message: Literal["success"] = "success"


class ErrorBody(AnswerModel):
    """The body of every refusal."""

    model_config = ConfigDict(extra="forbid")

    message: str
    detail: str


@dataclass(frozen=True, slots=True)
class Document:
    """A body that is a file: its media types, and its largest size in bytes. The handler reads the file.

    `model` only describes a JSON file in OpenAPI; it checks nothing.
    """

    media: tuple[str, ...]
    limit: int
    model: type[BaseModel] | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """An answer that the handler writes itself: its media types, and the model of its JSON, if any."""

    types: tuple[str, ...]
    model: type[BaseModel] | None = None


Q = TypeVar("Q", bound=Query)
B = TypeVar("B")
AnyBody = TypeVar("AnyBody", bound=Body)


@dataclass(frozen=True, slots=True)
class Call(Generic[Q, B]):
    """A request, with its key and any JSON body already checked."""

    request: web.Request
    query_model: type[Q]
    body: B
    progress: Progress = no_progress

    @property
    def query(self) -> Q:
        """The query. Each access checks it, so that a handler can look for the path's record first."""
        return parse_query(self.query_model, self.request)

    @property
    def caller(self) -> Caller:
        """The caller of the request."""
        return self.request[CALLER]

    @property
    def services(self) -> Services:
        """The services that the handler works with."""
        return self.request.app[SERVICES]

    @property
    def store(self) -> Store:
        """The store of the services."""
        return self.services.store

    def path_id(self, name: str) -> int:
        """Return a record id from the path; `NotFound` for a text that is no decimal integer."""
        text = self.request.match_info[name]
        if not decimal_digits(text):
            raise NotFound
        return int(text)


Answer = BaseModel | web.StreamResponse


@dataclass(frozen=True, slots=True)
class Endpoint(KeyedRow, Generic[Q, B]):
    """A row of the table. `answer` is the model of a 200, `unavailable` the model of a 503.

    `refusals` are statuses beyond the ones that follow from the other fields. A `long` endpoint may answer
    JSON lines with its progress. An `owner_only` endpoint refuses the keys of all accounts but the owner's.
    `scope` is what a key needs, None for no key; a row that leaves it out has the scope of its path.
    """

    method: str
    path: str
    handler: Callable[[Call[Q, B]], Awaitable[Answer]]
    summary: str
    query: type[Q]
    answer: type[BaseModel] | Media
    body: type[B] | Document | None = None  # a `Body`, where it is a type
    refusals: tuple[int, ...] = ()
    unavailable: type[BaseModel] = ErrorBody
    long: bool = False
    owner_only: bool = False
    scope: Scope | None = None

    def __post_init__(self) -> None:
        """Fill in the scope of the path."""
        if self.scope is None:
            object.__setattr__(self, "scope", scope_of(self.method, self.path))

    def route(self) -> web.RouteDef:
        """Return the row as a route for the router."""
        if self.method == hdrs.METH_GET:
            return web.get(self.path, self._serve)  # answers HEAD as well
        return web.route(self.method, self.path, self._serve)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if self.owner_only:
            check_owner(request[CALLER])
        body: Any = None
        if isinstance(self.body, type) and issubclass(self.body, Body):
            body = await _parse_body(self.body, request)

        async def work(progress: Progress) -> Answer:
            return await self.handler(Call(request, self.query, body, progress))

        # Short calls on the socket answer lines, too, because there a silent gateway counts as dead.
        caller = request.get(CALLER)
        signs = caller is not None and caller.everywhere and not isinstance(self.answer, Media)
        as_lines = asks_for_lines(request) and (self.long or signs)
        if self.long or as_lines:
            return await run_long(request, work, as_lines=as_lines)
        return await packed(request, plain(await work(no_progress)))


def check_owner(caller: Caller) -> None:
    """Raise `Forbidden` unless the caller has the owner's account or comes over the Unix socket."""
    if not caller.everywhere and caller.account_id != OWNER_ID:
        raise Forbidden("only a key of the owner's account may do that")


AnyEndpoint = Endpoint[Any, Any]


def not_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Return the schema of a member or parameter that may be left out, but is never null."""
    options = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(options) == len(schema.get("anyOf", ())):
        return schema
    about = {name: value for name, value in schema.items() if name not in {"anyOf", "default"}}
    return {**options[0], **about} if len(options) == 1 else {"anyOf": options, **about}


def parse_query(model: type[Q], request: web.Request) -> Q:
    """Check the query's parameters, the first of each name; `InvalidInput` names the wrong one."""
    given = {}
    for field, about in model.model_fields.items():
        name = about.alias or field
        value = request.query.get(name)
        if value:
            given[name] = value
            if "\0" in value:
                raise InvalidInput(f"{name} has a NUL in it")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise InvalidInput(_first(error)) from error


async def read_document(request: web.Request, document: Document) -> bytes:
    """Read a body that is a file. Without a Content-Type, the content decides the type later."""
    if request.headers.get(hdrs.CONTENT_TYPE, "").strip() and request.content_type not in document.media:
        raise UnsupportedMedia(f"the Content-Type must be {' or '.join(document.media)}")
    return await read_body(request, document.limit)


async def _parse_body(model: type[Body], request: web.Request) -> Body:
    if request.content_type != JSON:
        raise UnsupportedMedia("the Content-Type must be application/json")
    return parse_json(model, await read_body(request, JSON_BODY_BYTES))


def parse_json(model: type[AnyBody], raw: bytes) -> AnyBody:
    """Check a JSON body; `InvalidInput` names the first member that is wrong."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise InvalidInput(_first(error)) from error


def _first(error: ValidationError) -> str:
    """Return the first mistake as a sentence."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))[:NAMED_CHARACTERS]
    if first["type"] == "string_pattern_mismatch":
        return f"{where} {PATTERN_SAYS[first['ctx']['pattern']]}"
    if first["type"] != "value_error":
        return f"{where or 'the body'}: {plainly(first['msg'])}"
    text = plainly(first["msg"])
    return f"{where} {text}" if where else text
