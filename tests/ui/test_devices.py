"""Devices in a real browser: a point that is dragged, every step by keyboard and without scripts."""

import json
from pathlib import Path

import pytest

from gateway.clock import SystemClock
from gateway.domain.key import ALL_SCOPES
from gateway.domain.payload import Payload
from gateway.services.build import build_services
from gateway.services.device_settings import CalibrationChange
from gateway.store.sqlite.store import SqliteStore
from tests.program.program import HTTP_ONLY, serving
from tests.ui.browsing import Tab, browser_test, chromium, tab, violations

pytestmark = [*browser_test, pytest.mark.timeout(600)]

CALIBRATE = "/devices/1/calibrate"
PREVIEW = "button[value=preview]:not(.unseen)"


async def fill(directory: Path) -> str:
    """A device with two points and six readings; return a key."""
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, SystemClock())
        await services.access.start()
        now = services.clock.now()
        for number in range(6):
            body = {"name": "Red", "ID": 7, "angle": 40 + number, "temperature": 20.0, "gravity": 12.5}
            at = now - 900 * (6 - number)
            await services.intake.take(Payload(json.dumps(body).encode(), at, "http /ingest/ispindel"))
        change = CalibrationChange(points=[(25, 1.0), (65, 1.08)])
        await services.devices.configure(1, change.apply)
        return await services.access.add("browser", ALL_SCOPES)
    finally:
        await store.close()


async def typed(shown: Tab) -> list[str]:
    fields = await shown.page.query_selector_all("[data-point] input")
    return [await field.input_value() for field in fields]


async def test_a_dragged_point_changes_the_numbers_of_its_row(tmp_path: Path) -> None:
    key = await fill(tmp_path)
    async with (
        serving(tmp_path, *HTTP_ONLY) as server,
        chromium() as browser,
        tab(browser, server, key) as shown,
    ):
        await shown.go(CALIBRATE)
        assert await typed(shown) == ["25", "1.000", "65", "1.080"]
        box = await shown.page.locator(".grip").nth(1).bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        await shown.page.mouse.move(x, y)
        await shown.page.mouse.down()
        await shown.page.mouse.move(x - 40, y + 30, steps=4)
        await shown.page.mouse.up()
        first, second, angle, gravity = await typed(shown)
        assert (first, second) == ("25", "1.000")
        assert 50 < float(angle) < 64
        assert 1.05 < float(gravity) < 1.079
        await shown.page.click(PREVIEW)
        assert "readings from the last 14 days would differ" in await shown.page.inner_text("main")
        assert (await typed(shown))[2:] == [angle, gravity]
        assert not shown.strangers
        assert [line for line in shown.complaints if "401" not in line] == []


async def test_calibrating_by_keyboard_alone_and_without_scripts(tmp_path: Path) -> None:
    key = await fill(tmp_path)
    async with serving(tmp_path, *HTTP_ONLY) as server, chromium() as browser:
        for scripts in (True, False):
            async with tab(browser, server, key, java_script_enabled=scripts) as shown:
                await shown.go(CALIBRATE)
                await shown.page.focus("[name=gravity_1]")
                await shown.page.keyboard.press("Control+A")
                await shown.page.keyboard.type("1.004")
                await shown.page.keyboard.press("Enter")  # the preview, not the removal of a row
                await shown.page.wait_for_selector("text=Before and after")
                assert await typed(shown) == ["25", "1.004", "65", "1.080"]
                await shown.page.focus("button[value=save]")
                await shown.page.keyboard.press("Enter")
                await shown.page.wait_for_url("**/devices/1")
                assert "Saved." in await shown.page.inner_text("main")


async def test_pages_of_devices_are_accessible_in_every_step(tmp_path: Path) -> None:
    key = await fill(tmp_path)
    found = {}
    async with (
        serving(tmp_path, *HTTP_ONLY) as server,
        chromium() as browser,
        tab(browser, server, key, bypass_csp=True) as shown,
    ):
        for path in ("/devices", "/devices/1", CALIBRATE, "/devices/1/exclude", "/devices/1/uncalibrate"):
            await shown.go(path)
            found[path] = await violations(shown.page)
        for wrong, name in (("", "preview"), ("x", "wrong")):
            await shown.go(CALIBRATE)
            if wrong:
                await shown.page.fill("[name=tilt_1]", wrong)
            await shown.page.click(PREVIEW)
            found[name] = await violations(shown.page)
    assert {path: those for path, those in found.items() if those} == {}
