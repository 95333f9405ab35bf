"""A real Chromium before a real gateway."""

import base64
import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, async_playwright

from tests.patience import PATIENCE_S
from tests.program.program import HTTP_ONLY, Server, serving

CHROMIUM = shutil.which("chromium")
NPM = shutil.which("npm")

BROWSER_MS = 4 * PATIENCE_S * 1000
"""A browser on a busy machine takes long."""

PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 900}

browser_test = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium"),
]
"""Marks of a module whose tests need the browser."""

AXE = "axe-core@4.14.1"
AXE_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""The accessibility rules: the release, and the SHA-512 of its package. It never comes into the tree."""


@asynccontextmanager
async def chromium(*options: str) -> AsyncIterator[Browser]:
    """A browser without a window."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-dev-shm-usage", *options],
            timeout=BROWSER_MS,
        )
        try:
            yield browser
        finally:
            await browser.close()


class Tab:
    """A tab of a browser, with all that it asked for, and what its page complained about."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page, self.server = page, server
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.set_default_timeout(BROWSER_MS)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._note)

    def _note(self, line: ConsoleMessage) -> None:
        if line.type == "error":
            self.complaints.append(line.text)

    def url(self, path: str) -> str:
        """The address of a page below `/ui`."""
        return f"{self.server.url}/ui{path}"

    async def go(self, path: str) -> None:
        """Open a page below `/ui`."""
        await self.page.goto(self.url(path), wait_until="load")

    async def log_in(self, key: str) -> None:
        """Log in by the form."""
        await self.go("/login")
        await self.page.fill("input[name=key]", key)
        await self.page.click("main form button")
        await self.page.wait_for_url(lambda url: "/login" not in url)
        self.complaints.clear()  # before the login the browser is told 401, which it notes

    @property
    def strangers(self) -> list[str]:
        """The addresses of other hosts that the pages asked for."""
        own = (self.server.url, "data:", "blob:", "about:")
        return [url for url in self.asked if not url.startswith(own)]


@asynccontextmanager
async def tab(browser: Browser, server: Server, key: str = "", **options: Any) -> AsyncIterator[Tab]:
    """A tab with cookies of its own, logged in with the key if there is one."""
    options = {"viewport": DESK, "locale": "en-GB", "timezone_id": "Europe/Berlin", **options}
    context: BrowserContext = await browser.new_context(**options)
    try:
        made = Tab(await context.new_page(), server)
        if key:
            await made.log_in(key)
        yield made
    finally:
        await context.close()


@asynccontextmanager
async def gateway(data: Path, *options: str) -> AsyncIterator[tuple[Server, str]]:
    """A running gateway on free ports, and its first key."""
    async with serving(data, *HTTP_ONLY, *options) as server:
        assert server.first_key is not None
        yield server, server.first_key


@cache
def axe() -> str:
    """The script with the accessibility rules, from npm, checked by its sum."""
    if NPM is None:
        pytest.skip("needs npm, which fetches the accessibility rules")
    with TemporaryDirectory() as directory:
        command = [NPM, "pack", AXE, "--silent", "--pack-destination", directory]
        subprocess.run(command, check=True, capture_output=True, timeout=10 * PATIENCE_S, cwd=directory)
        [package] = Path(directory).glob("*.tgz")
        found = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
        assert found == AXE_SHA512, f"{AXE} has another sum"
        with tarfile.open(package) as archive:
            member = archive.extractfile("package/axe.min.js")
            assert member is not None
            return member.read().decode()


async def violations(page: Page) -> list[str]:
    """What the page has against WCAG 2.2 AA: the rule, and the first elements."""
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(axe())
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = await page.evaluate(
        "tags => axe.run(document, {runOnly: tags}).then(result => result.violations.map(violation => "
        "violation.id + ': ' + violation.nodes.slice(0, 3).map(node => node.target.join(' ') + ' ' "
        "+ (node.failureSummary || '').replace(/\\s+/g, ' ').slice(0, 200)).join(' | ')))",
        tags,
    )
    return [str(each) for each in found]
