"""What a fermentation does, on the page of its brew and on its card."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import exp
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway.services.brewsessions import SessionChange
from gateway.ui.fermentation import part_of_day, until
from gateway.ui.words import Words
from tests.system.api.library import content
from tests.system.ui.site import served
from tests.system.ui.test_brews import DAY, HOUR, new_brew, report, take


def falling(
    days: float, end: float = 1.012, middle_h: float = 50, per_hour: float = 0.08
) -> list[tuple[float, float]]:
    """A beer that was pitched so many days ago, from 1.050 on: ages in seconds, and gravities."""
    hours = int(days * 24)
    return [
        ((hours - hour) * HOUR + 60, round(end + (1.05 - end) / (1 + exp(per_hour * (hour - middle_h))), 4))
        for hour in range(hours + 1)
    ]


CASES: list[tuple[str, Sequence[tuple[float, float]], str, str]] = [
    ("active", falling(2.6), "Fermenting", "Gärt"),
    ("finished", falling(9), "Fermented out", "Ausgegoren"),
    ("stuck", falling(9, end=1.032), "Stuck", "Steckt fest"),
]


@pytest.mark.parametrize(
    ("values", "english", "german"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
async def test_the_phase_is_shown_in_the_words_of_brewers(
    tmp_path: Path, values: Sequence[tuple[float, float]], english: str, german: str
) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, values)
        for path in (f"/brews/{session.id}/figures", "/cards"):
            states = [each.text for each in (await browser.get(path)).page.all(class_="state")]
            assert english in states
        browser.language = "de"
        states = [each.text for each in (await browser.get("/cards")).page.all(class_="state")]
        assert german in states


async def test_the_end_is_between_two_parts_of_days_and_never_exact(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, falling(3))
        text = (await browser.get(f"/brews/{session.id}/figures")).text
        assert "Fermenting" in text or "Slowing down" in text
        assert "Ends between " in text or "Ends by " in text
        ends = text[text.index("Ends") :].partition(".")[0]
        assert ":" not in ends
        assert any(part in ends for part in ("morning", "noon", "afternoon", "evening", "night"))


async def test_it_says_why_the_end_is_not_known(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await take(browser, session, falling(1.5, middle_h=60, per_hour=0.06))
        text = (await browser.get(f"/brews/{session.id}/figures")).text
        assert "When it ends is not yet known: too little is fermented yet." in text


async def test_a_stuck_beer_and_one_that_ended_high_have_a_hint(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        stuck, high = await new_brew(browser), await new_brew(browser, "High")
        await take(browser, stuck, falling(9, end=1.032))
        await take(browser, high, falling(9, end=1.018))
        text = (await browser.get(f"/brews/{stuck.id}/figures")).text
        assert "Stuck? Gravity has been at 1.032 SG for" in text
        assert "Done?" not in text
        text = (await browser.get(f"/brews/{high.id}/figures")).text
        assert "It ended high: the recipe expects 1.013 SG." in text
        assert "Done? Gravity has been at 1.018 SG" in text


async def test_the_smoothed_gravity_is_told_apart_from_the_last_reading(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        values = falling(9)
        await take(browser, session, [*values[:-1], (60, 1.016)])
        html = await browser.get(f"/brews/{session.id}/figures")
        assert html.page.all(class_="value")[0].text == "1.016 SG"
        assert "follow the smoothed gravity, now 1.012 SG." in html.text


async def test_an_original_gravity_of_the_recipe_is_marked_as_an_estimate(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await browser.services.library.add(1, content("Porter", og="1.052"))
        session = await browser.services.brewsessions.add_session(1, SessionChange(recipe_id=recipe.id))
        await take(browser, session, [(60, 1.05)])
        text = (await browser.get(f"/brews/{session.id}/figures")).text
        assert "OG 1.052* estimated" in text
        assert "OG: estimated, as the recipe expects it." in text


async def test_a_rise_is_asked_about_and_the_answer_can_be_taken_back(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        sweet = [(age, sg + (0.006 if age < 30 * HOUR else 0)) for age, sg in falling(7)]
        await take(browser, session, sweet)
        path = f"/brews/{session.id}"
        question = "Did you add sugar?"
        assert question in (await browser.get(f"{path}/figures")).text
        assert question in (await browser.get("/cards")).text
        before = await browser.services.figures.of(session)
        assert "The alcohol counts it" in (await browser.post(f"{path}/sugar", {"answer": "yes"})).text
        assert question not in (await browser.get(f"{path}/figures")).text
        after = await browser.services.figures.of(session)
        assert before.abv is not None
        assert after.abv == pytest.approx(before.abv + 0.79, abs=0.1)
        (event,) = [
            each for each in await browser.services.timeline.events(session) if each.kind == "addition"
        ]
        assert "Sugar" in (await browser.get(path)).text
        await browser.post(f"{path}/events/{event.id}/delete")
        again = await browser.services.figures.of(session)
        assert (again.abv, again.insight.rise) == (before.abv, before.insight.rise)
        assert "Noted: no sugar." in (await browser.post(f"{path}/sugar", {"answer": "no"})).text
        assert (await browser.services.figures.of(session)).abv == before.abv
        assert question not in (await browser.get(f"{path}/figures")).text
        await browser.post(f"{path}/sugar", {"answer": "yes"})  # nothing is asked any more
        assert (await browser.services.figures.of(session)).abv == before.abv


async def test_of_two_devices_one_may_be_chosen(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session, services = await new_brew(browser), browser.services
        path = f"/brews/{session.id}/edit"
        for name in ("Left", "Right"):
            await report(browser, name, 1.05, 5 * HOUR)
            assert 'id="field-lead"' not in (await browser.get(path)).raw
            await services.brewsessions.assign(name, session.id, 1)
        options = (await browser.get(path)).page.one("select", id="field-lead").all("option")
        assert [each.text for each in options] == ["the device that reports most", "Left", "Right"]
        edited = {"batchcode": "HP001", "phase": "x", "userdate": "2026-03-01", "notes": ""}
        await browser.post(path, {**edited, "lead": options[2].attributes["value"]})
        found = await services.store.sessions.get(session.id)
        assert found is not None
        assert str(found.lead_device) == options[2].attributes["value"]
        await browser.post(path, edited)  # a form without the choice changes nothing
        after = await services.store.sessions.get(session.id)
        assert after is not None
        assert after == replace(found, updated_at=after.updated_at)
        await browser.post(path, {**edited, "lead": "0"})
        found = await services.store.sessions.get(session.id)
        assert found is not None
        assert found.lead_device is None


def test_a_time_is_told_by_the_part_of_its_day() -> None:
    now = datetime(2026, 3, 3, 12, tzinfo=UTC).timestamp()  # a Tuesday
    words = Words("en", "SG", "C", ZoneInfo("UTC"), now)

    def named(day: int, hour: int) -> str:
        return part_of_day(datetime(2026, 3, day, hour, tzinfo=UTC).timestamp(), words, now)

    assert [named(4, hour) for hour in (0, 5, 6, 10, 13, 14, 18, 21, 22)] == [
        "Tue night", "Tue night", "Wed morning", "Wed noon", "Wed noon", "Wed afternoon", "Wed evening",
        "Wed evening", "Wed night",
    ]  # fmt: skip
    assert named(12, 9).replace("\N{NO-BREAK SPACE}", " ") == "12 Mar"
    hour = 3600
    assert (
        until(int(now) + 10 * hour, int(now) + 47 * hour, words, now)
        == "Ends between Tue night and Thu noon."
    )
    assert until(int(now) - 1, int(now) + 47 * hour, words, now) == "Ends by Thu noon."
    assert until(int(now) + 46 * hour, int(now) + 47 * hour, words, now) == "Ends about Thu noon."
    assert 24 * hour == DAY
