"""Adding a device in a real browser: what is heard appears by itself, with a script and without."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.program.program import Server
from tests.ui.browsing import PHONE, browser_test, chromium, gateway, tab, violations
from tests.ui.hand import WAYS, Hand

pytestmark = browser_test

SPINDLE = {
    "name": "iSpindel042",
    "ID": 5,
    "angle": 52.3,
    "temperature": 19.8,
    "temp_units": "C",
    "gravity": 12.3,
}


async def send(server: Server, data: bytes) -> None:
    """Send bytes as a device does, on a connection of their own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(data)
    await reader.read(1)
    writer.close()


async def post(server: Server, body: Any, path: str = "/ingest/ispindel") -> None:
    raw = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: ESP8266HTTPClient\r\nConnection: close\r\n"
    await send(server, head.encode() + b"Content-Length: %d\r\n\r\n" % len(raw) + raw)


async def test_a_device_is_added_while_the_page_listens(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path) as (server, key),
        chromium() as browser,
        tab(browser, server, key, viewport=PHONE) as shown,
    ):
        page = shown.page
        shown.complaints.clear()  # the login asked whether the browser was logged in already: 401
        await shown.go("/devices")
        await page.click("text=Add a device >> nth=0")
        await page.fill("input[name=q]", "ispindle")
        await page.keyboard.press("Enter")
        await page.click("main li a >> nth=0")
        await page.click("main li a >> nth=0")
        heading = page.locator("h1")
        await expect(heading).to_have_text("iSpindel: HTTP")
        assert "since=" in page.url
        await expect(page.locator("[data-copy]").first).to_be_visible()
        listening = page.locator("section[data-live]")
        await expect(page.locator("[data-events]")).to_have_attribute("data-state", "live")
        await send(server, bytes.fromhex("16030100a5010000a10303") + bytes(60))
        await expect(listening).to_contain_text("127.0.0.1 speaks https to a port for plain http.")
        await post(server, SPINDLE, "/api/isspindel")
        await expect(listening).to_contain_text("127.0.0.1 reported to /api/isspindel, which nobody reads.")
        await post(server, {"hello": "world"}, "/ingest")
        await expect(listening).to_contain_text("127.0.0.1 sent something that was not understood")
        await post(server, SPINDLE)
        await expect(listening).to_contain_text("iSpindel042")
        await expect(listening).to_contain_text("The gravity is taken for °P.")
        assert await violations(page) == []
        await page.get_by_role("button", name="Right").click()
        await page.fill("input[name=name]", "Fermenter 2")
        await page.click("text=Save")
        await expect(page.locator("[role=status]")).to_have_text("Fermenter 2 is there.")
        assert "/devices/1" in page.url
        assert shown.complaints == []


async def test_without_a_script_the_page_reloads_itself(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path) as (server, key),
        chromium() as browser,
        tab(browser, server, key, java_script_enabled=False) as shown,
    ):
        page = shown.page
        await shown.go("/devices/add/ispindel/http")
        since = page.url
        await post(server, SPINDLE)
        await expect(page.locator("main")).to_contain_text("iSpindel042")
        assert page.url == since
        await page.click("text=No, it is SG")
        await page.fill("input[name=name]", "Fermenter 2")
        await page.click("text=Save")
        await expect(page.locator("[role=status]")).to_have_text("Fermenter 2 is there.")


async def test_with_a_script_the_page_never_reloads_itself(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser, tab(browser, server, key) as shown:
        await shown.go("/devices/add/ispindel/http")
        assert await shown.page.locator("meta[http-equiv=refresh]").count() == 0


@pytest.mark.parametrize("way", WAYS)
async def test_a_device_that_is_known_is_heard_again_named_and_put_into_a_brew(
    tmp_path: Path, way: str
) -> None:
    async with (
        gateway(tmp_path) as (server, key),
        chromium() as browser,
        tab(browser, server, key, viewport=PHONE, java_script_enabled=way != "no script") as shown,
    ):
        hand = Hand(shown.page, keyboard=way == "keyboard")
        await post(server, SPINDLE)
        await shown.go("/brews/new")
        await hand.fill("batchcode", "HP001")
        await hand.press(hand.button("Make the brew"))
        await hand.is_told("HP001 is made.")

        await shown.go("/devices")
        await hand.press(hand.link("Add a device"))
        await hand.fill("q", "ispindel")
        await hand.press(hand.button("Search"))
        await hand.press(hand.main.locator("li a").first)
        await hand.press(hand.main.locator("li a").first)
        await expect(shown.page.locator("h1")).to_have_text("iSpindel: HTTP")
        await post(server, {**SPINDLE, "gravity": 12.1})
        heard = hand.main.locator("h3", has_text="iSpindel042")
        await expect(heard).to_contain_text("known already")
        await hand.press(hand.button("No, it is SG"))
        await hand.is_told("Its gravity is SG from now on.")
        await hand.fill("name", "Fermenter 2")
        await hand.choose("brew", "HP001")
        await hand.press(hand.button("Save"))
        await hand.is_told("Fermenter 2 is in HP001.")
        await shown.go("/brews/1")
        await expect(hand.main).to_contain_text("Fermenter 2")
        assert shown.strangers == []
        assert shown.complaints == []
