"""The page of one brew: figures, chart, who reports, what was sent on, and what is missing."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.services.timeline import EventContent
from gateway.ui import charts
from gateway.ui.kept import CHARACTERS, PARTS, KeptParts
from tests.system.ui.site import served
from tests.system.ui.test_brews import FALL, HOUR, READ, facts_of, new_brew, report, take


async def test_the_page_shows_figures_chart_and_their_origin(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser, notes="Half the Galaxy")
        await take(browser, session, FALL)
        html = await browser.get(f"/brews/{session.id}")
        assert html.page.all("title")[0].text == "1.012 · HP001 Harbour Porter"
        figures = html.page.one("section", **{"data-src": f"/ui/brews/{session.id}/figures"})
        assert figures.attributes["data-live"] == f"brew:{session.id}"
        assert facts_of(figures) == {
            "OG": "1.062*", "ABV": "6.6 %", "Attenuation": "81 %", "Change": "0.000 /day",
            "FG expected": "1.013 SG", "Age": "day 10",
        }  # fmt: skip
        assert "OG: median of the first readings." in figures.text
        assert "Done? Gravity has been at 1.012 SG" in figures.text
        chart = html.page.one("section", **{"data-src": f"/ui/brews/{session.id}/chart"})
        assert [len(chart.all("svg", class_=size)) for size in ("small", "large")] == [1, 1]
        assert "Gravity fell from 1.062 to 1.012 SG" in chart.text
        assert len(chart.one("tbody").all("tr")) <= 60
        assert "Half the Galaxy" in html.text
        browser.language = "de"
        assert "Stammwürze" in (await browser.get(f"/brews/{session.id}")).text


async def test_an_original_gravity_by_hand_is_named_so(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL)
        await browser.services.store.sessions.update(replace(session, og="1.065", og_unit="G"))
        page = await browser.get(f"/brews/{session.id}/figures")
        assert "OG 1.065 " in page.text
        assert "OG: by hand." in page.text


async def test_what_is_missing_is_said_with_the_next_step(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        path = f"/brews/{session.id}"
        html = await browser.get(path)
        assert "no device is in this brew" in html.text
        assert "Put a device into it" in html.text
        assert "The chart begins with the first reading." in html.text
        await report(browser, "Fermenter 2", 1.05)
        await browser.services.brewsessions.assign("Fermenter 2", session.id, None)
        assert "Fermenter 2 has not reported since" in (await browser.get(path)).text
        await browser.services.importing.run(session, b'[{"temp": 20}]', "json", "", False)
        assert "none with a gravity that counts" in (await browser.get(path)).text


async def test_who_reports_and_since_when_and_who_is_silent(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await report(browser, "Fermenter 2", 1.05, 5 * HOUR)
        await browser.services.brewsessions.assign("Fermenter 2", session.id, 1)
        html = await browser.get(f"/brews/{session.id}")
        assert "Fermenter 2 since" in html.text
        assert "Fermenter 2 has been silent for 5 hours" in html.text


async def test_a_reading_by_hand_is_the_gravity_and_marked(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL)
        typed = EventContent("hand_reading", gravity="1.009", temp="19.5")
        await browser.services.timeline.add(session, typed, "key", "")
        html = await browser.get(f"/brews/{session.id}/figures")
        assert [each.text for each in html.page.all(class_="value")] == ["1.009 SG", "19.5 °C"]
        assert len([each for each in html.page.all(class_="quiet") if each.text == "by hand"]) == 2


async def test_the_range_is_in_the_address(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL)
        path = f"/brews/{session.id}"

        async def current(query: str) -> list[str]:
            page = (await browser.get(f"{path}?{query}")).page
            return [each.text for each in page.all("a", **{"aria-current": "true"})]

        assert [await current(each) for each in ("", "range=3d", "range=all", "range=nonsense")] == [
            ["All"], ["3 d"], ["All"], ["All"],
        ]  # fmt: skip
        assert await current("from=2020-01-01T00:00&to=2020-01-02T00:00") == []
        html = await browser.get(f"{path}?from=2020-01-01T00:00&to=2020-01-02T00:00")
        assert "No readings in this range." in html.text
        points = [
            len(json.loads((await browser.get(f"{path}/series?{each}")).raw)["t"])
            for each in ("", "range=24h", "from=2020-01-01&to=2020-01-02T00:00:00.000Z")
        ]
        assert points == [216, 24, 0]


async def test_readings_left_out_are_shown_on_request(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        for hours in (3, 2, 1):
            await report(browser, "Fermenter 2", 1.05, hours * HOUR)
        await browser.services.brewsessions.assign("Fermenter 2", session.id, 1)
        path = f"/brews/{session.id}/chart"
        assert "left out" not in (await browser.get(path)).text
        (_, spike, _) = await browser.services.store.payloads.latest(1, 3)
        await browser.services.store.payloads.add_flag(spike.reading.oid, "gravity_spike")
        assert "Show 1 reading left out" in (await browser.get(path)).text
        html = await browser.get(f"{path}?left=1&smooth=1")
        assert "Hide 1 reading left out" in html.text
        assert "Show the line as measured" in html.text


async def test_what_was_sent_on_is_told_in_words(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL)
        path = f"/brews/{session.id}/sending"
        assert "Readings are kept here and sent nowhere." in (await browser.get(path)).text
        await browser.services.targets.add_with_key("service", "http://127.0.0.1:9", "key")
        assert "go nowhere" in (await browser.get(path)).text
        await browser.services.targets.map(session, "service", 12)
        assert "0 of 216 readings" in (await browser.get(path)).text


async def test_no_brew_of_another_account_and_none_that_is_not_there(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        for path in ("/brews/999", "/brews/999/figures", "/brews/999/chart", "/brews/999/series"):
            assert "There is no brew 999 here." in (await browser.get(path, 404)).text
        await browser.get("/brews/x", 404)
        await browser.services.access.add_account("friend")
    async with served(tmp_path, account="friend") as browser:
        for part in ("", "/figures", "/chart", "/series", "/sending", "/readings", "/export", "/import"):
            await browser.get(f"/brews/{session.id}{part}", 404)


async def test_who_may_look_sees_no_forms_of_change(tmp_path: Path) -> None:
    async with served(tmp_path, READ) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL)
        html = await browser.get(f"/brews/{session.id}")
        assert [f.attributes.get("method") for f in html.page.one("main").all("form")] == ["get"]
        assert "Set OG" not in html.text


async def test_a_chart_is_drawn_once_for_several_viewers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, draw = 0, charts.drawn

    def counted(*given: object, **more: object) -> object:
        nonlocal drawn
        drawn += 1
        return draw(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(charts, "drawn", counted)
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL)
        pages = [await browser.get(f"/brews/{session.id}/chart") for _ in range(3)]
        assert (drawn, len({page.raw for page in pages})) == (1, 1)
        browser.language = "de"
        await browser.get(f"/brews/{session.id}/chart")
        assert drawn == 2
        await take(browser, session, [(60, 1.011)])
        await browser.get(f"/brews/{session.id}/chart")
        assert drawn == 3


def test_kept_parts_are_bounded_in_number_and_size() -> None:
    parts = KeptParts()
    for number in range(PARTS + 1):
        parts.put(number, str(number), 10)
        parts.get(0)
    assert parts.get(0) == "0"  # it was used
    assert parts.get(1) is None
    parts.put("large", "x", CHARACTERS - 5)
    assert (parts.get("large"), parts.get(0)) == ("x", None)
    parts.put("too large", "x", CHARACTERS + 1)
    assert parts.get("too large") is None


async def test_the_page_of_a_long_brew_is_small(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, [(900 * n, 1.05 - n % 97 / 3000) for n in range(3000)])
        html = await browser.get(f"/brews/{session.id}")
        assert len(gzip.compress(html.raw.encode(), 6)) <= 25_000
