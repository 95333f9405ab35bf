"""The life of a brew in a real browser: with a script, without one, and by the keyboard alone."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Locator, Page, expect

from tests.cloud import KEY, ScriptedCloud, running
from tests.program.program import HTTP_ONLY, Server, serving, until
from tests.ui.browsing import BROWSER_MS, PHONE, Tab, browser_test, chromium, tab

pytestmark = [*browser_test, pytest.mark.timeout(600)]

expect.set_options(timeout=BROWSER_MS)

TABS = 300
"""Times that the Tab key is pressed at most before an element counts as out of reach."""

FOCUSED = "each => each === document.activeElement"


async def report(server: Server, gravity: float) -> None:
    """A reading of the device that is in the brew."""
    body = {"name": "iSpindel042", "ID": 5, "angle": 50, "temperature": 19.5, "temp_units": "C"}
    raw = json.dumps({**body, "gravity": gravity, "battery": 3.98, "interval": 900})
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{server.url}/ingest/ispindel", data=raw.encode()) as answer,
    ):
        assert answer.status == 200


@dataclass
class Hand:
    """How somebody uses a page: by pointer, or by the keyboard alone."""

    page: Page
    keyboard: bool

    async def press(self, wanted: Locator) -> None:
        """Press a button, or follow a link."""
        await expect(wanted.first).to_be_visible()
        if not self.keyboard:
            await wanted.first.click()
            return
        await self._reach(wanted.first)
        await self.page.keyboard.press("Enter")

    async def fill(self, name: str, text: str) -> None:
        """Type into a field."""
        wanted = self.page.locator(f"main [name={name}]").first
        if not self.keyboard:
            await wanted.fill(text)
            return
        await self._reach(wanted)
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.type(text)

    async def choose(self, name: str, words: str) -> None:
        """Choose an option that has these words."""
        wanted = self.page.locator(f"main select[name={name}]").first
        label = await wanted.locator("option", has_text=words).first.inner_text()
        if not self.keyboard:
            await wanted.select_option(label=label)
            return
        await self._reach(wanted)
        await self.page.keyboard.type(label)

    async def _reach(self, wanted: Locator) -> None:
        for _ in range(TABS):
            if await wanted.evaluate(FOCUSED):
                return
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"the Tab key never reaches {wanted}")

    def button(self, name: str) -> Locator:
        return self.page.locator("main").get_by_role("button", name=name, exact=True)

    def link(self, name: str) -> Locator:
        return self.page.locator("main").get_by_role("link", name=name)

    async def notice(self, text: str) -> None:
        await expect(self.page.locator("[role=status]")).to_contain_text(text)


Again = Callable[[], Awaitable[Any]]


async def live_through(shown: Tab, server: Server, *, keyboard: bool, again: Again) -> None:
    """Make a brew, follow it, end it, begin the next one. `again` is what shows a new reading."""
    page, hand = shown.page, Hand(shown.page, keyboard)
    await report(server, 1.050)
    await shown.go("/")
    await hand.press(hand.link("It is in a new brew"))
    await hand.fill("batchcode", "HP001")
    await hand.press(hand.button("Make the brew"))
    await hand.notice("HP001 is made.")
    brew = page.url
    await report(server, 1.048)
    await again()
    await expect(page.locator("main .figure").first).to_contain_text("1.048")

    await hand.press(hand.link("Note"))
    await hand.press(hand.link("Dry hop"))
    await hand.fill("text", "Citra")
    await hand.fill("amount", "50 g")
    await hand.press(hand.button("Save"))
    await expect(page.locator("main")).to_contain_text("Citra")

    await hand.press(hand.link("Hand reading"))
    await hand.fill("gravity", "1,044")
    await hand.fill("temp", "19,5")
    await hand.press(hand.button("Save"))
    await expect(page.locator("main .figure").first).to_contain_text("1.044")
    await expect(page.locator("main .figure").first).to_contain_text("by hand")

    await hand.press(hand.link("Set OG"))
    await hand.fill("og", "1060")
    await hand.press(hand.button("Save"))
    await expect(page.locator("main")).to_contain_text("1.060")
    assert page.url.split("?")[0] == brew.split("?")[0]

    await hand.press(hand.link("Next beer"))
    await hand.fill("batchcode", "HP002")
    await hand.press(hand.button("Begin the next beer"))
    await hand.notice("HP002 has begun, HP001 is done.")
    await report(server, 1.061)
    await again()
    await expect(page.locator("main .figure").first).to_contain_text("1.061")

    await hand.press(hand.link("Done?"))
    await hand.press(hand.button("Yes, done"))
    await expect(page.locator("main")).to_contain_text("Conditioning")
    await shown.go("/")
    await expect(page.locator("main")).to_contain_text("HP001")
    await expect(page.locator("main")).to_contain_text("HP002")
    await expect(page.locator("main .card h2").first).not_to_contain_text("HP00")


@pytest.mark.parametrize("way", ["script", "keyboard", "no script"])
async def test_a_brew_begins_is_followed_ends_and_makes_room_for_the_next(tmp_path: Path, way: str) -> None:
    options = {"viewport": PHONE, "java_script_enabled": way != "no script"}
    async with (
        serving(tmp_path, *HTTP_ONLY) as server,
        chromium() as browser,
        tab(browser, server, server.first_key or "", **options) as shown,
    ):

        async def nothing() -> None:
            """A page with a script shows a reading by itself."""

        again = shown.page.reload if way == "no script" else nothing
        await live_through(shown, server, keyboard=way == "keyboard", again=again)
        assert shown.strangers == []
        assert shown.complaints == []


async def test_a_reading_by_hand_reaches_the_service(tmp_path: Path) -> None:
    async with (
        running(ScriptedCloud()) as cloud,
        serving(tmp_path, *HTTP_ONLY, "--forward-seconds", "0.2") as server,
        chromium() as browser,
        tab(browser, server, server.first_key or "", viewport=PHONE) as shown,
    ):
        page, hand = shown.page, Hand(shown.page, keyboard=False)
        await shown.go("/sending")
        await hand.press(hand.link("Add a service"))
        await hand.fill("name", "home")
        await hand.fill("url", cloud.url)
        await hand.fill("key", KEY)
        await hand.press(hand.button("Try it and add it"))
        await shown.go("/brews/new")
        await hand.fill("batchcode", "HP001")
        await hand.press(hand.button("Make the brew"))
        await shown.go("/sending/home/brews/1")
        await hand.fill("typed", "7")
        await hand.press(page.locator("main form button").first)
        await shown.go("/brews/1/hand")
        await hand.fill("gravity", "1.044")
        await hand.press(hand.button("Save"))
        await until(lambda: any(str(row.get("gravity")) == "1.044" for row in cloud.kept(7)))
        await expect(page.locator("main")).to_contain_text("home")
