"""A brew's life in a real browser: with a script, without one, and by the keyboard alone."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from playwright.async_api import expect

from tests.cloud import KEY, ScriptedCloud, running
from tests.program.program import Server, ispindel, post, until
from tests.ui.browsing import PHONE, Tab, browser_test, chromium, gateway, tab
from tests.ui.hand import WAYS, Hand

pytestmark = [*browser_test, pytest.mark.timeout(600)]

RECIPE = b"<RECIPES><RECIPE><NAME>Harbour Porter</NAME></RECIPE></RECIPES>"

NUMBER = 7
"""The brew's number at the service."""


async def ask(server: Server, key: str, method: str, path: str, **more: Any) -> Any:
    """Ask the gateway as a program does."""
    headers = {"X-API-KEY": key, **more.pop("headers", {})}
    async with aiohttp.request(method, server.url + path, headers=headers, **more) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def report(server: Server, gravity: str) -> None:
    """Send a reading of the device that is in the brew."""
    async with aiohttp.ClientSession() as http:
        assert await post(http, server, ispindel(1, name="Red", gravity=gravity)) == 200


async def shows(shown: Tab, gravity: str, *, scripts: bool) -> None:
    """Wait for a reading: it comes by itself, or with the page when it is opened again."""
    if not scripts:
        await shown.page.reload()
    await expect(shown.page.locator("main .figure").first).to_contain_text(gravity)


async def sent_on(hand: Hand, shown: Tab, cloud: ScriptedCloud) -> None:
    """Send the brew on to a service, under a number there."""
    await shown.go("/sending")
    await hand.press(hand.link("Add a service"))
    await hand.fill("name", "home")
    await hand.fill("url", cloud.url)
    await hand.fill("key", KEY)
    await hand.press(hand.button("Try it and add it"))
    await shown.go("/sending/home/brews/1")
    await hand.fill("typed", str(NUMBER))
    await hand.press(hand.main.locator("form button").first)


async def noted(hand: Hand, cloud: ScriptedCloud) -> None:
    """Add a dry hop, a reading by hand and the original gravity."""
    first = hand.main.locator(".figure").first
    await hand.press(hand.link("Note"))
    await hand.press(hand.link("Dry hop"))
    await hand.fill("text", "Citra")
    await hand.fill("amount", "50 g")
    await hand.press(hand.button("Save"))
    await expect(hand.page.locator(".events")).to_contain_text("Citra, 50 g")

    await hand.press(hand.link("Hand reading"))
    await hand.fill("gravity", "1,044")
    await hand.fill("temp", "19,5")
    await hand.press(hand.button("Save"))
    await expect(first).to_contain_text("1.044")
    await expect(first).to_contain_text("by hand")
    await expect(hand.page.locator(".events")).to_contain_text("1.044 SG, 19.5 °C, Hydrometer")
    await until(lambda: any(row["source"] == "hand" for row in cloud.kept(NUMBER)))
    [row] = [row for row in cloud.kept(NUMBER) if row["source"] == "hand"]
    assert (row["gravity"], row["temp"]) == ("1.044", "19.5")

    await hand.press(hand.link("Set OG"))
    await hand.fill("og", "1062")
    await hand.press(hand.button("Save"))
    await expect(hand.main).to_contain_text("1.062")


@pytest.mark.parametrize("way", WAYS)
async def test_a_brew_begins_is_followed_ends_and_makes_room_for_the_next(tmp_path: Path, way: str) -> None:
    scripts = way != "no script"
    options = {"viewport": PHONE, "java_script_enabled": scripts}
    async with (
        running(ScriptedCloud()) as cloud,
        gateway(tmp_path, "--forward-seconds", "0.2") as (server, key),
        chromium() as browser,
        tab(browser, server, key, **options) as shown,
    ):
        xml = {"Content-Type": "application/xml"}
        await ask(server, key, "POST", "/manage/recipes", data=RECIPE, headers=xml)
        await report(server, "1.050")
        page, hand = shown.page, Hand(shown.page, keyboard=way == "keyboard")

        await shown.go("/")
        await hand.press(hand.link("It is in a new brew"))
        await hand.choose("recipe", "Harbour Porter")
        await hand.press(hand.button("Make the brew"))
        await hand.is_told("HP001 is made.")
        await report(server, "1.048")
        await shows(shown, "1.048", scripts=scripts)

        await sent_on(hand, shown, cloud)
        await shown.go("/brews/1")
        await noted(hand, cloud)
        await expect(hand.main).to_contain_text("home")

        await hand.press(hand.link("Done?"))
        await hand.press(hand.button("Yes, done"))
        await hand.is_told("HP001 is done.")
        await shown.go("/brews/1/done")
        await hand.press(hand.button("It is not done after all"))
        await hand.is_told("HP001 goes on.")

        await report(server, "1.066")
        await shown.go("/brews/1/next")
        await expect(hand.main).to_contain_text("this looks like the new beer")
        await hand.fill("batchcode", "HP002")
        await hand.press(hand.button("Begin the next beer"))
        await hand.is_told("HP002 has begun, HP001 is done.")
        readings = (await ask(server, key, "GET", "/v1/fermentation/2"))["readings"]
        assert [reading["gravity"] for reading in readings] == ["1.066"]
        await report(server, "1.061")
        await shows(shown, "1.061", scripts=scripts)

        await shown.go("/brews/2/done")
        await hand.press(hand.button("Yes, done"))
        await expect(hand.main).to_contain_text("Conditioning")
        await shown.go("/")
        await expect(hand.main).to_contain_text("HP001")
        await expect(hand.main).to_contain_text("HP002")
        await expect(page.locator("main .card h2").first).not_to_contain_text("HP00")
        assert shown.strangers == []
        assert shown.complaints == []
