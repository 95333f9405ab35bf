"""The first page: brews that run, devices in no brew, finished brews, and what it says without any."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession
from gateway.domain.key import Scope
from gateway.domain.payload import Payload
from gateway.domain.times import iso
from gateway.samples import brewery
from gateway.samples.brewery import Filled
from gateway.services.brewsessions import SessionChange
from tests.system.api.library import content
from tests.system.ui.site import Browser, Element, served

HOUR, DAY = 3600, 86_400
READ: frozenset[Scope] = frozenset({"read"})


async def new_brew(browser: Browser, title: str = "Harbour Porter", **said: Any) -> BrewSession:
    services = browser.services
    recipe = await services.library.add(1, content(title, fg="1.013"))
    return await services.brewsessions.add_session(1, SessionChange(recipe_id=recipe.id, **said))


async def take(browser: Browser, session: BrewSession, values: Sequence[tuple[float, float]]) -> None:
    """Readings so many seconds ago."""
    now = browser.services.clock.now()
    rows = [
        {"created_at": iso(int(now - ago)), "gravity": sg, "temp": "20", "temp_unit": "C"}
        for ago, sg in values
    ]
    await browser.services.importing.run(session, json.dumps(rows).encode(), "json", "", False)


async def report(browser: Browser, name: str, gravity: float, ago: float = 60) -> None:
    body = {"name": name, "ID": abs(hash(name)) % 1000, "angle": 45.0, "temperature": 20.0, "temp_units": "C"}
    raw = json.dumps(body | {"gravity": gravity, "interval": 900}).encode()
    await browser.services.intake.take(Payload(raw, browser.services.clock.now() - ago, "http /ingest"))


def facts_of(part: Element) -> dict[str, str]:
    """The small figures of a part by their names."""
    names, values = ([each.text for each in part.all(tag)] for tag in ("dt", "dd"))
    return dict(zip(names, values, strict=True))


FALL = [(9 * DAY - hour * HOUR, 1.062 if hour < 13 else 1.012) for hour in range(9 * 24)]
"""A brew that fell at once and has not moved for days."""


async def test_with_nothing_it_says_what_to_do(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        html = await browser.get("/")
        assert html.page.one("h1").text == "Brews"
        assert "Add your first device" in html.text
        assert "Look at a made-up brewery" in html.text
        browser.language = "de"
        assert "Erstes Gerät hinzufügen" in (await browser.get("/")).text
    async with served(tmp_path, READ) as browser:
        html = await browser.get("/")
        assert html.page.all("form", action="/ui/samples") == []
        await browser.post("/samples", {}, 403)


async def test_a_made_up_brewery_is_one_tap_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)

        async def fill(services: object, account_id: int, progress: object) -> Filled:
            return Filled(recipes=1, sessions=13, readings=1, photos=0, running=session.id, recipe=1)

        with monkeypatch.context() as patched:
            patched.setattr(brewery, "fill", fill)
            assert "Here are 13 made-up brews." in (await browser.post("/samples")).text
        html = await browser.post("/samples")
        assert "a made-up brewery needs an empty account" in html.text


async def test_a_card_has_the_figures_and_asks_whether_it_is_done(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL)
        html = await browser.get("/")
        card = html.page.one("article", class_="card")
        assert card.one("h2").text == "HP001 Harbour Porter"
        assert [each.text for each in card.all(class_="value")] == ["1.012 SG", "20.0 °C"]
        assert facts_of(card) == {"ABV": "6.6 %", "Attenuation": "81 %", "Change": "0.000 /day"}
        assert "day 10" in card.text
        assert "Done? Gravity has been at 1.012 SG for 8 days" in card.text
        actions = {form.attributes["action"] for form in card.all("form")}
        assert actions == {f"/ui/brews/{session.id}/done"}
        assert card.one(class_="spark").all("title")[0].text == "Gravity of the last days"
        assert html.page.all("title")[0].text == "1.012 HP001 · Brews"
        browser.language = "de"
        card = (await browser.get("/")).page.one("article", class_="card")
        assert [each.text for each in card.all(class_="value")] == ["3,1 °P", "20,0 °C"]
        assert "Fertig? Der Restextrakt bleibt schon 8 Tage" in card.text
        answered = await browser.post(f"/brews/{session.id}/done", {"answer": "not_yet"})
        assert "Fertig? Der Restextrakt" not in answered.text
        assert "Fertig?" not in (await browser.get("/cards")).text


async def test_old_values_are_grey_and_never_hidden(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await report(browser, "iSpindel1", 1.05, 5 * HOUR)
        await browser.services.brewsessions.assign("iSpindel1", session.id, 1)
        card = (await browser.get("/")).page.one("article", class_="card")
        assert len(card.all(class_="old")) == 2
        assert "5 h ago" in card.text
        await report(browser, "iSpindel1", 1.049)
        assert (await browser.get("/")).page.one("article", class_="card").all(class_="old") == []


async def test_a_brew_without_a_reading_says_what_is_missing(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        assert "no device is in this brew" in (await browser.get("/")).text
        await report(browser, "iSpindel1", 1.05)
        await browser.services.brewsessions.assign("iSpindel1", session.id, None)
        assert "iSpindel1 has not reported since" in (await browser.get("/")).text


async def test_a_device_in_no_brew_is_put_into_one(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await report(browser, "Tilt BLUE", 1.048)
        assert "Which beer is in it?" in (await browser.get("/")).text
        assert "Tilt BLUE" in (await browser.get("/free")).text
        session = await new_brew(browser)
        html = await browser.get("/")
        assert "1 device in no brew" in html.text
        fields = {"device": 1, "brew": session.id, "since": "nonsense"}
        wrong = await browser.post("/use", fields, 422)
        assert "This is no date and time." in wrong.text
        done = await browser.post("/use", {**fields, "since": "2020-01-01T00:00"})
        assert "Tilt BLUE is in HP001 Harbour Porter now. 1 reading came along." in done.text
        assert "in no brew" not in (await browser.get("/")).text
        for other, status in (({"device": 1, "brew": 99}, 404), ({"device": 9, "brew": session.id}, 404)):
            await browser.post("/use", other, status)
        await browser.post("/use", {"device": 1}, 422)


async def test_finished_brews_are_a_table_with_a_search(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        services = browser.services
        for number in range(22):
            session = await services.brewsessions.add_session(1, SessionChange(batchcode=f"B{number:02d}"))
            await services.store.sessions.update(replace(session, ended_at=1_700_000_000 + number))
        porter = await new_brew(browser)
        await take(browser, porter, FALL)
        await services.store.sessions.update(replace(porter, ended_at=1_800_000_000))
        html = await browser.get("/")
        assert "23 finished" in html.text
        rows = html.page.one("tbody").all("tr")
        assert len(rows) == 20
        assert rows[0].text.startswith("HP001 Harbour Porter 1.062 1.012 6.6 %")
        (older,) = (link for link in html.page.all("a") if link.text == "Older")
        assert len((await browser.get(older.attributes["href"])).page.one("tbody").all("tr")) == 3
        assert len((await browser.get("/?page=999")).page.one("tbody").all("tr")) == 3
        found = await browser.get("/?q=PORT")
        assert [row.one("a").text for row in found.page.one("tbody").all("tr")] == ["HP001"]
        nothing = await browser.get("/?q=%3Cb%3E")
        assert "No finished brew has “<b>” in its name." in nothing.text


async def test_another_account_sees_its_own_brews_and_no_devices(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await new_brew(browser)
        await report(browser, "Tilt BLUE", 1.048)
        await browser.services.access.add_account("friend")
    async with served(tmp_path, account="friend") as browser:
        html = await browser.get("/")
        assert "HP001" not in html.text
        assert "Tilt" not in html.text
        await browser.post("/use", {"device": 1, "brew": 1}, 403)


async def test_who_may_look_sees_no_forms(tmp_path: Path) -> None:
    async with served(tmp_path, READ) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL)
        await report(browser, "Tilt BLUE", 1.048)
        html = await browser.get("/")
        assert [form.attributes["action"] for form in html.page.one("main").all("form")] == []
        await browser.post("/use", {"device": 1, "brew": session.id}, 403)
