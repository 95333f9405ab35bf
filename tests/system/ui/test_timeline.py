"""The time line and the forms of one brew: written, changed, ended, begun anew."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession
from gateway.domain.payload import Payload
from gateway.services.brewsessions import SessionChange
from gateway.services.timeline import EventContent
from tests.cases import each
from tests.clock import FakeClock
from tests.system.ui.site import Browser, Element, logged_in, served

NOW = 1_772_616_600.0
AT = "2026-03-03T10:00"
HAND = {"at": AT, "gravity": "1,024", "gravity_unit": "SG", "temp": "19,0", "temp_unit": "C", "text": "tap"}


@asynccontextmanager
async def brewing(tmp_path: Path, **options: Any) -> AsyncIterator[Browser]:
    """A page with one brew, HP001."""
    async with served(tmp_path, clock=FakeClock(NOW), **options) as browser:
        await browser.services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
        yield browser


async def brew(browser: Browser, number: int = 1) -> BrewSession:
    session = await browser.services.store.sessions.get(number)
    assert session is not None
    return session


async def entries(browser: Browser) -> list[Element]:
    return (await browser.get("/brews/1/timeline")).page.all("li")


async def report(browser: Browser, *gravities: str) -> None:
    """Readings of a device, a quarter of an hour apart."""
    clock = browser.services.clock
    assert isinstance(clock, FakeClock)
    for gravity in gravities:
        clock.advance(900)
        body = f'{{"name": "Red", "ID": 7, "angle": 50.0, "temperature": 20.0, "gravity": {gravity}}}'
        await browser.services.intake.take(Payload(body.encode(), clock.now(), "http /ingest"))


@pytest.mark.parametrize("language", ["en", "de"])
async def test_every_form_opens_and_says_what_is_wrong(tmp_path: Path, language: str) -> None:
    async with brewing(tmp_path) as browser:
        browser.language = language
        await report(browser, "1.050")
        note = await browser.services.timeline.add(
            await brew(browser), EventContent("note", text="n"), "phone", ""
        )
        own = f"/brews/1/events/{note.id}"
        forms = ["note", "note?kind=dry_hop", "hand", "og", "done", "edit", "next", "events"]
        for path in ["/brews/new", own, f"{own}/delete", *(f"/brews/1/{form}" for form in forms)]:
            page = (await browser.get(path)).page
            assert page.one("html").attributes["lang"] == language
            assert page.one("h1").text
        for path, fields, name in (
            ("/brews/1/note", {"at": AT}, "text"),
            ("/brews/1/note", {"at": "yesterday", "text": "n"}, "at"),
            ("/brews/1/note", {"at": "2027-01-01T10:00", "text": "n"}, "at"),
            ("/brews/1/note", {"at": AT, "kind": "dry_hop"}, "text"),
            ("/brews/1/note", {"at": AT, "text": "x" * 2001}, "text"),
            ("/brews/1/hand", {"at": AT}, "gravity"),
            ("/brews/1/hand", {**HAND, "gravity": "thick"}, "gravity"),
            ("/brews/1/hand", {**HAND, "gravity": "99", "gravity_unit": "P"}, "gravity"),
            ("/brews/1/hand", {**HAND, "temp": "300"}, "temp"),
            ("/brews/1/og", {"og": "0.91", "og_unit": "SG"}, "og"),
            ("/brews/1/og", {"og": "x", "og_unit": "SG"}, "og"),
            ("/brews/1/edit", {"batchcode": "HP001"}, "phase"),
            ("/brews/1/edit", {"batchcode": "x" * 101, "phase": "p"}, "batchcode"),
            ("/brews/1/edit", {"batchcode": "HP001", "phase": "p", "userdate": "2026-13-01"}, "userdate"),
            ("/brews/new", {}, "batchcode"),
            ("/brews/new", {"batchcode": "B", "device": "9"}, "device"),
            ("/brews/new", {"batchcode": "B", "since": "x"}, "since"),
            ("/brews/1/next", {"batchcode": "B", "since": "99999999999"}, "since"),
            (own, {"at": AT}, "text"),
        ):
            page = (await browser.post(path, fields, 422)).page
            # The summary leads to the field, which says it again and keeps what was typed.
            assert [a.attributes["href"] for a in page.one(role="alert").all("a")] == [f"#field-{name}"]
            assert page.one(id=f"wrong-{name}").text == page.one(role="alert").one("a").text
            for given, value in fields.items():
                for field in page.all("input", name=given, type="text"):
                    assert field.attributes["value"] == value
        assert [event.kind for event in await browser.services.timeline.events(await brew(browser))] == [
            "note", "begun",
        ]  # fmt: skip
        assert len(await browser.services.store.sessions.all()) == 1


async def test_a_brew_is_written_down_in_the_browser(tmp_path: Path) -> None:
    async with brewing(tmp_path) as browser:
        html = await browser.post(
            "/brews/1/note", {"at": AT, "kind": "dry_hop", "text": "Citra", "amount": "50 g"}
        )
        assert "Written down: Dry hop." in html.text
        await browser.post("/brews/1/hand", HAND)
        begun, hand, hop = await entries(browser)
        assert hop.attributes["id"] == "event-2"
        assert "Dry hop Citra, 50 g 3 Mar" in hop.text.replace("2026", "")
        assert "1.024 SG, 19.0 °C, Hydrometer tap" in hand.text
        assert (len(hand.all("span", class_="ring")), begun.all("a")) == (1, [])
        [reading] = [
            event for event in await browser.services.timeline.events(await brew(browser)) if event.oid
        ]
        assert reading.facts["gravity"] == "1.024"
        form = (await browser.get("/brews/1/events/3")).page
        assert form.one(id="field-gravity").attributes["value"] == "1.024"
        moment = form.one(id="field-at").attributes["value"]
        await browser.post("/brews/1/events/3", {**HAND, "at": moment, "gravity": "1.022"})
        assert "1.022 SG" in (await entries(browser))[1].text
        question = (await browser.get("/brews/1/events/3/delete")).text
        assert "Delete this entry of HP001: Hand reading" in question
        assert "stays there" not in question
        assert "Deleted: Hand reading." in (await browser.post("/brews/1/events/3/delete")).text
        assert len(await entries(browser)) == 2
        await browser.get("/brews/1/events/3", 404)
        await browser.get("/brews/1/events/1", 404)


async def test_a_reading_by_hand_of_now_is_newer_than_one_of_the_same_minute(tmp_path: Path) -> None:
    async with brewing(tmp_path) as browser:
        assert isinstance(browser.services.clock, FakeClock)
        browser.services.clock.advance(42)
        form = (await browser.get("/brews/1/hand")).page
        given = {name: form.one("input", name=name).attributes["value"] for name in ("at", "opened")}
        browser.services.clock.advance(300)
        for opened, at in (
            (given["opened"], NOW + 42),
            ("x", NOW),
            (str(int(NOW) + 90), NOW),
            ("9" * 13, NOW),
        ):
            await browser.post("/brews/1/hand", {**HAND, **given, "opened": opened})
            events = await browser.services.timeline.events(await brew(browser))
            assert events[0].at == at, opened
            await browser.post(f"/brews/1/events/{events[0].id}/delete")


async def test_a_reading_that_was_sent_offers_two_ways_to_correct_it(tmp_path: Path) -> None:
    async with brewing(tmp_path) as browser:
        store = browser.services.store
        await browser.services.targets.add_with_key("club", "http://127.0.0.1:9", "key")
        await browser.services.targets.map(await brew(browser), "club", 7)
        await browser.post("/brews/1/hand", HAND)
        batch = await store.outbox.begin("http://127.0.0.1:9", 1, 10)
        assert batch is not None
        await store.outbox.settle(batch)
        form = (await browser.get("/brews/1/events/2")).page
        assert "It was sent already." in form.text
        assert [button.attributes["value"] for button in form.all("button", name="send")] == ["here", "again"]
        moment = form.one(id="field-at").attributes["value"]
        wrong = {**HAND, "at": moment, "gravity": "1.030"}
        page = (await browser.post("/brews/1/events/2", wrong, 422)).page
        assert "choose one of the two buttons" in page.one(role="alert").text
        await browser.post("/brews/1/events/2", {**wrong, "send": "here"})
        [delivery] = await store.deliveries.counts(1)
        assert (delivery.pending, delivery.edited) == (0, 1)
        html = await browser.post("/brews/1/events/2", {**wrong, "gravity": "1.031", "send": "again"})
        assert "on its way once more" in html.text
        [delivery] = await store.deliveries.counts(1)
        assert (delivery.pending, delivery.edited) == (1, 0)
        batch = await store.outbox.begin("http://127.0.0.1:9", 1, 10)
        assert batch is not None
        await store.outbox.settle(batch)
        assert "stays there" in (await browser.get("/brews/1/events/2/delete")).text


async def test_og_phase_and_the_end_are_forms(tmp_path: Path) -> None:
    async with brewing(tmp_path) as browser:
        await browser.post("/brews/1/og", {"og": "1062", "og_unit": "SG"})
        assert ((await brew(browser)).og, (await brew(browser)).og_unit) == ("1.062", "G")
        assert (await browser.get("/brews/1/og")).page.one(id="field-og").attributes["value"] == "1.062"
        await browser.post("/brews/1/og", {"og": "", "og_unit": "P"})
        assert (await brew(browser)).og is None
        edited = {"batchcode": "HP002", "phase": "Lagern", "userdate": "2026-03-01", "notes": "a\nb"}
        await browser.post("/brews/1/edit", {**edited, "send_notes": "1"})
        session = await brew(browser)
        assert (session.batchcode, session.phase, session.send_notes) == ("HP002", "Lagern", True)
        assert (
            "HP002 goes on. The question comes again"
            in (await browser.post("/brews/1/done", {"answer": "not_yet"})).text
        )
        session = await brew(browser)
        assert (session.ended_at, session.may_be_asked(NOW)) == (None, False)
        await browser.post("/brews/1/done", {"answer": "yes", "phase": "Bottled"})
        assert ((await brew(browser)).phase, (await brew(browser)).ended_at) == ("Bottled", int(NOW))
        assert "HP002 is done" in (await browser.get("/brews/1/done")).page.one("h1").text
        await browser.post("/brews/1/done", {"answer": "back"})
        assert ((await brew(browser)).phase, (await brew(browser)).ended_at) == ("Lagern", None)
        await browser.post("/brews/1/done")
        assert (await brew(browser)).phase == "Conditioning"


async def test_the_moment_of_the_next_beer_is_chosen_among_the_last_readings(tmp_path: Path) -> None:
    async with brewing(tmp_path) as browser:
        await report(browser, *["1.012"] * 11, "1.050", "1.049")
        await browser.services.brewsessions.assign("Red", 1, 0)
        page = (await browser.get("/brews/1/next")).page
        choices = page.all("input", name="since")
        assert len(choices) == 13
        [chosen] = [choice for choice in choices if "checked" in choice.attributes]
        assert chosen.attributes["value"] == str(int(NOW) + 12 * 900)
        assert page.text.count("this looks like the new beer") == 1
        since = chosen.attributes["value"]
        html = await browser.post("/brews/1/next", {"batchcode": "HP002", "since": since, "phase": ""})
        assert "HP002 has begun, HP001 is done." in html.text
        counts = [part.readings for part in await browser.services.store.devices.parts(1)]
        assert counts == [11, 2]
        assert (await brew(browser)).ended_at == int(since)


async def test_a_new_brew_takes_recipe_device_and_readings(tmp_path: Path) -> None:
    async with brewing(tmp_path) as browser:
        await report(browser, "1.050", "1.049")
        page = (await browser.get("/brews/new?device=1")).page
        [_, red] = page.one(id="field-device").all("option")
        assert (red.text, "selected" in red.attributes) == ("Red", True)
        fields = {"batchcode": "HP002", "userdate": "2026-03-01", "device": "1", "since": "2026-01-01T00:00"}
        await browser.post("/brews/new", fields)
        session = await brew(browser, 2)
        assert (session.batchcode, session.userdate) == ("HP002", "2026-03-01")
        assert [part.readings for part in await browser.services.store.devices.parts(1)] == [2]
        await browser.post("/brews/new", {"recipe": "9"}, 404)


async def test_a_long_time_line_has_pages(tmp_path: Path) -> None:
    async with brewing(tmp_path) as browser:
        session = await brew(browser)
        for number in range(120):
            content = EventContent("note", text=f"no. {number}", at=NOW - number)
            await browser.services.timeline.add(session, content, "phone", "")
        part = (await browser.get("/brews/1/timeline")).page
        assert (len(part.all("li")), part.all("a")[-1].text) == (20, "All 121 entries")
        first, second = [(await browser.get(f"/brews/1/events{query}")).page for query in ("", "?page=2")]
        assert (len(first.all("li")), len(second.all("li"))) == (100, 21)
        assert "Older entries" in first.text
        assert "Newer entries" in second.text


@each("scopes, account", [({"read"}, None), ({"admin", "read"}, "anna")])
async def test_who_may_not_change_sees_no_buttons_and_is_refused(
    tmp_path_factory: pytest.TempPathFactory, scopes: set[Any], account: str | None
) -> None:
    tmp_path = tmp_path_factory.mktemp("page")
    async with served(tmp_path, clock=FakeClock(NOW)) as browser:
        await browser.services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
        await browser.post("/brews/1/note", {"at": AT, "text": "mine"})
        if account:
            await browser.services.access.add_account(account)
        browser.client.session.cookie_jar.clear()
        browser.cookie = await logged_in(browser.services, frozenset(scopes), account)
        status = 404 if account else 403
        if not account:
            page = (await browser.get("/brews/1/timeline")).page
            assert (len(page.all("li")), page.all("a")) == (2, [])
        for path in ("note", "hand", "og", "done", "edit", "next", "events/2", "events/2/delete"):
            await browser.get(f"/brews/1/{path}", status)
            await browser.post(f"/brews/1/{path}", {"at": AT, "text": "n", "gravity": "1.02"}, status)
        await browser.post("/brews/1/events/2/delete", {}, status)
        session = await brew(browser)
        assert len(await browser.services.timeline.events(session)) == 2
        assert session.ended_at is None
