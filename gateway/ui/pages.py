"""The values between routes and views: a row of the table of pages, a visit, and what a view returns."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar, cast
from urllib.parse import quote, urlencode

from aiohttp import BodyPartReader, MultipartReader, web
from markupsafe import Markup
from multidict import MultiDict

from gateway.domain.key import Scope
from gateway.domain.texts import decimal_digits
from gateway.errors import InvalidInput, NotFound, TooLarge
from gateway.http.middleware import base_path_of
from gateway.services.build import Services
from gateway.store.protocol import Store
from gateway.ui.forms import Filled, Form, read_form
from gateway.ui.viewer import Viewer
from gateway.ui.words import Words

log = logging.getLogger(__name__)

ROOT = "/ui"

TOKEN_FIELD = "token"  # noqa: S105 the name of a field

UPLOAD_PARTS = 200
"""Parts of an upload at most: files and texts."""

F = TypeVar("F", bound=Form)


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page: a template, the title, the template's values, and the menu's entry that it belongs to.

    `news` stands first in the browser's tab, such as a gravity. `headers` go with the answer.
    """

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    menu: str = ""
    status: int = 200
    news: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a page that can be fetched alone, and the topics of events after which it is.

    A topic is the name of an event, such as `quarantine`, or a member with its id, such as `brew:7`.
    """

    template: str
    topics: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


class Moved(NamedTuple):
    """An answer to a form: the page that shows the result, and a notice of one line for it."""

    url: str
    notice: str = ""


Answer = Page | Part | Moved | web.StreamResponse


@dataclass(slots=True)
class Upload:
    """A part of an upload: the name of its field, and the name of the file, empty for a text."""

    name: str
    filename: str
    _reader: BodyPartReader
    _budget: "Budget"

    async def read(self) -> bytes:
        """Read the part; `TooLarge` beyond the bytes that the form takes in all."""
        pieces = bytearray()
        while piece := await self._reader.read_chunk():
            self._budget.spend(len(piece))
            pieces += piece
        return bytes(pieces)

    async def read_up_to(self, limit: int) -> bytes | None:
        """Read the part; None if it has more than `limit` bytes, and then the next part can still be read.

        `TooLarge` beyond the bytes that the form takes in all.
        """
        pieces = bytearray()
        size = 0
        while piece := await self._reader.read_chunk():
            self._budget.spend(len(piece))
            size += len(piece)
            if size <= limit:
                pieces += piece
        return bytes(pieces) if size <= limit else None

    async def text(self) -> str:
        """Read the part as text."""
        return (await self.read()).decode("utf-8", "replace")


@dataclass(slots=True)
class Budget:
    """The bytes that are left of an upload."""

    limit: int
    left: int

    def spend(self, count: int) -> None:
        """Take bytes away; `TooLarge` when none are left."""
        self.left -= count
        if self.left < 0:
            raise TooLarge(f"the upload is larger than {self.limit} bytes")


class Visit:
    """A request for a page, by a viewer whose rights are checked."""

    def __init__(
        self,
        request: web.Request,
        services: Services,
        viewer: Viewer,
        rows: "Mapping[str, Row]",
        render: "Callable[[Visit, Part], Markup]",
    ) -> None:
        self.request = request
        self.base = base_path_of(request)
        self.services = services
        self.viewer = viewer
        self.now = services.clock.now()
        # Before anything is read, so that a change meanwhile counts as not seen.
        self.seen = services.notices.count
        self.words: Words = viewer.words(self.now)
        self.fields: MultiDict[str] = MultiDict()
        self.token = ""
        self.multipart: MultipartReader | None = None
        self.upload_bytes = 0
        self._rows = rows
        self._render = render
        self._ids: Mapping[str, str] = request.match_info

    @property
    def store(self) -> Store:
        """The store of the services."""
        return self.services.store

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The query, the first value of each name."""
        return {name: self.request.query[name] for name in dict.fromkeys(self.request.query)}

    def path_text(self, name: str) -> str:
        """Return a text from the path."""
        return self._ids[name]

    def path_id(self, name: str) -> int:
        """Return a record id from the path; `NotFound` for a text that is no decimal integer."""
        text = self._ids[name]
        if not decimal_digits(text):
            raise NotFound
        return int(text)

    def url(self, page: str, query: Mapping[str, Any] | None = None, **ids: Any) -> str:
        """Return the address of a page by its name in the table of pages, for the browser that asks."""
        return self.base + self.own_path(page, query, **ids)

    def own_path(self, page: str, query: Mapping[str, Any] | None = None, **ids: Any) -> str:
        """Return the path of a page on our own port, for another machine."""
        path = self._rows[page].path.format(
            **{name: quote(str(value), safe="") for name, value in ids.items()}
        )
        given = {name: value for name, value in (query or {}).items() if value not in {None, ""}}
        return f"{ROOT}{path}{'?' if given else ''}{urlencode(given)}"

    def here(self) -> str:
        """Return the address of this page, as the browser sees it, without its host."""
        return f"{self.base}{self.request.rel_url.raw_path_qs}"

    def has(self, page: str) -> bool:
        """Return whether there is a page of that name."""
        return page in self._rows

    def t(self, key: str, **members: Any) -> str:
        """Return the text of a key in the viewer's language."""
        return self.words.t(key, **members)

    def read(self, model: type[F]) -> Filled[F]:
        """Check the fields of the form that was sent."""
        return read_form(model, self.fields)

    async def uploads(self) -> AsyncGenerator[Upload, None]:
        """Yield the parts of an upload, each to be read before the next one."""
        if self.multipart is None:
            raise InvalidInput("files come as multipart/form-data")
        budget = Budget(self.upload_bytes, self.upload_bytes)
        for _ in range(UPLOAD_PARTS):
            part = await self.multipart.next()
            if part is None:
                return
            if isinstance(part, BodyPartReader):
                yield Upload(part.name or "", part.filename or "", part, budget)
        raise TooLarge(f"more than {UPLOAD_PARTS} parts")

    async def include(
        self, page: str, query: Mapping[str, Any] | None = None, *, element: str = "section", **ids: Any
    ) -> Markup:
        """Render a live part for a whole page. If the part fails, a box says so, and the page goes on."""
        inner = Visit(self.request, self.services, self.viewer, self._rows, self._render)
        inner._ids = {name: str(value) for name, value in ids.items()}
        inner.query = {name: str(value) for name, value in (query or {}).items()}
        inner.token = self.token
        address = self.url(page, query, **ids)
        topics: tuple[str, ...] = ()
        try:
            part = cast(Part, await self._rows[page].view(inner))
            topics, body = part.topics, self._render(inner, part)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            log.exception("ui: the part %s failed", page)
            body = Markup('<p class="box bad">{}</p>').format(self.t("error.part"))
        return Markup('<{0} data-live="{1}" data-src="{2}">{3}</{0}>').format(
            element, " ".join(topics), address, body
        )


View = Callable[[Visit], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table of pages: method, path below `/ui`, view, name for links, and its purpose.

    A key needs `scope`; `owner_only` refuses keys of other accounts. A `public` page needs no login.
    `upload_bytes` above 0 makes the form multipart with so many bytes at most. `no_store` forbids browsers to
    keep the page, because a key is on it.
    """

    method: Literal["GET", "POST"]
    path: str
    view: View
    name: str
    summary: str
    scope: Scope = "read"
    owner_only: bool = False
    upload_bytes: int = 0
    public: bool = False
    no_store: bool = False
