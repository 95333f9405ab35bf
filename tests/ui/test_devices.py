"""Devices in a real browser: a point that is dragged, every step by keyboard and without scripts."""

import json
import re
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import aiohttp
import pytest
from playwright.async_api import expect

from gateway.clock import SystemClock
from gateway.domain.key import ALL_SCOPES
from gateway.domain.payload import Payload
from gateway.domain.units import to_sg
from gateway.services.brewsessions import SessionChange
from gateway.services.build import build_services
from gateway.services.device_settings import CalibrationChange
from gateway.store.sqlite.store import SqliteStore
from gateway.ui.forms import local_input
from gateway.ui.viewer import machine_zone
from tests.patience import PATIENCE_S
from tests.program.program import HTTP_ONLY, Server, serving, until
from tests.ui.browsing import Tab, browser_test, chromium, tab, violations
from tests.ui.hand import WAYS, Hand

pytestmark = [*browser_test, pytest.mark.timeout(600)]

CALIBRATE = "/devices/1/calibrate"
PREVIEW = "button[value=preview]:not(.unseen)"


SENT = [1.050] * 6
"""The gravities that the device sends."""

CALIBRATED = [1.030, 1.032, 1.034, 1.036, 1.038, 1.040]
"""What they become by the points (25, 1.000), (45, 1.040) and (65, 1.080)."""


@dataclass(frozen=True)
class Filled:
    """A key, and the time at which the device was read last (Unix seconds)."""

    key: str
    now: float


async def fill(directory: Path, *, points: bool = True) -> Filled:
    """A device with six readings in a brew, and with two points if they are wanted."""
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
        brew = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
        await services.brewsessions.assign("1", brew.id, 0)
        if points:
            await services.devices.configure(1, CalibrationChange(points=[(25, 1.0), (65, 1.08)]).apply)
        return Filled(await services.access.add("browser", ALL_SCOPES), now)
    finally:
        await store.close()


async def gravities(server: Server, key: str) -> list[float | None]:
    """The gravities of the brew as they are stored (SG), the oldest first."""
    url, headers = f"{server.url}/v1/fermentation/1", {"X-API-KEY": key}
    async with aiohttp.request("GET", url, headers=headers) as answer:
        readings = (await answer.json())["readings"]
    return [
        round(to_sg(float(each["gravity"]), each["gravity_unit"]), 3) if each.get("gravity") else None
        for each in readings
    ]


async def typed(shown: Tab) -> list[str]:
    fields = await shown.page.query_selector_all("[data-point] input")
    return [await field.input_value() for field in fields]


async def test_a_dragged_point_changes_the_numbers_of_its_row(tmp_path: Path) -> None:
    key = (await fill(tmp_path)).key
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


async def shows(shown: Tab, gravity: str, *, scripts: bool) -> None:
    """Wait for the figure of the page, which comes by itself, or when the page is opened again."""
    figure = shown.page.locator("main .figure").first
    if scripts:
        await expect(figure).to_contain_text(gravity)
        return

    async def opened_again() -> bool:
        await shown.page.reload()
        return gravity in await figure.inner_text()

    await until(opened_again, 4 * PATIENCE_S)


async def drawn(shown: Tab, gravity: str, *, scripts: bool) -> list[str]:
    """The gravities of the brew as its page draws them, after its figure has become this one."""
    await shown.go("/brews/1")
    await shows(shown, gravity, scripts=scripts)
    strokes = shown.page.locator("main .drawing .lines path")
    return [await stroke.get_attribute("d") or "" for stroke in await strokes.all()]


async def calibrated(hand: Hand, shown: Tab) -> None:
    """Type two points, take a third from a reading, look at the effect, mend a mistake, and save."""
    await shown.go("/devices/1")
    await hand.press(hand.link("Calibrate"))
    for number, (tilt, gravity) in enumerate((("25", "1.000"), ("65,0", "1080")), 1):
        await hand.fill(f"tilt_{number}", tilt)
        await hand.fill(f"gravity_{number}", gravity)
    await hand.choose("from_reading", "45")
    await hand.press(hand.button("+ With its tilt"))
    await expect(hand.field("tilt_3")).to_have_value("45")
    await hand.fill("gravity_3", "1.29")
    await hand.press(hand.button("Preview"))
    await expect(hand.main).to_contain_text("A true gravity is between 0.950 and 1.250 SG.")
    shown.complaints.clear()  # a browser notes the status 422
    await hand.fill("gravity_3", "1.040")
    await hand.choose("degree", "1")
    await hand.press(hand.button("Preview"))
    await expect(hand.main).to_contain_text("6 of 6 readings from the last 14 days would differ.")
    await expect(hand.main).to_contain_text("Now 1.050 SG, then 1.040 SG.")


async def left_out(hand: Hand, shown: Tab, zone: tzinfo, now: float) -> None:
    """Leave the last two readings out, after a look at the effect."""
    await shown.go("/devices/1")
    await hand.press(hand.link("Leave out a range"))
    await hand.fill("first", local_input(now - 900 * 2, zone))
    await hand.fill("last", local_input(now - 60, zone))
    await hand.press(hand.button("Preview"))
    await expect(hand.main).to_contain_text("2 readings are in this range.")
    await hand.press(hand.button("Leave out a range"))
    await hand.is_told("Left out:")


@pytest.mark.parametrize("way", WAYS)
async def test_a_device_is_calibrated_a_range_is_left_out_and_all_is_taken_back(
    tmp_path: Path, way: str
) -> None:
    filled, scripts = await fill(tmp_path, points=False), way != "no script"
    zone = ZoneInfo("Europe/Berlin") if scripts else machine_zone()
    async with (
        serving(tmp_path, *HTTP_ONLY) as server,
        chromium() as browser,
        tab(browser, server, filled.key, java_script_enabled=scripts) as shown,
    ):
        hand = Hand(shown.page, keyboard=way == "keyboard")
        before = await drawn(shown, "1.050", scripts=scripts)
        await calibrated(hand, shown)
        assert await gravities(server, filled.key) == SENT, "a preview changes something"
        await hand.press(hand.button("Save"))
        await hand.is_told("Saved. Earlier readings are read again")
        await shows(shown, "1.040", scripts=scripts)
        after = await drawn(shown, "1.040", scripts=scripts)
        assert after != before
        assert await gravities(server, filled.key) == CALIBRATED

        await left_out(hand, shown, zone, filled.now)
        less = await drawn(shown, "1.036", scripts=scripts)
        assert less not in (before, after)
        assert await gravities(server, filled.key) == CALIBRATED, "what is left out is lost"
        await shown.go("/devices/1")
        await expect(hand.main).to_contain_text("2 readings")
        await hand.press(hand.button("Take back"))
        await hand.is_told("The readings count again.")
        assert await drawn(shown, "1.040", scripts=scripts) == after

        await shown.go("/devices/1")
        await hand.press(hand.link("Take back"))
        await hand.press(hand.button("Take back"))
        await hand.is_told("The calibration is taken back.")
        assert await drawn(shown, "1.050", scripts=scripts) == before
        assert await gravities(server, filled.key) == SENT
        assert shown.strangers == []
        assert shown.complaints == []


async def test_pages_of_devices_are_accessible_in_every_step(tmp_path: Path) -> None:
    key = (await fill(tmp_path)).key
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


async def test_a_range_is_dragged_over_the_chart_and_its_effect_is_shown_before_it_is_left_out(
    tmp_path: Path,
) -> None:
    filled = await fill(tmp_path)
    async with (
        serving(tmp_path, *HTTP_ONLY) as server,
        chromium() as browser,
        tab(browser, server, filled.key) as shown,
    ):
        page = shown.page
        await shown.go("/brews/1")
        await page.get_by_text("Leave readings out").click()
        form = page.locator("[data-leave-out]")
        box = await page.locator(".drawing .chart.large").bounding_box()
        assert box is not None
        middle = box["y"] + box["height"] / 2
        await page.mouse.move(box["x"] + box["width"] * 0.2, middle)
        await page.mouse.down()
        await page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=5)
        await expect(form.locator("[data-count]")).to_have_text(re.compile(r"Readings in it: [1-6]"))
        await page.mouse.up()
        first = await form.locator("[name=from]").input_value()
        assert first
        await form.get_by_role("button").click()
        await expect(page).to_have_url(re.compile(r"/ui/devices/1/exclude\?from="))
        await expect(page.locator("[name=first]")).to_have_value(first)
        await expect(page.locator("main [role=status]")).to_contain_text(re.compile(r"[1-6] reading"))
