"""The frame of all pages: menu, language, errors, forms, headers."""

import json
from pathlib import Path

import pytest

from gateway.ui.i18n.plurals import PLURALS
from gateway.ui.words import CATALOGUES, LANGUAGES
from tests.system.ui.site import served


async def test_a_page_has_the_frame_and_its_headers(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        html = await browser.get("/more")
        assert html.page.one("h1").text == "More"
        assert html.page.one("html").attributes["lang"] == "en"
        policy = html.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert html.headers["Referrer-Policy"] == "same-origin"
        assert html.headers["Cache-Control"] == "private, no-cache"
        browser.language = "de-AT,de;q=0.8"
        html = await browser.get("/more")
        assert (html.page.one("h1").text, html.page.one("html").attributes["lang"]) == ("Mehr", "de")


async def test_styles_and_scripts_are_kept_for_ever_under_their_version(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        page = (await browser.get("/more")).page
        sheet = page.one("link", rel="stylesheet").attributes["href"]
        answer = await browser.get(sheet)
        assert "immutable" in answer.headers["Cache-Control"]
        assert "--beer" in answer.raw
        old = await browser.get("/static/0123456789abcdef/page.css")
        assert (old.headers["Cache-Control"], old.raw) == ("no-cache", answer.raw)
        await browser.get("/static/0123456789abcdef/nothing.css", 404)


async def test_an_unknown_page_is_a_page_that_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        html = await browser.get("/nothing/here", 404)
        assert "There is no page under this address." in html.text


async def test_who_is_not_logged_in_is_sent_to_the_login_with_the_way_back(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        browser.cookie = ""
        async with browser.client.get("/ui/more?a=1", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/ui/login?next=%2Fui%2Fmore%3Fa%3D1")


def _placeholders(text: object) -> set[str]:
    import string

    forms = text.values() if isinstance(text, dict) else [text]
    return {name for form in forms for _, name, _, _ in string.Formatter().parse(str(form)) if name}


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_catalogues_have_the_same_keys_and_placeholders(language: str) -> None:
    english, other = (
        json.loads((CATALOGUES / f"{code}.json").read_text("utf-8")) for code in ("en", language)
    )
    assert english.keys() ^ other.keys() == set()
    different = [
        key
        for key, text in english.items()
        if type(text) is not type(other[key]) or _placeholders(text) != _placeholders(other[key])
    ]
    assert different == []
    assert language in PLURALS
    html = [key for catalogue in (english, other) for key, text in catalogue.items() if "<" in str(text)]
    assert html == []


def test_no_template_trusts_a_text() -> None:
    from gateway.ui.rendering import TEMPLATES

    templates = [*TEMPLATES.rglob("*.html")]
    assert templates
    offenders = [
        f"{path.name}: {mark}"
        for path in templates
        for mark in ("|safe", "| safe", "style=", "<style", "onclick", "onload", "javascript:")
        if mark in path.read_text("utf-8")
    ]
    assert offenders == []
