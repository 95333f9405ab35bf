"""An endpoint as one row of a table: its path, what it takes and gives, and the function behind it.

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
from gateway.http.lines import JSON as JSON
from gateway.http.lines import asks_for_lines, plain, run_long
from gateway.http.middleware import CALLER, SERVICES, Caller, read_body, scope_of
from gateway.http.parameters import PATTERN_SAYS
from gateway.services.build import Services
from gateway.store.protocol import Store

JSON_BODY_BYTES = 2 * 1024 * 1024
"""Of a JSON body that is not a file: the longest notes, every character of them escaped."""

LATER = ConfigDict(defer_build=True)
"""A model is built when it is first used: that takes memory, and most gateways use few of them."""

NAMED_CHARACTERS = 100
"""Of a member's name in an error: whoever sent it may have made it up."""


class AnswerModel(BaseModel):
    """An object of an answer."""

    model_config = LATER


class Page(AnswerModel):
    """Records; `count` is how many there are, whatever a limit and an offset say."""

    message: Literal["success"] = "success"
    count: str


class Single(AnswerModel):
    """One record, in an array of one."""

    message: Literal["success"] = "success"
    count: Literal["1"] = "1"


class Query(BaseModel):
    """Query parameters; those that nobody knows are ignored, those that are blank are as if not there."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, populate_by_name=True, **LATER)


class Body(BaseModel):
    """A JSON body; members that nobody knows are refused, so that a misspelled one is not lost silently.

    So is null: leave the member out instead.
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
    """It was done, and there is nothing to show."""

    message: Literal["success"] = "success"


class ErrorBody(AnswerModel):
    """What every refusal looks like."""

    model_config = ConfigDict(extra="forbid")

    message: str
    detail: str


@dataclass(frozen=True, slots=True)
class Document:
    """A body that is a file: its media types and its size in bytes at most. The handler reads it.

    `model` describes a JSON file, and checks nothing.
    """

    media: tuple[str, ...]
    limit: int
    model: type[BaseModel] | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """An answer that the handler writes itself: its media types, and what it is where it is JSON."""

    types: tuple[str, ...]
    model: type[BaseModel] | None = None


Q = TypeVar("Q", bound=Query)
B = TypeVar("B")
AnyBody = TypeVar("AnyBody", bound=Body)


@dataclass(frozen=True, slots=True)
class Call(Generic[Q, B]):
    """One request; its key has been checked, and its body where that is JSON."""

    request: web.Request
    query_model: type[Q]
    body: B
    progress: Progress = no_progress

    @property
    def query(self) -> Q:
        """The query, checked when it is asked for: a handler looks for the path's record first."""
        return parse_query(self.query_model, self.request)

    @property
    def caller(self) -> Caller:
        """Whoever the request comes from."""
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
        """A record id from the path; what is no decimal integer is simply not found."""
        text = self.request.match_info[name]
        if not decimal_digits(text):
            raise NotFound
        return int(text)


Answer = BaseModel | web.StreamResponse


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[Q, B]):
    """One row. `answer` is the model of a 200, `unavailable` that of a 503.

    `refusals` are statuses beyond those that follow from the rest. A `long` one may answer JSON lines, with
    its progress. An `owner_only` one refuses the keys of all accounts but the first.
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
        return plain(await work(no_progress))


def check_owner(caller: Caller) -> None:
    """Raise `Forbidden` for every account but the first."""
    if not caller.everywhere and caller.account_id != OWNER_ID:
        raise Forbidden("only a key of the owner's account may do that")


AnyEndpoint = Endpoint[Any, Any]


def not_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of a member or parameter that may be left out, but is never null."""
    options = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(options) == len(schema.get("anyOf", ())):
        return schema
    about = {name: value for name, value in schema.items() if name not in {"anyOf", "default"}}
    return {**options[0], **about} if len(options) == 1 else {"anyOf": options, **about}


def parse_query(model: type[Q], request: web.Request) -> Q:
    """The query's parameters, the first of each; `InvalidInput` names the one that is wrong."""
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
    """The body of an endpoint that takes a file; without a Content-Type the content decides later on."""
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
    """The first thing that is wrong, as a sentence."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))[:NAMED_CHARACTERS]
    if first["type"] == "string_pattern_mismatch":
        return f"{where} {PATTERN_SAYS[first['ctx']['pattern']]}"
    if first["type"] != "value_error":
        return f"{where or 'the body'}: {plainly(first['msg'])}"
    text = plainly(first["msg"])
    return f"{where} {text}" if where else text
