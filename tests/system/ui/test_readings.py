"""The readings of a brew: the table, the export, and the import of a file after a look at it."""

import json
from pathlib import Path

from tests.system.ui.site import served
from tests.system.ui.test_brews import FALL, HOUR, READ, new_brew, report, take


async def test_a_brew_without_readings_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        assert "This brew has no readings yet." in (await browser.get(f"/brews/{session.id}/readings")).text
        browser.language = "de"
        assert "noch keine Messungen" in (await browser.get(f"/brews/{session.id}/readings")).text


async def test_the_newest_readings_come_first_a_hundred_a_page(tmp_path: Path) -> None:
    async with served(tmp_path, READ) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL)
        path = f"/brews/{session.id}/readings"
        html = await browser.get(path)
        assert "216 readings" in html.text
        rows = [row.text for row in html.page.one("tbody").all("tr")]
        assert len(rows) == 100
        assert "1.012 SG 20.0 °C" in rows[0]
        (older,) = (link for link in html.page.all("a") if link.text == "Older")
        assert older.attributes["href"] == f"/ui{path}?page=2"
        last = await browser.get(f"{path}?page=3")
        assert len(last.page.one("tbody").all("tr")) == 16
        assert "1.062 SG" in last.page.one("tbody").all("tr")[-1].text
        assert len((await browser.get(f"{path}?range=24h")).page.one("tbody").all("tr")) == 25
        nothing = await browser.get(f"{path}?from=2020-01-01&to=2020-01-02")
        assert "No readings in this range." in nothing.text
        (everything,) = (link for link in nothing.page.all("a") if link.text == "Show all")
        assert everything.attributes["href"] == f"/ui{path}"
        assert not [link for link in html.page.all("a") if link.text == "Import a file"]


async def test_flags_and_what_was_sent_are_in_words(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        await report(browser, "Fermenter 2", 1.05, 2 * HOUR)
        await report(browser, "Fermenter 2", 1.05, HOUR)
        await browser.services.brewsessions.assign("Fermenter 2", session.id, 1)
        (latest, _) = await browser.services.store.payloads.latest(1, 2)
        await browser.services.store.payloads.add_flag(latest.reading.oid, "gravity_spike")
        path = f"/brews/{session.id}/readings"
        rows = (await browser.get(path)).page.one("tbody").all("tr")
        assert [row.attributes.get("class") for row in rows] == ["old", None]
        assert "Fermenter 2 a spike" in rows[0].text
        assert "Sent on" not in (await browser.get(path)).text
        await browser.services.targets.add_with_key("service", "http://127.0.0.1:9", "key")
        await browser.services.targets.map(session, "service", 12)
        assert (await browser.get(path)).page.one("tbody").all("tr")[1].text.endswith("waits")


async def test_the_export_is_what_an_import_takes_back(tmp_path: Path) -> None:
    async with served(tmp_path, READ) as browser:
        session = await new_brew(browser)
        await take(browser, session, FALL[:3])
        for media, kind in (("csv", "text/csv"), ("json", "application/json")):
            answer = await browser.get(f"/brews/{session.id}/export?format={media}")
            assert answer.headers["Content-Type"].startswith(kind)
            assert answer.headers["Content-Disposition"].endswith(f'brewsession-{session.id}.{media}"')
        assert len(json.loads(answer.raw)) == 3


CSV = "created_at,name,gravity,gravity_unit,temp,temp_unit\n" + "".join(
    f"2026-03-{day:02d}T12:00:00Z,iSpindel,1.0{60 - day},G,20,C\n" for day in range(1, 13)
)


async def test_a_file_is_imported_after_a_look_at_its_first_rows(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        path = f"/brews/{session.id}/import"
        assert "Import readings" in (await browser.get(path)).text
        looked = await browser.post(path, {"file": ("a.csv", CSV.encode(), "text/csv")})
        assert "12 readings from 1 Mar 2026 to 12 Mar 2026. Nothing is stored yet." in looked.text
        assert len(looked.page.one("tbody").all("tr")) == 10
        assert "and 2 more rows" in looked.text
        assert await browser.services.store.readings.count() == 0
        number = looked.page.one("input", name="number").attributes["value"]
        done = await browser.post(f"{path}/now", {"number": number})
        assert "12 readings imported." in done.text
        assert await browser.services.store.readings.count() == 12
        again = await browser.post(f"{path}/now", {"number": number}, 422)
        assert "Choose it again." in again.text


async def test_a_wrong_file_is_explained_and_stores_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        session = await new_brew(browser)
        path = f"/brews/{session.id}/import"
        for body, words in (
            (b'[{"gravity": "x"}]', "row 1"),
            (b"", "no header"),
            (b"[]", "no reading in it"),
        ):
            html = await browser.post(path, {"file": ("a", body, "text/csv")}, 422)
            assert words in html.text, html.text
        await browser.post(f"{path}/now", {"number": "x"}, 422)
        assert await browser.services.store.readings.count() == 0


async def test_who_may_look_imports_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, READ) as browser:
        session = await new_brew(browser)
        await browser.get(f"/brews/{session.id}/import", 403)
        await browser.post(f"/brews/{session.id}/import", {"file": ("a.csv", CSV.encode(), "text/csv")}, 403)
