"""The comparison of brews by days since their beginnings."""

from pathlib import Path

from tests.system.ui.site import served
from tests.system.ui.test_brews import FALL, READ, new_brew, take


async def test_with_less_than_two_brews_it_says_what_to_choose(tmp_path: Path) -> None:
    async with served(tmp_path, READ) as browser:
        assert "There is no brew to compare yet." in (await browser.get("/compare")).text
        one = await new_brew(browser)
        await new_brew(browser, "Lantern Quay")
        html = await browser.get("/compare")
        assert "Choose two to six brews." in html.text
        assert len(html.page.one("select").all("option")) == 2
        html = await browser.get(f"/compare?id={one.id}")
        assert "Choose another brew" in html.text
        assert [option.text for option in html.page.one("select").all("option")] == ["LQ001 Lantern Quay"]
        browser.language = "de"
        assert "Sude vergleichen" in (await browser.get("/compare")).text


async def test_two_brews_are_drawn_and_told_in_a_table(tmp_path: Path) -> None:
    async with served(tmp_path, READ) as browser:
        one, two = await new_brew(browser), await new_brew(browser, "Lantern Quay")
        for session in (one, two):
            await take(browser, session, FALL)
        path = f"/compare?id={one.id}&id={two.id}"
        html = await browser.get(path)
        card = html.page.one(class_="card")
        assert [len(card.all("svg", class_=size)) for size in ("small", "large")] == [2, 2]
        assert "day 3" in card.text
        rows = html.page.one("tbody").all("tr")
        assert [row.all("a")[0].text for row in rows] == ["HP001 Harbour Porter", "LQ001 Lantern Quay"]
        assert "1.062* 1.012 SG 6.6 % 81 %" in rows[0].text
        removed = await browser.get(rows[0].all("a")[1].attributes["href"])
        assert "Choose another brew" in removed.text
        (kind,) = (link for link in html.page.all("a") if link.text == "Attenuation")
        other = await browser.get(kind.attributes["href"])
        assert "Attenuation" in other.page.one(class_="card").text
        assert [each.text for each in other.page.all("a", **{"aria-current": "true"})] == [
            "Attenuation",
            "All days",
        ]
        (week,) = (link for link in html.page.all("a") if link.text == "First 7 days")
        first = (await browser.get(week.attributes["href"])).page.one(class_="card").text
        assert ("day 9" in card.text, "day 9" in first) == (True, False)
        assert (await browser.get(path)).raw.count("<path") == html.raw.count("<path")


async def test_what_is_no_brew_of_the_viewer_is_left_out(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        brews = [await new_brew(browser) for _ in range(8)]
        asked = "&".join(f"id={number}" for number in (999, "x", *(brew.id for brew in brews), brews[0].id))
        html = await browser.get(f"/compare?{asked}")
        assert len(html.page.one("tbody").all("tr")) == 6
        assert html.page.all("select") == []
        await browser.services.access.add_account("friend")
    async with served(tmp_path, account="friend") as browser:
        html = await browser.get(f"/compare?{asked}")
        assert html.page.all("tbody") == []
