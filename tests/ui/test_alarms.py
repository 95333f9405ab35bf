"""Alarms in a real browser: they appear by themselves, and the keyboard alone is enough for them."""

from pathlib import Path

import aiohttp
from playwright.async_api import Page, expect

from tests.payloads import ispindel
from tests.program.program import Server, until
from tests.ui.browsing import PHONE, browser_test, chromium, gateway, tab, violations

pytestmark = browser_test

BANNER = "div[data-live~=alarm] .banner"


async def low_battery(server: Server) -> None:
    """Four reports of a device whose battery is nearly empty."""
    async with aiohttp.ClientSession() as http:
        for n in range(4):
            body = ispindel(1, name="Red", gravity="1.05", angle=f"60.{n}")
            body = body.replace('"battery":3.95', '"battery":3.31')
            async with http.post(f"{server.url}/ingest", data=body.encode()) as answer:
                assert answer.status == 200


async def is_live(page: Page) -> None:
    await expect(page.locator(".live")).to_have_attribute("data-state", "live")


async def test_an_alarm_appears_by_itself_and_goes_by_a_key(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser, tab(browser, server, key) as shown:
        page = shown.page
        await shown.go("/help")
        await is_live(page)
        await expect(page.locator(BANNER)).to_have_count(0)
        await low_battery(server)
        await expect(page.locator(BANNER)).to_contain_text("Battery low")
        assert shown.asked.count(shown.url("/help")) == 1, "no reload"
        ok = page.locator(f"{BANNER} button")
        await ok.focus()
        await page.keyboard.press("Enter")
        await page.wait_for_load_state("load")
        assert page.url == shown.url("/help"), "back where the button was"
        await expect(page.locator(".notice")).to_contain_text("Battery low")
        await expect(page.locator(BANNER)).to_have_count(0)
        assert [each for each in shown.complaints if "401" not in each] == []


async def test_a_page_that_is_open_follows_what_another_browser_does(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser:
        await low_battery(server)
        async with (
            tab(browser, server, key) as wall,
            tab(browser, server, key, viewport=PHONE, java_script_enabled=False) as phone,
        ):
            await wall.go("/alarms")
            await is_live(wall.page)
            box = wall.page.locator("section .box").first
            await expect(box).to_contain_text("Battery low")

            await phone.go("/devices/1")
            later = phone.page.locator("details", has_text="Later")
            await later.locator("summary").focus()
            await phone.page.keyboard.press("Enter")
            await phone.page.keyboard.press("Tab")
            await phone.page.keyboard.press("Enter")
            await phone.page.wait_for_load_state("load")
            await expect(phone.page.locator(".notice")).to_contain_text("Quiet until")

            await expect(box).to_contain_text("Quiet until")
            await expect(wall.page.locator("ol.rows li")).to_have_count(2)
            await expect(wall.page.locator(BANNER)).to_have_count(0)


async def test_a_rule_is_changed_without_a_script(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path) as (server, key),
        chromium() as browser,
        tab(browser, server, key, java_script_enabled=False) as shown,
    ):
        page = shown.page
        await shown.go("/alarms")
        await page.get_by_role("link", name="Temperature").click()
        await page.fill("[name=lo]", "22")
        await page.fill("[name=hi]", "17")
        await page.click("form.fields >> nth=0 >> button")
        await expect(page.locator("[role=alert]")).to_contain_text("Too warm has to be above too cold.")
        await page.fill("[name=hi]", "24,5")
        await page.click("form.fields >> nth=0 >> button")
        await expect(page.locator("li", has_text="Temperature")).to_contain_text("from 22")


async def test_banner_and_boxes_are_for_everybody(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser:
        await low_battery(server)
        async with tab(browser, server, key, bypass_csp=True, viewport=PHONE) as shown:

            async def fires() -> bool:
                await shown.go("/alarms")
                return await shown.page.locator(BANNER).count() == 1

            await until(fires)
            for path in ("/alarms", "/devices/1"):
                await shown.go(path)
                await shown.page.locator("section summary, .card summary").first.click()
                assert await violations(shown.page) == [], path
