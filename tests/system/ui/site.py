"""A served page with a browser that is logged in, without any browser: cookies, forms and tokens by hand."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from gateway.clock import Clock, SystemClock
from gateway.domain.key import ALL_SCOPES, Scope
from gateway.network import Peer
from gateway.services.build import Services, build_services
from gateway.services.logins import COOKIE
from gateway.store.sqlite.store import SqliteStore
from gateway.ui.middleware import new_token
from tests.system.api.everything import app_on

VOID = frozenset({"input", "br", "img", "meta", "link", "hr", "source"})


@dataclass
class Element:
    """An element of a page: its name, its attributes, its children and texts in order."""

    name: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text inside, with single blanks."""
        parts = (child if isinstance(child, str) else child.text for child in self.children)
        return re.sub(r"\s+", " ", " ".join(parts)).strip()

    def all(self, tag: str = "", /, **attributes: str) -> list["Element"]:
        """The elements inside with this name and these attributes (`class_` holds one class of several)."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if (not tag or child.name == tag) and child._has(attributes):
                    found.append(child)
                found += child.all(tag, **attributes)
        return found

    def one(self, tag: str = "", /, **attributes: str) -> "Element":
        """The only element with this name and these attributes."""
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of {tag} {attributes} in {self.text[:300]}"
        return found[0]

    def _has(self, attributes: Mapping[str, str]) -> bool:
        for name, value in attributes.items():
            if name == "class_":
                if value not in self.attributes.get("class", "").split():
                    return False
            elif self.attributes.get(name) != value:
                return False
        return True


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        for place in range(len(self._open) - 1, 0, -1):
            if self._open[place].name == tag:
                del self._open[place:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def parse(html: str) -> Element:
    """The page as elements."""
    reader = _Reader()
    reader.feed(html)
    return reader.root


@dataclass
class Html:
    """An answer: status, headers, the text as it came, and its elements."""

    status: int
    headers: Mapping[str, str]
    raw: str

    @property
    def page(self) -> Element:
        return parse(self.raw)

    @property
    def text(self) -> str:
        return self.page.text


class Browser:
    """A browser: it follows the redirect after a form, and fills in the form's token."""

    def __init__(self, client: TestClient[Any, Any], services: Services, cookie: str) -> None:
        self.client, self.services, self.cookie = client, services, cookie
        self.language = "en"

    @property
    def origin(self) -> str:
        return str(self.client.make_url("/")).rstrip("/")

    @property
    def headers(self) -> dict[str, str]:
        given = {"Accept-Language": self.language, "Accept": "text/html"}
        return {**given, "Cookie": f"{COOKIE}={self.cookie}"} if self.cookie else given

    async def get(self, path: str, status: int = 200, **headers: str) -> Html:
        """Get a page below `/ui`, with redirects."""
        return await self._ask("GET", path, status, headers, allow_redirects=True)

    async def post(
        self,
        path: str,
        fields: Mapping[str, Any] | Sequence[tuple[str, Any]] = (),
        status: int = 200,
        *,
        token: str | None = None,
        **headers: str,
    ) -> Html:
        """Send a form, and get the page that it leads to."""
        pairs = [*(fields.items() if isinstance(fields, Mapping) else fields)]
        pairs = [("token", await self.token() if token is None else token), *pairs]
        files = any(isinstance(value, tuple) for _, value in pairs)
        data: Any = pairs
        if files:
            data = aiohttp.FormData()
            for name, value in pairs:
                if isinstance(value, tuple):
                    filename, content, media = value
                    data.add_field(name, content, filename=filename, content_type=media)
                else:
                    data.add_field(name, str(value))
        headers = {"Origin": self.origin, **headers}
        return await self._ask("POST", path, status, headers, data=data, allow_redirects=True)

    async def token(self) -> str:
        """A token of this login, as every form of its pages has one."""
        return new_token(self.cookie)

    async def _ask(
        self, method: str, path: str, status: int, headers: Mapping[str, str], **more: Any
    ) -> Html:
        url = path if path.startswith("/ui") else f"/ui{path}"
        async with self.client.request(
            method, URL(url, encoded=True), headers={**self.headers, **headers}, **more
        ) as answer:
            html = Html(answer.status, dict(answer.headers), await answer.text(errors="replace"))
        assert html.status == status, f"{method} {url}: {html.status} {parse(html.raw).text[:600]}"
        return html


@asynccontextmanager
async def served(
    directory: Path,
    scopes: frozenset[Scope] = ALL_SCOPES,
    *,
    account: str | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> AsyncIterator[Browser]:
    """The whole site on a store in this directory, and a browser that is logged in with a new key."""
    clock = clock or SystemClock()
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, clock)
        await services.access.start()
        await services.logins.start()
        await services.links.start()
        await services.alarms.start()
        # Without a jar, because a test chooses the cookie of each request.
        jar = aiohttp.DummyCookieJar()
        async with TestClient(TestServer(app_on(services, **options)), cookie_jar=jar) as client:
            cookie = await logged_in(services, scopes, account)
            yield Browser(client, services, cookie)
    finally:
        await store.close()


async def logged_in(
    services: Services, scopes: frozenset[Scope] = ALL_SCOPES, account: str | None = None
) -> str:
    """Make a key, log in with it, and return the cookie's secret."""
    name = f"test {len(services.access.all())}"
    key = await services.access.add(name, scopes, account)
    secret, _ = await services.logins.log_in(key, Peer("127.0.0.1"), "a test")
    return secret
