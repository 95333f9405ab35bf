"""Calibrating and leaving out by the page: the look at the effect, what is stored, and the way back."""

from pathlib import Path

import pytest

from gateway.domain.calibration import Calibration
from gateway.services.device_settings import CalibrationChange
from gateway.services.timeline import EventContent
from tests.system.ui.site import Element, Html
from tests.system.ui.test_devices import NOW, brew, page, send, settled, stored, utc

__all__ = ["utc"]

POINTS = {"unit": "SG", "tilt_1": "25", "gravity_1": "1.000", "tilt_2": "65,0", "gravity_2": "1080"}


def rows(html: Html) -> list[tuple[str, str]]:
    inputs = {field.attributes.get("name", ""): field for field in html.page.all("input")}
    found = []
    for name, tilt in inputs.items():
        if name.startswith("tilt_"):
            gravity = inputs[name.replace("tilt", "gravity")]
            found.append((tilt.attributes["value"], gravity.attributes["value"]))
    return found


def charts_of(html: Html) -> list[Element]:
    return html.page.all("svg", class_="chart")


async def test_a_preview_changes_nothing_and_is_what_is_stored_afterwards(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        before = await stored(browser)
        html = await browser.post("/devices/1/calibrate", {**POINTS, "temp_offset": "-0.5", "do": "preview"})
        text = html.text.replace("\xa0", " ")
        assert "6 of 6 readings from the last 14 days would differ." in text
        assert "Now 1.050 SG, then 1.040 SG." in text
        assert "The curve goes through every point, so the distances say nothing." in text
        assert len(charts_of(html)) == 3  # the curve, and before and after in two sizes
        assert await stored(browser) == before
        change = CalibrationChange(points=[(25, 1.0), (65, 1.08)], temp_offset=-0.5, clear=True)
        effect = await browser.services.devices.preview(1, change.apply)
        html = await browser.post("/devices/1/calibrate", {**POINTS, "temp_offset": "-0.5", "do": "save"})
        assert "Saved. Earlier readings are read again" in html.text
        await settled(browser)
        after = await stored(browser)
        assert after != before
        assert after == [(point.sg, point.celsius) for point in effect.after]
        html = await browser.get("/devices/1")
        assert "A curve through 2 points." in html.text
        assert "−0.5 °C" in html.text.replace("\xa0", " ")
        assert rows(await browser.get("/devices/1/calibrate")) == [("25", "1.000"), ("65", "1.080")]
        assert "Take the calibration of Red back?" in (await browser.get("/devices/1/uncalibrate")).text
        await browser.post("/devices/1/uncalibrate")
        await settled(browser)
        assert await stored(browser) == before
        assert "Never calibrated." in (await browser.get("/devices/1")).text


async def test_rows_come_and_go_and_readings_fill_them_in(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        number = await brew(browser.services)
        await browser.services.brewsessions.assign("1", number, 0)
        session = await browser.services.store.sessions.get(number)
        assert session is not None
        at = int(NOW) - 1000
        event = EventContent("hand_reading", at, "", gravity="1.048", gravity_unit="G")
        await browser.services.timeline.add(session, event, "test", "127.0.0.1")
        html = await browser.get("/devices/1/calibrate")
        assert rows(html) == [("", "")] * 3
        assert "by hand 1.048 SG, tilt then 44.0°" in html.text.replace("\xa0", " ")
        path = "/devices/1/calibrate"
        used = html.page.all("button", value="use 44 1.048")
        assert len(used) == 1
        html = await browser.post(path, {**POINTS, "do": "use 44 1.048"})
        assert rows(html) == [("25", "1.000"), ("65,0", "1080"), ("44", "1.048")]
        html = await browser.post(path, {**POINTS, "do": "point"})
        assert rows(html) == [("25", "1.000"), ("65,0", "1080"), ("", "")]
        html = await browser.post(path, {**POINTS, "from_reading": "45", "do": "reading"})
        assert rows(html)[-1] == ("45", "")
        html = await browser.post(path, {**POINTS, "do": "remove 1"})
        assert rows(html) == [("65,0", "1080")]
        assert (await browser.services.devices.find(1)).settings.calibration == Calibration()


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "no tilt": ({"tilt_1": "x"}, "This is no number."),
    "impossible tilt": ({"tilt_1": "120"}, "A tilt is between 0 and 90 degrees."),
    "no gravity": ({"gravity_1": ""}, "This is no number."),
    "impossible gravity": ({"gravity_1": "1.29"}, "A true gravity is between 0.950 and 1.250 SG."),
    "one point": ({"tilt_2": "", "gravity_2": ""}, "A curve needs at least two points."),
    "a tilt twice": ({"tilt_2": "25"}, "Two points have the same tilt."),
    "too high a degree": ({"degree": "3"}, "A curve of this degree needs more points."),
    "great offset": ({"gravity_offset": "2"}, "At most 0.1 SG"),
    "no offset": ({"temp_offset": "abc"}, "This is no number."),
    "no temperature of beer": ({"corrected_at": "99"}, "A temperature between 0 and 50 °C"),
}


async def test_what_cannot_be_is_said_beside_its_field(tmp_path: Path) -> None:
    async with page(tmp_path, readings=1) as browser:
        said: dict[str, bool] = {}
        for case, (fields, words) in WRONG.items():
            pressed = "save" if len(said) % 2 else "preview"
            html = await browser.post("/devices/1/calibrate", {**POINTS, **fields, "do": pressed}, 422)
            said[case] = words in html.text and bool(html.page.all(role="alert"))
        assert [case for case, is_said in said.items() if not is_said] == []
        assert (await browser.services.devices.find(1)).settings.calibration == Calibration()


async def test_plato_fahrenheit_and_a_comma_can_be_typed(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        browser.language = "de"
        html = await browser.get("/devices/1/calibrate")
        assert html.page.all("option", value="P")[0].attributes.get("selected") is not None
        fields = {"unit": "P", "tilt_1": "25,5", "gravity_1": "0", "tilt_2": "65", "gravity_2": "20,0"}
        await browser.post("/devices/1/calibrate", {**fields, "gravity_offset": "-0,002", "do": "save"})
        found = (await browser.services.devices.find(1)).settings.calibration
        assert [angle for angle, _ in found.points] == [25.5, 65]
        assert [sg for _, sg in found.points] == pytest.approx([1.0, 1.083], abs=0.001)
        assert (found.gravity_offset, found.corrected_at_c) == (-0.002, None)
        assert rows(await browser.get("/devices/1/calibrate")) == [("25,5", "0,0"), ("65", "20,0")]
        browser.language = "en-US"
        await browser.post("/devices/1/calibrate", {"temp_offset": "1.8", "corrected_at": "68", "do": "save"})
        found = (await browser.services.devices.find(1)).settings.calibration
        assert (found.temp_offset, found.corrected_at_c, found.points) == (1.0, 20.0, ())


async def test_a_formula_stays_as_long_as_there_are_no_points(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        formula = CalibrationChange(curve=[-1.0, 0.5], curve_unit="P")
        await browser.services.devices.configure(1, formula.apply)
        assert "0.5*tilt" in (await browser.get("/devices/1/calibrate")).text
        await browser.post("/devices/1/calibrate", {"gravity_offset": "0.001", "do": "save"})
        found = (await browser.services.devices.find(1)).settings.calibration
        assert (found.curve, found.curve_unit, found.gravity_offset) == ((-1.0, 0.5), "P", 0.001)
        await browser.post("/devices/1/calibrate", {**POINTS, "do": "save"})
        assert (await browser.services.devices.find(1)).settings.calibration.curve_unit == "G"


async def test_a_device_without_a_tilt_gets_corrections_only(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        await send(browser.services, NOW, ID=8, name="Flat", angle=None)
        html = await browser.get("/devices/2/calibrate")
        assert "This device tells no tilt" in html.text
        assert rows(html) == []
        assert "It tells no tilt" in (await browser.get("/devices/2")).text
        await browser.post("/devices/2/calibrate", {"gravity_offset": "-0.002", "do": "save"})
        assert (await browser.services.devices.find(2)).settings.calibration.gravity_offset == -0.002


async def test_a_range_is_looked_at_left_out_and_taken_back(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        before = await stored(browser)
        span = {"first": "2026-03-04T08:50", "last": "2026-03-04T09:15"}
        html = await browser.post("/devices/1/exclude", {**span, "do": "preview"})
        assert "2 readings are in this range." in html.text
        assert await stored(browser) == before
        html = await browser.post("/devices/1/exclude", {**span, "do": "save"})
        assert "Left out: 4 Mar 08:50 to 4 Mar 09:15." in html.text
        await settled(browser)
        assert [sg is None for sg, _ in await stored(browser)] == [False, False, False, True, True, False]
        html = await browser.get("/devices/1")
        assert "2 readings" in html.text
        [form] = html.page.all("form", action="/ui/devices/1/include")
        given = {field.attributes["name"]: field.attributes["value"] for field in form.all("input")}
        await browser.post("/devices/1/include", {name: given[name] for name in ("first", "last")})
        await settled(browser)
        assert await stored(browser) == before
        assert "All readings count." in (await browser.get("/devices/1")).text
        await browser.post("/devices/1/include", {"first": "x"}, 400)


async def test_a_range_can_be_filled_in_by_an_address_and_be_wrong(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        first, last = int(NOW) - 2000, int(NOW) - 60
        html = await browser.get(f"/devices/1/exclude?from={first}&to={last}")
        assert "2 readings are in this range." in html.text
        await browser.get("/devices/1/exclude?from=2026-03-04T08:50")  # as the form beside the chart says it
        assert "This is no date and time." in (await browser.get("/devices/1/exclude?from=soon", 422)).text
        html = await browser.post("/devices/1/exclude", {"do": "save"}, 422)
        assert "Something is missing here." in html.text
        backwards = {"first": "2026-03-04T09:15", "last": "2026-03-04T08:50", "do": "save"}
        html = await browser.post("/devices/1/exclude", backwards, 422)
        assert "The range ends before it begins." in html.text
        html = await browser.post("/devices/1/exclude", {"first": "soon", "do": "preview"}, 422)
        assert "This is no date and time." in html.text
        await browser.post("/devices/1/exclude", {"first": "2026-03-04T09:15", "do": "save"})
        await settled(browser)
        assert "from 4 Mar 09:15 on" in (await browser.get("/devices/1")).text
