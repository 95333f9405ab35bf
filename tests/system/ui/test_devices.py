"""The pages of devices: the list, one device with all that can be changed, the inbox, and who may do it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.account import OWNER_ID
from gateway.domain.inbox import WaitingName, WaitReason
from gateway.domain.key import ALL_SCOPES, Scope
from gateway.domain.payload import Payload
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.system.ui.site import Browser, Html, logged_in, served

NOW = 1_772_616_600.0  # 2026-03-04T09:30:00Z
NASTY = '<img src=x onerror=alert(1)>"><script>alert(2)</script>{{7*7}}\u202ejavascript:'
READ: frozenset[Scope] = frozenset({"read"})


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's time zone, in which times are typed and shown."""
    monkeypatch.setattr("gateway.ui.viewer.machine_zone", lambda: UTC)


async def send(services: Services, at: float, *, source: str = "192.168.1.37", **members: Any) -> None:
    body = {"name": "Red", "ID": 7, "angle": 45.0, "temperature": 20.0, "temp_units": "C", "gravity": 12.5}
    body |= {"battery": 3.98, "RSSI": -66, "interval": 900, **members}
    payload = Payload(json.dumps(body).encode(), at, "http /ingest/ispindel", source=source)
    await services.intake.take(payload)


async def fill(services: Services, readings: int = 6) -> None:
    """The device 1, an iSpindel, with readings every 15 minutes up to now."""
    for number in range(readings):
        await send(services, NOW - 900 * (readings - 1 - number), angle=40.0 + number)


async def brew(services: Services, batchcode: str = "HP001", account_id: int = OWNER_ID) -> int:
    return (await services.brewsessions.add_session(account_id, SessionChange(batchcode=batchcode))).id


@asynccontextmanager
async def page(
    tmp_path: Path, scopes: frozenset[Scope] = ALL_SCOPES, readings: int = 6
) -> AsyncIterator[Browser]:
    """A site with the device 1, whose readings are read again in the background, as the gateway does it."""
    async with served(tmp_path, scopes, clock=FakeClock(NOW)) as browser:
        await fill(browser.services, readings)
        task = asyncio.create_task(browser.services.reprocessor.run())
        try:
            yield browser
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def settled(browser: Browser) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await browser.services.devices.find(1)).reprocessing:  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0.005)


async def stored(browser: Browser) -> list[tuple[float | None, float | None]]:
    found = await browser.services.devices.latest(1, 100)
    return [(each.reading.sg, each.reading.celsius) for each in found][::-1]


def as_text(html: Html) -> None:
    """Nothing of what a stranger sent became a part of the page."""
    assert html.page.all("img") == []
    assert [script.text for script in html.page.all("script") if script.text] == []
    assert "49" not in html.page.all("title")[0].text


async def test_no_device_leads_to_adding_one(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        html = await browser.get("/devices")
        assert "No device has reported. Add one." in html.text
        browser.language = "de"
        assert "Noch kein Gerät hat sich gemeldet." in (await browser.get("/devices")).text


async def test_the_list_has_values_state_and_brew(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        services = browser.services
        await send(services, NOW - 6 * 3600, ID=8, name="Silent")
        await send(services, NOW - 40 * 86_400, ID=9, name="Gone")
        number = await brew(services)
        await services.brewsessions.assign("1", number, 0)
        html = await browser.get("/devices")
        part = html.page.all("section")[0]
        assert part.attributes["data-live"] == "device reading"
        red, silent, gone = html.page.all("article")
        for text in ("Red", "iSpindel in HP001", "1.050 SG", "20.0 °C", "3.98 V", "−66 dBm", "as usual"):
            assert text in red.text.replace("\xa0", " ")
        assert "Silent for 6 hours" in silent.text
        assert "Gone" in gone.text
        assert "1 device not heard for 30 days" in html.text
        browser.language = "de"
        german = (await browser.get("/devices")).text.replace("\xa0", " ")
        assert "12,5 °P" in german
        assert "Meldet sich wie gewohnt" in german


async def test_a_device_shows_its_values_units_and_why(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        html = await browser.get("/devices/1")
        text = html.text.replace("\xa0", " ")
        for words in (
            "1.050 SG", "3.98 V", "−66 dBm", "45.0°", "every 15 minutes", "It is in no brew.",
            "Gravity: °P , because such numbers can only be Plato.",
            "Temperature: °C , because temp_units says C.", "Never calibrated.", "All readings count.",
            "6 readings from 192.168.1.37", "No brew is running.",
        ):  # fmt: skip
            assert words in text, words
        assert html.page.all("title")[0].text.startswith("1.050 SG · Red")
        assert len(html.page.all("svg", class_="chart")) == 2  # battery and signal
        assert '"battery": 3.98' in html.page.all("pre")[0].text
        assert html.page.all("article") == []
        await browser.get("/devices/99", 404)
        assert "There is no device 99 here." in (await browser.get("/devices/99", 404)).text
        browser.language = "de"
        german = (await browser.get("/devices/1")).text.replace("\xa0", " ")
        assert "weil solche Zahlen nur Plato sein können" in german
        await send(browser.services, NOW, ID=8, name="Blind", battery=None, RSSI=None)
        browser.language = "en"
        assert "This device does not tell its battery." in (await browser.get("/devices/2")).text


async def test_label_units_and_interval_are_changed(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        fields = {"label": "Fermenter 2", "gravity_unit": "G", "temp_unit": "auto"}
        html = await browser.post("/devices/1/settings", fields)
        assert html.page.one("h1").text == "Fermenter 2"
        assert "because you set it" in html.text
        await settled(browser)
        device = await browser.services.devices.find(1)
        assert (device.settings.gravity_unit, device.settings.interval_s) == ("G", None)
        html = await browser.post("/devices/1/settings", {**fields, "interval": "5"}, 422)
        assert "An interval is more than 10" in html.text
        html = await browser.post("/devices/1/settings", {**fields, "label": "x" * 65}, 422)
        assert html.page.one("input", name="label").attributes["value"] == "x" * 65
        await browser.post("/devices/1/settings", {**fields, "gravity_unit": "X"}, 400)
        await browser.post("/devices/1/settings", {**fields, "interval": "600"})
        assert (await browser.services.devices.find(1)).settings.interval_s == 600
        assert 'value="600"' in (await browser.get("/devices/1")).raw
        await browser.post("/devices/1/settings", {"label": "", "interval": ""})
        settings = (await browser.services.devices.find(1)).settings
        assert (settings.label, settings.interval_s, settings.gravity_unit) == ("", None, None)


async def test_a_device_is_put_into_a_brew_and_taken_out(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        number = await brew(browser.services)
        html = await browser.post("/devices/1/assign", {"brew": number, "since": "2026-03-04T09:00"})
        assert "It is in HP001 now, with 3 earlier readings." in html.text
        assert (await browser.services.devices.find(1)).session_id == number
        assert "Take it out" in html.text
        html = await browser.post("/devices/1/release")
        assert "It is in no brew now." in html.text
        html = await browser.post("/devices/1/assign", {"brew": 77}, 422)
        html = await browser.post("/devices/1/assign", {"brew": number, "since": "soon"}, 422)
        assert "This is no date and time." in html.text
        assert (await browser.services.devices.find(1)).session_id is None


async def test_readings_are_sent_again_and_addresses_bound(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        await browser.services.brewsessions.assign("1", await brew(browser.services), 0)
        html = await browser.post("/devices/1/resend", {"since": "2026-03-04"})
        assert "6 readings are sent again." in html.text
        await browser.post("/devices/1/resend", {"since": "soon"}, 422)
        await send(browser.services, NOW + 900, source="192.168.1.99", gravity=12.4)
        html = await browser.get("/devices/1")
        assert "Another address" in html.text
        assert "1 reading also from 192.168.1.99" in html.text
        html = await browser.post("/devices/1/bind", {"source": "192.168.1.37"})
        assert "It may report from 192.168.1.37 only." in html.text
        await send(browser.services, NOW + 1800, source="192.168.1.99", gravity=12.3)
        assert "1 reading waits for your word" in (await browser.get("/devices/1")).text
        html = await browser.get("/devices")
        assert "They came from an address that is not this device's." in html.text
        await browser.post("/devices/1/bind", {"source": ""})
        assert (await browser.services.devices.find(1)).settings.source == ""
        await browser.post("/devices/1/bind", {"source": "nowhere"}, 400)


async def test_a_waiting_device_is_accepted_refused_and_allowed_again(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        for number in (71, 72):
            body = {"name": NASTY, "ID": number, "angle": 30, "temperature": 20, "gravity": 1.05}
            payload = Payload(json.dumps(body).encode(), NOW, "http /ingest/ispindel", source="192.168.1.7")
            name = WaitingName(
                f"ispindel:{number}",
                "192.168.1.7",
                WaitReason.NEW,
                "ispindel",
                str(number),
                NASTY,
                readings=1,
            )
            await browser.services.store.inbox.add(payload, [name])
        html = await browser.get("/devices")
        as_text(html)
        assert html.text.count("It is a new device. Is it yours?") == 2
        html = await browser.post("/devices/waiting/1/accept")
        assert "Accepted; 1 reading is stored." in html.text
        assert len(await browser.services.store.devices.all()) == 2
        html = await browser.get("/devices/waiting/2/refuse")
        assert "For 30 days" in html.text
        html = await browser.post("/devices/waiting/2/refuse")
        assert "Refused; 1 reading was removed." in html.text
        html = await browser.post("/devices/refused/1/allow")
        assert "The refusal is taken back." in html.text
        await browser.post("/devices/refused/1/allow", {}, 404)
        await browser.post("/devices/waiting/2/accept", {}, 404)
        await browser.get("/devices/waiting/2/refuse", 404)


async def test_who_may_only_look_sees_no_buttons_and_is_refused(tmp_path: Path) -> None:
    async with page(tmp_path, READ) as browser:
        for path in ("/devices", "/devices/1"):
            html = await browser.get(path)
            actions = [form.attributes["action"] for form in html.page.one("main").all("form")]
            assert actions == []
        assert html.page.all("pre") == []  # bytes may hold a key
        for path in ("calibrate", "exclude", "uncalibrate"):
            await browser.get(f"/devices/1/{path}", 403)
        for path in (
            "settings", "assign", "release", "include", "uncalibrate", "resend", "bind", "calibrate",
            "exclude",
        ):  # fmt: skip
            await browser.post(f"/devices/1/{path}", {"label": "x", "source": ""}, 403)
        await browser.post("/devices/waiting/1/accept", {}, 403)
        assert (await browser.services.devices.find(1)).settings.label == ""


async def test_another_account_sees_only_the_devices_in_its_brews(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        services = browser.services
        await send(services, NOW, ID=8, name="Theirs")
        other = await services.access.add_account("other")
        browser.cookie = await logged_in(services, account="other")
        browser.client.session.cookie_jar.clear()
        assert "None of your brews has a device" in (await browser.get("/devices")).text
        await browser.get("/devices/2", 404)
        await services.brewsessions.assign("2", await brew(services, "TH001", other.id), None)
        html = await browser.get("/devices")
        assert "Theirs" in html.text
        assert "Red" not in html.text
        html = await browser.get("/devices/2")
        assert "192.168.1.37" not in html.text
        assert html.page.one("main").all("form") == []
        await browser.get("/devices/1", 404)
        await browser.post("/devices/2/settings", {"label": "mine"}, 403)


async def test_names_are_text_everywhere(tmp_path: Path) -> None:
    async with page(tmp_path) as browser:
        await send(browser.services, NOW, ID=8, name=NASTY, token=NASTY)
        await browser.services.devices.configure(1, lambda settings: replace(settings, label=NASTY[:40]))
        await browser.services.brewsessions.assign("1", await brew(browser.services, NASTY), 0)
        for path in (
            "/devices", "/devices/1", "/devices/2", "/devices/1/calibrate", "/devices/1/exclude",
            "/devices/1/uncalibrate",
        ):  # fmt: skip
            as_text(await browser.get(path))
