"""Quarantine in words: kinds of messages, all of one, replays, downloads; nothing in it is trusted."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.quarantined import Quarantined
from gateway.services.quarantine import ALL_KINDS
from gateway.ui.viewer import viewer_of
from gateway.ui.words import LANGUAGES
from tests.program.program import ispindel
from tests.system.ui.site import Browser, logged_in, served

ARRIVAL_MS = 1_772_616_600_123
NASTY = '<img src=x onerror=alert(1)>"><script>alert(2)</script>{{7*7}}\u202ejavascript:'


async def put(browser: Browser, body: bytes, reason: str = "no known device sends this", **more: Any) -> None:
    given = {"channel": "http /ingest", "source": "192.0.2.7", "received_at": ARRIVAL_MS, **more}
    await browser.services.store.quarantine.add(Quarantined(body=body, reason=reason, **given))


async def test_an_empty_quarantine_says_that_all_was_understood(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        html = await browser.get("/quarantine")
        assert "Everything that arrived was understood." in html.text
        assert html.page.all("button", class_="main") == []
        browser.language = "de"
        assert "Alles, was ankam, wurde verstanden." in (await browser.get("/quarantine")).text


async def test_a_message_is_shown_with_its_reason_its_remedy_and_its_bytes(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await put(browser, b"first " * 20)
        await put(browser, b"", "an empty body", query="a=1&b=2", label="red")
        page = (await browser.get("/quarantine")).page
        section, second, first = page.all("section")
        assert section.attributes["data-live"] == "quarantine"
        assert second.one("h2").text == "It came without any content."
        assert first.one("pre").text == ("first " * 20)[:60].strip()
        assert "no known device sends this" in first.text
        assert "192.0.2.7" in first.text
        one = await browser.get("/quarantine/2")
        assert one.page.all("pre")[0].text == "a=1&b=2"
        assert "0000 61 3d 31 26 62 3d 32 a=1&b=2" in one.text
        assert "Still nothing. The reason today: " in one.text
        await browser.get("/quarantine/99", 404)
        browser.language = "de"
        assert "Nachricht 2" in (await browser.get("/quarantine/2")).text
        assert "Es kam ohne Inhalt." in (await browser.get("/quarantine")).text


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_kind_has_words_and_a_remedy(language: str) -> None:
    words = viewer_of(None, language).words(0)
    keys = [f"quarantine.{kind}.{part}" for kind in ALL_KINDS for part in ("what", "remedy")]
    assert [key for key in keys if words.t(key)[-1] not in ".?"] == []


async def test_one_a_device_and_all_are_tried_again(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await put(browser, ispindel(1).encode())
        await put(browser, ispindel(2).encode())
        await put(browser, ispindel(3).encode())
        await put(browser, b"no reading at all")
        today = await browser.get("/quarantine/1")
        assert "Try it again, and these become readings:" in today.text
        assert "spindle1" in today.page.one("table").text
        html = await browser.post("/quarantine/replay", {"number": 1})
        assert "1 message is understood now." in html.text
        assert await browser.services.store.quarantine.get(1) is None
        assert "spindle1" in [option.attributes["value"] for option in html.page.all("option")]
        html = await browser.post("/quarantine/replay", {"device": "", "other": "spindle2"})
        assert "1 message is understood now." in html.text
        html = await browser.post("/quarantine/replay", {"number": 4})
        assert html.page.one("h1").text == "Message 4"
        assert "1 stays here." in html.text
        html = await browser.post("/quarantine/replay")
        assert "1 message is understood now. 1 stays here." in html.text
        assert await browser.services.store.readings.count() == 3
        await browser.post("/quarantine/replay", {"device": "", "other": " "}, 400)
        await browser.post("/quarantine/replay", {"number": "77"}, 404)
        await browser.post("/quarantine/replay", {"number": "x"}, 404)


async def test_the_bytes_are_a_file_that_no_browser_shows(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await put(browser, b"<script>alert(1)</script>")
        answer = await browser.get("/quarantine/1/body")
        assert answer.raw == "<script>alert(1)</script>"
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="quarantine-1"'


async def test_what_a_stranger_sent_is_text_everywhere(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await put(browser, NASTY.encode(), source=NASTY, channel=NASTY, label=NASTY, query=NASTY)
        spindle = {"name": NASTY, "ID": 5, "angle": 30, "temperature": 20, "gravity": 1.05}
        await put(browser, json.dumps(spindle).encode(), NASTY)
        for path in ("/quarantine", "/quarantine/1", "/quarantine/2"):
            html = await browser.get(path)
            assert html.page.all("img") == []
            assert [
                script.attributes.get("src", "") for script in html.page.all("script") if script.text
            ] == []
            assert "\u202e" not in html.page.all("pre")[0].text
            assert "{{7*7}}" in html.text


async def test_a_key_that_may_only_look_sees_no_messages(tmp_path: Path) -> None:
    async with served(tmp_path, frozenset({"read"})) as browser:
        await put(browser, b"secret")
        assert "admin" in (await browser.get("/quarantine", 403)).text
        await browser.get("/quarantine/1", 403)
        await browser.get("/quarantine/1/body", 403)
        await browser.post("/quarantine/replay", {}, 403)
        assert await browser.services.store.quarantine.count() == 1
        await browser.services.access.add_account("other")
        browser.cookie = await logged_in(browser.services, account="other")
        browser.client.session.cookie_jar.clear()
        assert "owner" in (await browser.get("/quarantine", 403)).text
