"""Pages of other sites in the same browser: they change nothing here, and a foreign name opens no page."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from playwright.async_api import BrowserContext, Request, expect

from tests.program.program import ispindel, post
from tests.ui.browsing import BROWSER_MS, browser_test, chromium, gateway, tab

pytestmark = browser_test

EVIL = "127.0.0.2"
"""Another host, so that neither cookies nor origins are the gateway's."""

NEAR = "127.0.0.1"
"""The gateway's own host at another port: the same site to a browser, so that cookies come along."""


NO_ORIGIN = "sandbox allow-forms allow-scripts"
"""The policy of a page without an origin: its forms come with `Origin: null`."""

NEVER_KEPT = {"Cache-Control": "no-store"}


class Stranger:
    """A site that sends its visitors' browsers to the gateway."""

    def __init__(self, address: str) -> None:
        self.address, self.page, self.policy = address, "", ""

    async def show(self, _: web.Request) -> web.Response:
        return web.Response(
            text=f"<!doctype html><title>evil</title>{self.page}",
            content_type="text/html",
            headers=NEVER_KEPT,
        )


@asynccontextmanager
async def stranger(host: str) -> AsyncIterator[Stranger]:
    """Another site at a free port of this host."""
    site = Stranger("")
    app = web.Application()
    app.router.add_get("/", site.show)
    runner = web.AppRunner(app)
    await runner.setup()
    listener = web.TCPSite(runner, host, 0)
    await listener.start()
    assert listener._server is not None
    port = listener._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    site.address = f"http://{host}:{port}"
    try:
        yield site
    finally:
        await runner.cleanup()


def form(url: str, fields: Mapping[str, str]) -> str:
    """A form that sends itself."""
    inputs = "".join(f'<input name="{name}" value="{escape(value)}">' for name, value in fields.items())
    return f'<form method="post" action="{url}">{inputs}</form><script>document.forms[0].submit()</script>'


def fetched(url: str, fields: Mapping[str, str]) -> str:
    """A script that sends a form without asking whether it may."""
    body = f'new URLSearchParams("{urlencode(fields)}")'
    options = f'{{method: "POST", mode: "no-cors", credentials: "include", body: {body}}}'
    return f'<script>fetch("{url}", {options})</script>'


FIELDS = {
    "/brews/1/note": {"text": "by a stranger", "at": "2026-11-03T14:15", "kind": "note"},
    "/brews/1/done": {"answer": "yes", "phase": "Bottled"},
    "/devices/1/settings": {"label": "by a stranger", "gravity_unit": "P", "temp_unit": "C"},
    "/keys": {"name": "by a stranger", "rights": "change", "days": ""},
    "/logout": {},
}
"""What another site would like the owner of a browser to do."""

HANDS_OFF = {0, 401, 403, 404, 405}


async def answered(context: BrowserContext, site: Stranger, url: str, method: str = "POST") -> int:
    """The status with which the gateway answers what a page of this site does in a new tab.

    It is 0 where the browser shows nobody the answer.
    """
    page = await context.new_page()
    statuses: asyncio.Queue[int] = asyncio.Queue()

    def note(status: int, request: Request) -> None:
        if (request.url, request.method) == (url, method):
            statuses.put_nowait(status)

    page.on("response", lambda answer: note(answer.status, answer.request))
    page.on("requestfailed", lambda request: note(0, request))
    await page.evaluate("address => { location.href = address }", site.address)
    async with asyncio.timeout(BROWSER_MS / 1000):
        status = await statuses.get()
    await page.close()
    return status


async def test_what_another_site_sends_changes_nothing(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path) as (server, key),
        chromium() as browser,
        tab(browser, server, key) as shown,
        stranger(EVIL) as evil,
        stranger(NEAR) as near,
        aiohttp.ClientSession() as http,
    ):
        page = shown.page
        assert await post(http, server, ispindel(1, name="Red", gravity="1.050")) == 200
        await shown.go("/brews/new")
        await page.fill("main [name=batchcode]", "HP001")
        await page.click("main button:text-is('Make the brew')")
        await expect(page.locator("[role=status]").first).to_contain_text("HP001 is made.")
        await shown.go("/brews/1/note")
        # Even with a token of this very login, which no other site can see.
        token = await page.locator("main form input[name=token]").first.input_value()
        context = page.context
        for site in (evil, near):
            for path, fields in FIELDS.items():
                url, given = shown.url(path), {"token": token, **fields}
                sends, script = form(url, given), fetched(url, given)
                for site.page, site.policy in ((sends, ""), (sends, NO_ORIGIN), (script, "")):
                    assert await answered(context, site, url) in HANDS_OFF, (site.address, path, site.page)
            url = f"{shown.url('/logout')}?token={token}"
            site.page = f'<img src="{url}">'
            assert await answered(context, site, url, "GET") in HANDS_OFF, site.address
        await shown.go("/brews/1")
        await expect(page.locator("h1")).to_contain_text("HP001")
        await expect(page.locator("main")).not_to_contain_text("by a stranger")
        await expect(page.locator("main")).not_to_contain_text("Bottled")
        for path in ("/keys", "/devices/1"):
            await shown.go(path)
            await expect(page.locator("h1")).to_be_visible()
            await expect(page.locator("main")).not_to_contain_text("by a stranger")
        assert "/login" not in page.url


async def test_a_name_that_leads_here_by_a_trick_opens_no_page(tmp_path: Path) -> None:
    mapped = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    async with gateway(tmp_path) as (server, key), chromium(mapped) as browser, tab(browser, server) as shown:
        body = ispindel(1, name="Red", gravity="1.050")
        evil = f"http://evil.example:{server.port}"
        for path in ("/ui/", "/ui/login", "/ui/me", "/ui/static/0/app.js", "/docs"):
            answer = await shown.page.goto(f"{evil}{path}")
            assert answer is not None
            assert answer.status == 403, path
        status = await shown.page.evaluate(
            "body => fetch('/ingest', {method: 'POST', body}).then(answer => answer.status)",
            body,
        )
        assert status == 403, "a browser is no device"
        async with aiohttp.request(
            "POST", f"{server.url}/ingest", data=body.encode(), headers={"Host": "evil.example"}
        ) as taken:
            assert taken.status == 200, "a device may call the gateway by any name"
        await shown.log_in(key)
        await shown.go("/devices")
        await expect(shown.page.locator("main")).to_contain_text("Red")
