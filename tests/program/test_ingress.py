"""The page inside Home Assistant, below a path that a proxy names: a real nginx stands in for the ingress."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import pytest

from tests.patience import PATIENCE_S
from tests.program.ingress import BASE, INGRESS, SUPERVISOR, ingress
from tests.program.program import HTTP_ONLY, Server, answer, ispindel, run, serving

ADDRESS = re.compile(r' (?:href|src|action|formaction|data-src|data-events|data-me)="([^"]*)"')
"""The attributes by which a page leads to another address."""

PAGES = 80
"""Pages that a test looks at, at most."""

HERE = {"X-Ingress-Path": BASE, "X-Forwarded-Proto": "https"}


@dataclass
class Visitor:
    """A browser's worth of HTTP: cookies, the origin of Home Assistant, and no redirect followed."""

    http: aiohttp.ClientSession
    origin: str

    async def get(self, address: str, **headers: str) -> tuple[aiohttp.ClientResponse, str]:
        """Ask for an address on the origin; the answer and its text."""
        async with self.http.get(f"{self.origin}{address}", headers=headers, allow_redirects=False) as got:
            return got, await got.text("utf-8", "replace")

    async def post(
        self, address: str, fields: dict[str, str], origin: str = ""
    ) -> tuple[aiohttp.ClientResponse, str]:
        """Send a form from a page of the origin."""
        headers = {"Origin": origin or self.origin}
        async with self.http.post(
            f"{self.origin}{address}", data=fields, headers=headers, allow_redirects=False
        ) as got:
            return got, await got.text()

    async def log_in(self, server: Server, then: str = "") -> aiohttp.ClientResponse:
        """Log in by the form."""
        fields = {"key": server.first_key or "", "next": then}
        answer, _ = await self.post(f"{BASE}/ui/login", fields)
        assert answer.status == 303
        return answer


@asynccontextmanager
async def visited(folder: Path, path: str = BASE) -> AsyncIterator[tuple[Server, Visitor]]:
    """A gateway behind the ingress, and a visitor of Home Assistant."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with (
        serving(folder / "data", *HTTP_ONLY, *INGRESS) as server,
        ingress(folder / "nginx", server.port, path=path) as origin,
        aiohttp.ClientSession(cookie_jar=jar) as http,
    ):
        yield server, Visitor(http, origin)


def addresses(page: str) -> list[str]:
    return [unescape(found) for found in ADDRESS.findall(page)]


async def report(url: str, number: int = 1) -> None:
    async with aiohttp.ClientSession() as http, http.post(f"{url}/ingest", data=ispindel(number)) as got:
        assert got.status == 200


async def test_every_page_leads_to_pages_below_the_path(tmp_path: Path) -> None:
    """Links, forms, scripts, styles, live parts and redirects, on all pages that a click reaches."""
    async with visited(tmp_path) as (server, visitor):
        await answer(server.data, "sessions add --batchcode HP001")
        await report(server.url)
        await answer(server.data, "devices assign spindle1 1")
        await visitor.log_in(server)
        waiting, seen = deque([f"{BASE}/ui/"]), {f"{BASE}/ui/"}
        kinds: set[str] = set()
        while waiting and len(seen) < 10 * PAGES:
            got, text = await visitor.get(waiting.popleft())
            assert got.status in {200, 303, 400, 404}, (got.url, got.status)
            found = addresses(text) if got.content_type == "text/html" else []
            if "Location" in got.headers:
                found.append(got.headers["Location"])
            for each in found:
                path = each.partition("#")[0]
                if not path or path.startswith(("http://", "https://", "data:")):
                    continue
                assert path.startswith((f"{BASE}/", "openapi.json")), f"{got.url} leads to {each}"
                page = path.partition("?")[0]
                kinds.add(page.removeprefix(BASE).split("/")[1])
                is_stream = page.endswith(("/events", "/logout"))
                if page.startswith(f"{BASE}/ui") and page not in seen and len(seen) < PAGES and not is_stream:
                    seen.add(page)
                    waiting.append(path)
        assert kinds == {"ui", "docs"}
        assert len(seen) > 30, sorted(seen)
        for name in ("app.js", "page.css", "icon.svg"):
            assert any(page.endswith(f"/{name}") for page in seen), name


async def test_the_login_stays_inside_home_assistant(tmp_path: Path) -> None:
    async with visited(tmp_path) as (server, visitor):
        to_login, _ = await visitor.get(f"{BASE}/ui/recipes?q=a")
        assert to_login.status == 303
        login = to_login.headers["Location"]
        assert login.startswith(f"{BASE}/ui/login?next=")
        _, form = await visitor.get(login)
        then = unescape(re.findall(r'name="next" value="([^"]*)"', form)[0])
        assert then == f"{BASE}/ui/recipes?q=a"

        answered = await visitor.log_in(server, then)
        assert answered.headers["Location"] == then
        cookie = answered.headers["Set-Cookie"]
        assert f"Path={BASE}/ui;" in cookie
        assert "SameSite=Strict" in cookie
        page, text = await visitor.get(then)
        assert page.status == 200
        assert "frame-ancestors 'self'" in page.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" not in page.headers["Content-Security-Policy"]

        # Forms count the origin in the browser's bar as ours, and no other.
        token = re.findall(r'name="token" value="([^"]*)"', text)[0]
        fields = {"token": token, "language": "de", "next": f"{BASE}/ui/help"}
        for stranger in ("https://evil.example", f"http://127.0.0.1:{server.port}", "null"):
            refused, _ = await visitor.post(f"{BASE}/ui/language", fields, stranger)
            assert refused.status == 403, stranger
        done, _ = await visitor.post(f"{BASE}/ui/language", fields)
        assert (done.status, done.headers["Location"]) == (303, f"{BASE}/ui/help")
        for elsewhere in (
            "/ui/help",
            "https://evil.example/ui/",
            f"{BASE}/../../ui/",
            f"{BASE}//evil.example/",
        ):
            done, _ = await visitor.post(f"{BASE}/ui/language", {**fields, "next": elsewhere})
            assert done.headers["Location"] == f"{BASE}/ui/", elsewhere

        out, _ = await visitor.post(f"{BASE}/ui/logout", {"token": token})
        assert out.headers["Location"] == f"{BASE}/ui/login"
        assert f"Path={BASE}/ui" in out.headers["Set-Cookie"]
        assert (await visitor.get(then))[0].status == 303


async def test_a_user_of_home_assistant_needs_a_key_like_everybody(tmp_path: Path) -> None:
    """Home Assistant names its user, and not what the user may do."""
    async with visited(tmp_path) as (server, visitor):
        for path in ("/ui/", "/ui/devices", "/ui/events"):
            got, _ = await visitor.get(f"{BASE}{path}")
            assert (got.status, got.headers["Location"].startswith(f"{BASE}/ui/login")) == (303, True)
        for path in ("/v1/recipes", "/manage/status", "/metrics"):
            assert (await visitor.get(f"{BASE}{path}"))[0].status == 401
            assert (await visitor.get(f"{BASE}{path}", **{"X-API-KEY": server.first_key or ""}))[
                0
            ].status == 200


async def test_the_first_address_and_the_description_of_the_api(tmp_path: Path) -> None:
    async with visited(tmp_path) as (_, visitor):
        first, _ = await visitor.get(f"{BASE}/", Accept="text/html")
        assert (first.status, first.headers["Location"]) == (303, f"{BASE}/ui/")
        first, _ = await visitor.get(f"{BASE}/ui")
        assert (first.status, first.headers["Location"]) == (308, f"{BASE}/ui/")
        docs, text = await visitor.get(f"{BASE}/docs")
        assert docs.status == 200
        assert [each for each in addresses(text) if not each.startswith("#")] == ["openapi.json"]
        assert (await visitor.get(f"{BASE}/openapi.json"))[0].status == 200
        _, page = await visitor.get(f"{BASE}/ui/login")
        [manifest] = [each for each in addresses(page) if each.endswith("manifest.json")]
        start = (await got_json(visitor, manifest))["start_url"]
        assert urljoin(manifest, start) == f"{BASE}/ui/"


async def got_json(visitor: Visitor, address: str) -> dict[str, str]:
    async with visitor.http.get(f"{visitor.origin}{address}") as got:
        return dict(await got.json(content_type=None))


async def test_changes_arrive_as_they_happen(tmp_path: Path) -> None:
    async with visited(tmp_path) as (server, visitor):
        await visitor.log_in(server)
        async with visitor.http.get(f"{visitor.origin}{BASE}/ui/events") as stream:
            assert stream.content_type == "text/event-stream"
            await report(server.url)
            async with asyncio.timeout(PATIENCE_S):
                async for line in stream.content:
                    if line.startswith(b"event: ") or line.startswith(b"data: "):
                        break


async def test_codes_for_phones_and_bottles_lead_to_our_own_port(tmp_path: Path) -> None:
    """Another machine is not logged in to Home Assistant, so the path would lead it nowhere."""
    async with visited(tmp_path) as (server, visitor):
        await report(server.url)
        await visitor.log_in(server)
        _, page = await visitor.get(f"{BASE}/ui/label/1", Host="homeassistant.lan:8123")
        assert f"http://homeassistant.lan:{server.port}/ui/devices/1" in page
        assert page.count(f"homeassistant.lan:{server.port}{BASE}") == 0


async def test_any_name_of_home_assistant_will_do_and_no_other_way_skips_the_check(tmp_path: Path) -> None:
    async with visited(tmp_path) as (server, visitor):
        assert (await visitor.get(f"{BASE}/ui/login", Host="my-home.example.org"))[0].status == 200
        async with aiohttp.ClientSession() as http:
            for headers in ({}, HERE):
                host = {"Host": "evil.example", **headers}
                async with http.get(f"{server.url}/ui/login", headers=host) as got:
                    assert got.status == 403


@pytest.mark.parametrize("forwarded", [{}, {"X-Forwarded-For": SUPERVISOR}])
async def test_only_the_supervisor_names_a_path(tmp_path: Path, forwarded: dict[str, str]) -> None:
    """Not a stranger, and not another proxy that is trusted: that passes on what a stranger sends."""
    trust = ("--trusted-proxy", "127.0.0.1")
    async with (
        serving(tmp_path / "data", *HTTP_ONLY, *INGRESS, *trust) as server,
        aiohttp.ClientSession() as http,
        http.get(f"{server.url}/ui/login", headers={**HERE, **forwarded}) as got,
    ):
        page = await got.text()
        assert BASE not in page
        assert "frame-ancestors 'none'" in got.headers["Content-Security-Policy"]
        assert any(each.startswith("/ui/static/") for each in addresses(page))


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "/a//b",
        "https://evil.example",
        "/a/../b",
        "/.",
        "/a;Path=/",
        "/%2e%2e",
        "/ü",
        "/a b",
        "/" + 200 * "a",
    ],
)
async def test_a_path_that_is_none_is_refused(tmp_path: Path, path: str) -> None:
    async with visited(tmp_path, path=f'"{path}"') as (_, visitor):
        got, text = await visitor.get(f"{BASE}/ui/login")
        assert (got.status, "evil" in text) == (400, False)
        assert "frame-ancestors" not in got.headers.get("Content-Security-Policy", "")


async def test_an_address_is_needed(tmp_path: Path) -> None:
    finished = await run("serve", "--data-dir", str(tmp_path), "--ingress-proxy", "172.30.32.0/24")
    assert finished.status != 0
    assert "'172.30.32.0/24' is no address; it must look like 172.30.32.2" in finished.err
