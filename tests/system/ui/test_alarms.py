"""Alarms on the page: their own page, the banner, cards, brew, device, chart, screen, and the buttons."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.alarm import RULES, Alarm, AlarmEvent
from gateway.domain.key import ALL_SCOPES
from gateway.domain.payload import Payload
from gateway.services.access import READ_ONLY
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from gateway.store.protocols.alarms import AlarmChange
from gateway.ui.words import LANGUAGES, Words
from tests.payloads import ispindel
from tests.system.ui.site import Browser, logged_in, served


async def fire(services: Services, rule: str, scope: str, subject: object, text: str, **more: Any) -> Alarm:
    """Let an alarm fire before the last reading of `brew`, as the notifier writes it."""
    at = int(services.clock.now()) - 5500
    alarm = Alarm(0, None, rule, scope, str(subject), "firing", at, at, text=text)  # type: ignore[arg-type]
    alarm = replace(alarm, **more)
    event = AlarmEvent(0, 0, at, "fired", text)
    (made,) = await services.alarms.apply(lambda _: [AlarmChange(alarm, event)])
    return made


async def brew(browser: Browser, account_id: int = 1, batchcode: str = "HP001") -> int:
    """A brew with three readings of one device; its id."""
    services = browser.services
    session = await services.brewsessions.add_session(account_id, SessionChange(batchcode=batchcode))
    now = services.clock.now()
    for n in range(3):
        body = ispindel(7, name="Fermenter 2", gravity=f"1.0{40 - n}")
        await services.intake.take(Payload(body.encode(), now - 7200 + n * 900, "http /ingest"))
    [device] = await services.store.devices.all()
    await services.brewsessions.assign(str(device.id), session.id, now - 9000)
    return session.id


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_rule_has_words(language: str) -> None:
    words = Words(language, "SG", "C")
    for rule, about in RULES.items():
        assert all(words.has(f"alarms.{kind}.{rule}") for kind in ("rule", "about", "usual")), rule
        for name in about.settings:
            assert words.has(f"alarms.field.{name}"), name
            assert name == "text" or words.has(f"alarms.limit.{name}"), name


async def test_what_fires_is_acknowledged_by_a_button(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        page = (await browser.get("/alarms")).page
        assert page.one(class_="menu").one("a", **{"aria-current": "page"}).text == "Alarms"
        assert "Nothing needs you" in page.text
        brew_id = await brew(browser)
        alarm = await fire(browser.services, "stuck", "brew", brew_id, "Stands at 1.024 for 2 days.")
        page = (await browser.get("/alarms")).page
        box = page.one("div", class_="box")
        assert box.one("span", class_="state").text == "Stuck"
        assert (box.one("a").text, box.one("a").attributes["href"]) == ("HP001", f"/ui/brews/{brew_id}")
        assert box.one("bdi", lang="en").text == "Stands at 1.024 for 2 days."
        assert [button.text for button in box.all("button")] == [
            "OK : Stuck",
            "1 hour",
            "8 hours",
            "Tomorrow 8:00",
        ]
        page = (await browser.post(f"/alarms/{alarm.id}/ack")).page
        assert page.one("p", class_="notice").text.startswith("OK. You are not reminded any more: Stuck")
        assert "You know of it" in page.text
        assert not page.one("div", class_="box").all("button")
        [now] = browser.services.alarms.firing()
        assert (now.state, now.acked_by) == ("acknowledged", "page:test 0")
        assert "Acknowledged by test 0" in page.text
        assert [each.text for each in page.one("ol", class_="rows").all("span", class_="state")] == [
            "Acknowledged",
            "Alarm",
        ]
        assert not page.all(class_="banner")
        await browser.post("/alarms/999/ack", status=404)


async def test_later_is_a_time_of_quiet(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        brew_id = await brew(browser)
        alarm = await fire(browser.services, "stuck", "brew", brew_id, "Stands.")
        page = (
            await browser.post(
                f"/alarms/{alarm.id}/later",
                {"until": "8h"},
                Referer=f"{browser.origin}/ui/brews/{brew_id}?range=3d",
            )
        ).page
        assert page.one("h1").text == "HP001", "back to the page that the button was on"
        assert "Quiet until" in page.one("p", class_="notice").text
        [now] = browser.services.alarms.firing()
        assert now.state == "snoozed"
        assert now.snoozed_until is not None
        assert 8 * 3600 - 60 < now.snoozed_until - browser.services.clock.now() <= 8 * 3600
        assert [button.text for button in page.one("div", class_="box").all("button")] == ["OK : Stuck"]
        await browser.post(f"/alarms/{alarm.id}/later", {"until": "never"}, 400)
        page = (await browser.post(f"/alarms/{alarm.id}/ack", Referer="https://evil.example/ui/x")).page
        assert page.one("h1").text == "Alarms"


async def test_the_banner_tells_the_worst_and_has_a_button(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        services, brew_id = browser.services, await brew(browser)
        await fire(services, "started", "brew", brew_id, "Gravity falls.")
        page = (await browser.get("/more")).page
        part = page.one("div", **{"data-src": "/ui/banner"})
        assert part.attributes["data-live"] == "alarm gateway"
        banner = part.one(class_="banner")
        assert "good" in banner.attributes["class"].split()
        assert banner.one("a").attributes["href"] == f"/ui/brews/{brew_id}"
        services.stats.say("upstream https://a", "no answer", well=False)
        assert "Readings wait" in (await browser.get("/banner")).text, "worse than what is only news"
        stuck = await fire(services, "stuck", "brew", brew_id, "Stands.")
        banner = (await browser.get("/banner")).page.one(class_="banner")
        assert banner.one("a").text == "Stuck Stands. (1 more)"
        assert banner.one("a").attributes["href"] == "/ui/alarms"
        assert banner.one("form").attributes["action"] == f"/ui/alarms/{stuck.id}/ack"
        services.stats.say("store", "the disk is full", well=False)
        assert "Nothing can be stored" in (await browser.get("/banner")).text
        services.stats.say("store", "open")
        browser.cookie = await logged_in(services, READ_ONLY)
        banner = (await browser.get("/banner")).page.one(class_="banner")
        assert not banner.all("form")
        browser.language = "de"
        assert (await browser.get("/banner")).page.one("b").text == "Gärung steht"


async def test_cards_brew_chart_time_line_and_screen_show_it(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        services, brew_id = browser.services, await brew(browser)
        await fire(services, "stuck", "brew", brew_id, "Stands at 1.024.")
        [device] = await services.store.devices.all()
        await fire(services, "battery", "device", device.id, "3.41 V.")
        for path in ("/cards", f"/brews/{brew_id}/figures"):
            part = await browser.get(path)
            assert [each.one(class_="state").text for each in part.page.all("div", class_="box")] == [
                "Stuck",
                "Battery low",
            ], path
        chart = await browser.get(f"/brews/{brew_id}/chart")
        assert "Alarm: Battery low, 3.41 V." in chart.text, "of a device that was in the brew then"
        mark = next(title for title in chart.page.all("title") if "Alarm: Stuck" in title.text)
        assert "Alarm: Stuck, Stands at 1.024." in mark.text
        link = next(a for a in chart.page.all("a") if a.attributes["href"].startswith("#alarm-"))
        line = (await browser.get(f"/brews/{brew_id}/timeline")).page
        entry = line.one("li", id=link.attributes["href"].removeprefix("#"))
        assert entry.one("b").text == "Alarm: Stuck"
        assert entry.one("div", lang="en").text == "Stands at 1.024."
        screen = (await browser.get("/tv")).page
        assert [each.text for each in screen.all("span", class_="warn")] == ["Stuck", "Battery low"]
        page = (await browser.get(f"/devices/{device.id}")).page
        assert page.one("div", class_="box").one(class_="state").text == "Battery low"
        assert not (await browser.get(f"/devices/{device.id}/now")).text.count("Stuck")


async def test_a_chart_is_drawn_anew_when_an_alarm_fires(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        brew_id = await brew(browser)
        assert "#alarm-" not in (await browser.get(f"/brews/{brew_id}/chart")).raw
        session = await browser.services.store.sessions.get(brew_id)
        assert session is not None
        token, _ = await browser.services.links.make(1, "picture", "wall", session)
        tag = (await browser.get(f"/picture/{token}.svg")).headers["Etag"]
        await fire(browser.services, "stuck", "brew", brew_id, "Stands.")
        assert "#alarm-" in (await browser.get(f"/brews/{brew_id}/chart")).raw
        picture = await browser.get(f"/picture/{token}.svg?w=801")
        assert "Alarm: Stuck" in picture.raw
        assert picture.headers["Etag"] != tag


async def test_done_asks_once_and_not_yet_answers(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        brew_id = await brew(browser)
        await fire(browser.services, "done", "brew", brew_id, "1.012 for 2 days 4 hours.")
        page = (await browser.get("/")).page
        box = page.one("article").one("div", class_="box")
        assert [button.text for button in box.all("button")][:2] == ["Yes, done", "Not yet"]
        action = box.all("form")[0].attributes["action"]
        page = (await browser.post(action, {"answer": "not_yet"})).page
        assert not page.all("div", class_="box")
        assert browser.services.alarms.firing()[0].state == "acknowledged"


async def test_a_rule_is_changed_for_all_a_brew_and_a_device(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        alarms, brew_id = browser.services.alarms, await brew(browser)
        page = (await browser.get("/alarms/rules/temperature")).page
        names = [option.attributes["value"] for option in page.one("select", name="for").all("option")]
        assert names == [f"brew:{brew_id}", "device:1"]
        await browser.post("/alarms/rules/temperature", {"state": "usual", "lo": "17,5", "hi": "22"})
        assert alarms.setting_of("temperature") == {"lo": 17.5, "hi": 22.0}
        path = f"/alarms/rules/temperature?for=brew:{brew_id}"
        assert (await browser.get(path)).page.one("h2").text == "HP001"
        await browser.post("/alarms/rules/temperature", {"subject": f"brew:{brew_id}", "state": "off"})
        assert alarms.setting_of("temperature", brew=brew_id) is None
        rules = await browser.get("/alarms")
        assert "from 17.5 °C, to 22 °C" in rules.text.replace("\u00a0", " ")
        assert "HP001: Off" in rules.text
        await browser.post("/alarms/rules/temperature", {"subject": "device:1", "state": "on"})
        assert alarms.setting_of("temperature", device=1) == {"off": False}
        await browser.post("/alarms/rules/temperature", {"subject": "device:1", "state": "usual"})
        assert alarms.setting_of("temperature", device=1) == {"lo": 17.5, "hi": 22.0}
        browser.language = "en-US"
        page = (await browser.get("/alarms/rules/temperature")).page
        assert page.one("input", name="lo").attributes["value"] == "63.5"
        await browser.post("/alarms/rules/temperature", {"lo": "50", "hi": "77"})
        assert alarms.setting_of("temperature") == {"lo": 10.0, "hi": 25.0}


async def test_wrong_limits_are_told_beside_their_fields(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        for rule, given, field in (
            ("temperature", {"lo": "22", "hi": "17"}, "hi"),
            ("temperature", {"hi": "99"}, "hi"),
            ("temperature", {"hi": "warm"}, "hi"),
            ("battery", {"volts": "0"}, "volts"),
            ("reached", {"text": "dry hops"}, "sg"),
            ("reached", {"sg": "1.5"}, "sg"),
            ("reached", {"sg": "1.02", "text": "\u202egnirts"}, "text"),
        ):
            page = (await browser.post(f"/alarms/rules/{rule}", given, 422)).page
            assert page.one(id=f"wrong-{field}").text, (rule, given)
            assert page.one(role="alert").all("a")[0].attributes["href"] == f"#field-{field}"
            assert page.one("input", name=field).attributes["value"] == given.get(field, "")
        assert browser.services.alarms.settings() == []
        for path in (
            "/alarms/rules/nothing",
            "/alarms/rules/stuck?for=brew:99",
            "/alarms/rules/stuck?for=device:1",
        ):
            await browser.get(path, 404)
        await browser.post("/alarms/rules/silent", {"subject": "device:99", "state": "off"}, 404)


async def test_an_account_sees_and_changes_its_own_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        services, mine = browser.services, await brew(browser)
        anna = await services.access.add_account("anna")
        hers = (await services.brewsessions.add_session(anna.id, SessionChange(batchcode="ANNA1"))).id
        await fire(services, "stuck", "brew", mine, "Mine stands.")
        other = await fire(services, "stuck", "brew", hers, "Hers stands.", account_id=anna.id)
        await fire(services, "keeper", "gateway", "disk", "The disk is full.")
        html = await browser.get("/alarms")
        assert ("Mine stands." in html.raw, "Hers stands." in html.raw) == (True, False)
        await browser.post(f"/alarms/{other.id}/ack", status=404)
        browser.cookie = await logged_in(services, ALL_SCOPES, "anna")
        html = await browser.get("/alarms")
        assert ("Mine stands." in html.raw, "Hers stands." in html.raw) == (False, True)
        assert "The disk is full" not in html.raw
        await browser.post("/alarms/rules/stuck", {"state": "off"}, 403)
        await browser.post("/alarms/rules/stuck", {"subject": f"brew:{mine}", "state": "off"}, 404)
        await browser.post("/alarms/rules/stuck", {"subject": f"brew:{hers}", "state": "off"})
        assert services.alarms.setting_of("stuck", brew=hers) is None
        await browser.post(f"/alarms/{other.id}/ack")


async def test_a_brew_without_limits_of_temperature_asks_for_them(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        brew_id = await brew(browser)
        path = f"/brews/{brew_id}/figures"
        link = (await browser.get(path)).page.one(
            "a", href=f"/ui/alarms/rules/temperature?for=brew%3A{brew_id}"
        )
        assert link.text == "Set a range"
        assert (await browser.get(link.attributes["href"])).page.one("h2").text == "HP001"
        await browser.services.alarms.set("temperature", {"lo": 17}, "brew", str(brew_id))
        assert "Set a range" not in (await browser.get(path)).text
