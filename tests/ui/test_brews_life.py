"""A brew's life in a real browser: with scripts, without them, and by the keyboard alone."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Page, expect

from tests.cloud import KEY, ScriptedCloud, running
from tests.program.program import Server, ispindel, post, until
from tests.ui.browsing import browser_test, chromium, gateway, tab

pytestmark = browser_test

RECIPE = b"<RECIPES><RECIPE><NAME>Harbour Porter</NAME></RECIPE></RECIPES>"

STEPS = 120
"""Presses of the Tab key within which every control of a page must be reached."""


class Hands:
    """A person with a mouse."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def fill(self, name: str, text: str) -> None:
        """Type into a field."""
        await self.page.locator(f"main [name={name}]").fill(text)

    async def choose(self, name: str, option: str) -> None:
        """Choose an option of a list."""
        await self.page.locator(f"main select[name={name}]").select_option(label=option)

    async def press(self, words: str) -> None:
        """Press a button or follow a link of the page, and wait for what comes."""
        async with self.page.expect_navigation():
            await self.page.locator(f"main :is(a, button):text-is('{words}')").first.click()


class Keys(Hands):
    """A person with a keyboard alone."""

    async def fill(self, name: str, text: str) -> None:
        await self._reach(f"main [name={name}]")
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.type(text)

    async def choose(self, name: str, option: str) -> None:
        await self._reach(f"main select[name={name}]")
        await self.page.keyboard.type(option)

    async def press(self, words: str) -> None:
        await self._reach(f"main :is(a, button):text-is('{words}')")
        async with self.page.expect_navigation():
            await self.page.keyboard.press("Enter")

    async def _reach(self, selector: str) -> None:
        wanted = await self.page.locator(selector).first.element_handle()
        for _ in range(STEPS):
            if await self.page.evaluate("wanted => document.activeElement === wanted", wanted):
                return
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"{selector} cannot be reached by the Tab key")


Send = Callable[[str], Awaitable[None]]


async def ask(server: Server, key: str, method: str, path: str, **more: Any) -> Any:
    headers = {"X-API-KEY": key, **more.pop("headers", {})}
    async with aiohttp.request(method, server.url + path, headers=headers, **more) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


@pytest.mark.parametrize("way", ["scripts", "no scripts", "keyboard"])
async def test_a_brew_from_the_first_reading_to_the_next_beer(tmp_path: Path, way: str) -> None:
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    async with running(ScriptedCloud()) as cloud, chromium() as browser, aiohttp.ClientSession() as http:
        at_once = ("--forward-seconds", "0")
        options = ("--upstream-url", cloud.url, "--upstream-key-file", str(key_file), *at_once)
        async with (
            gateway(tmp_path / "data", *options) as (server, key),
            tab(browser, server, key, java_script_enabled=way != "no scripts") as shown,
        ):

            async def send(gravity: str) -> None:
                assert await post(http, server, ispindel(1, name="Red", gravity=gravity)) == 200

            xml = {"Content-Type": "application/xml"}
            await ask(server, key, "POST", "/manage/recipes", data=RECIPE, headers=xml)
            await send("1.050")
            hands = Keys(shown.page) if way == "keyboard" else Hands(shown.page)
            await _live(hands, cloud, server, key, send, scripts=way != "no scripts")
            assert shown.strangers == []
            # The login page asks whether somebody is logged in, and a browser calls the answer an error.
            assert [each for each in shown.complaints if "401" not in each] == []


async def _live(
    hands: Hands, cloud: ScriptedCloud, server: Server, key: str, send: Send, *, scripts: bool
) -> None:
    page = hands.page
    main = page.locator("main")
    await page.goto(f"{server.url}/ui/brews/new")
    await hands.choose("recipe", "Harbour Porter")
    await hands.choose("device", "Red")
    await hands.press("Make the brew")
    await expect(main).to_contain_text("HP001 is made.")
    await ask(server, key, "PATCH", "/manage/brewsessions/1", json={"upstream_id": 77})

    await send("1.049")
    if not scripts:
        await page.reload()
    await expect(main).to_contain_text("1.049")

    await hands.press("+ Note")
    await hands.press("Dry hop")
    await hands.fill("text", "Citra")
    await hands.fill("amount", "50 g")
    await hands.press("Save")
    await expect(page.locator(".events")).to_contain_text("Citra, 50 g")

    await hands.press("+ Hand reading")
    await hands.fill("gravity", "1,024")
    await hands.fill("temp", "19,5")
    await hands.press("Save")
    await expect(page.locator(".events")).to_contain_text("1.024 SG, 19.5 °C, Hydrometer")
    await until(lambda: any(row["source"] == "hand" for row in cloud.kept(77)))

    await hands.press("Set OG")
    await hands.fill("og", "1062")
    await hands.press("Save")
    await expect(main).to_contain_text("1.062")

    await hands.press("Done?")
    await hands.press("Yes, done")
    await expect(main).to_contain_text("HP001 is done.")
    await page.goto(f"{server.url}/ui/brews/1/done")
    await hands.press("It is not done after all")
    await expect(main).to_contain_text("HP001 goes on.")

    await send("1.066")
    await hands.press("Next beer")
    await expect(main).to_contain_text("this looks like the new beer")
    await hands.fill("batchcode", "HP002")
    await hands.press("Begin the next beer")
    await expect(main).to_contain_text("HP002 has begun, HP001 is done.")
    await expect(main).to_contain_text("1.066")
    readings = (await ask(server, key, "GET", "/v1/fermentation/2"))["readings"]
    assert [reading["gravity"] for reading in readings] == ["1.066"]
