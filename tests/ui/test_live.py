"""What changes appears by itself: parts, the dot, ages; and what must not change under one's hands."""

from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from playwright.async_api import Page, expect

from tests.patience import PATIENCE_S
from tests.program.program import HTTP_ONLY, Server, serving
from tests.system.transports.conftest import free_port
from tests.ui.browsing import browser_test, chromium, gateway, tab

pytestmark = browser_test

HIDE = """hidden => {
    Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
}"""

TABS = 60

PART = "section[data-live~=quarantine]"


async def send_garbage(server: Server, text: str) -> None:
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{server.url}/ingest", data=text.encode()) as answer,
    ):
        assert answer.status < 500


async def is_live(page: Page) -> None:
    await expect(page.locator(".live")).to_have_attribute("data-state", "live", timeout=PATIENCE_S * 1000)


async def test_a_part_follows_what_happens_and_waits_while_the_tab_is_hidden(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser, tab(browser, server, key) as shown:
        page = shown.page
        await send_garbage(server, "earlier nonsense")
        shown.complaints.clear()  # the login page asks whether somebody is logged in
        await shown.go("/quarantine")
        await is_live(page)
        await send_garbage(server, "first nonsense")
        await expect(page.locator(PART)).to_contain_text("first nonsense", timeout=PATIENCE_S * 1000)
        assert shown.asked.count(shown.url("/quarantine")) == 1, "no reload"

        await page.evaluate(HIDE, True)
        before = len(shown.asked)
        await send_garbage(server, "second nonsense")
        await page.wait_for_timeout(500)
        assert shown.asked[before:] == []
        await page.evaluate(HIDE, False)
        await is_live(page)
        await expect(page.locator(PART)).to_contain_text("second nonsense", timeout=PATIENCE_S * 1000)
        assert len([url for url in shown.asked[before:] if url.startswith(shown.url("/events"))]) == 1
        assert shown.complaints == []


async def test_nothing_changes_under_ones_hands(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser, tab(browser, server, key) as shown:
        page = shown.page
        await send_garbage(server, "earlier nonsense")
        await shown.go("/quarantine")
        await is_live(page)
        await page.evaluate(
            """query => {
                const field = document.createElement('input');
                field.type = 'text';
                document.querySelector(query).append(field);
            }""",
            PART,
        )
        field = page.locator(f"{PART} input[type=text]")
        await field.focus()
        await send_garbage(server, "third nonsense")
        await page.wait_for_timeout(500)
        await expect(field).to_be_focused()
        await page.evaluate("() => document.activeElement.blur()")
        await expect(page.locator(PART)).to_contain_text("third nonsense", timeout=PATIENCE_S * 1000)
        await expect(field).to_have_count(0)


async def test_ages_grow_by_the_clock_of_the_gateway(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser, tab(browser, server, key) as shown:
        page = shown.page
        await page.clock.install()
        await send_garbage(server, "nonsense")
        await shown.go("/quarantine")
        age = page.locator("time[data-age]").first
        await expect(age).to_have_text("just now")
        await page.clock.fast_forward("05:00")
        await expect(age).to_have_text("5 min ago")
        await page.clock.fast_forward("03:00:00")
        await expect(age).to_have_text("3 h ago")


async def test_a_page_stays_open_while_the_gateway_restarts(tmp_path: Path) -> None:
    port = free_port()
    async with chromium() as browser, AsyncExitStack() as first:
        server, key = await first.enter_async_context(gateway(tmp_path, "--port", str(port)))
        shown = await first.enter_async_context(tab(browser, server, key))
        await send_garbage(server, "earlier nonsense")
        await shown.go("/quarantine")
        await is_live(shown.page)
        assert (await server.stop())[0] == 0
        assert not any("took longer" in line for line in server.errors), "an open page holds no stop up"
        await expect(shown.page.locator(".live")).to_have_attribute("data-state", "waiting")
        async with serving(tmp_path, *HTTP_ONLY, "--port", str(port)) as again:
            await send_garbage(again, "later nonsense")
            await is_live(shown.page)
            await expect(shown.page.locator(PART)).to_contain_text("later nonsense")


async def test_a_gateway_that_is_killed_comes_back_with_what_arrived_meanwhile(tmp_path: Path) -> None:
    port = free_port()
    async with chromium() as browser, AsyncExitStack() as first:
        server, key = await first.enter_async_context(gateway(tmp_path, "--port", str(port)))
        shown = await first.enter_async_context(tab(browser, server, key))
        await send_garbage(server, "earlier nonsense")
        await shown.go("/quarantine")
        await is_live(shown.page)
        await server.kill()
        await expect(shown.page.locator(".live")).to_have_attribute("data-state", "waiting")
        await expect(shown.page.locator(PART)).to_contain_text("earlier nonsense")
        async with serving(tmp_path, *HTTP_ONLY, "--port", str(port)) as again:
            await send_garbage(again, "later nonsense")
            await is_live(shown.page)
            await expect(shown.page.locator(PART)).to_contain_text("later nonsense")
            await expect(shown.page.locator(PART)).to_contain_text("earlier nonsense")


async def test_sixty_tabs_leave_room_for_pages_and_devices(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser, tab(browser, server, key) as shown:
        await send_garbage(server, "earlier nonsense")
        pages = [await shown.page.context.new_page() for _ in range(TABS)]
        for page in pages:
            answer = await page.goto(shown.url("/quarantine"), wait_until="load")
            assert answer is not None
            assert answer.status == 200
            # A tab is hidden by the next one, but not in a browser without a window.
            await page.evaluate(HIDE, True)
        await send_garbage(server, "later nonsense")
        await shown.go("/quarantine")
        await is_live(shown.page)
        await expect(shown.page.locator(PART)).to_contain_text("later nonsense")
        for page in (pages[0], pages[-1]):
            await page.evaluate(HIDE, False)
            await expect(page.locator(PART)).to_contain_text("later nonsense")
