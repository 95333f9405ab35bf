"""Every page in a real browser: accessible, in shape, and asking nobody else for anything."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, expect

from tests.program.program import HTTP_ONLY, Server, serving
from tests.ui.brewery import NASTY, SHORT_NASTY, Brewery, brew
from tests.ui.browsing import DESK, PHONE, Tab, browser_test, chromium, tab, violations
from tests.ui.pictures import LOCALES, pages

pytestmark = [*browser_test, pytest.mark.timeout(1200)]

READINGS = 3000

NARROW = {"width": 320, "height": 640}

SMALL_TEXTS = """() => [...document.querySelectorAll('body *')].filter(each =>
  [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())
  && each.getClientRects().length && !each.closest('.unseen') && !each.closest('option')
  && parseFloat(getComputedStyle(each).fontSize) * (each.ownerSVGElement
       ? each.ownerSVGElement.getBoundingClientRect().width / each.ownerSVGElement.viewBox.baseVal.width : 1)
     < 12.99)
  .map(each => each.tagName + ' ' + each.className + ': ' + each.textContent.trim().slice(0, 40))"""

SMALL_TARGETS = """() => [...document.querySelectorAll('a[href], button, input, select, summary, textarea')]
  .filter(each => {
    const box = each.getBoundingClientRect();
    if (!box.width || each.closest('.unseen, .skip, p, dd, li > span, figcaption') || each.type === 'hidden'
        || getComputedStyle(each).visibility === 'hidden') return false;
    const small = each.closest('table, svg, h2, dl, nav ol') || ['checkbox', 'radio'].includes(each.type);
    const least = small ? 23.5 : 43.5;
    return box.height < least;
  }).map(each => each.tagName + ' ' + each.className + ': '
         + (each.textContent || each.name || '').trim().slice(0, 40) + ' '
         + Math.round(each.getBoundingClientRect().height))"""

MADE_ELEMENTS = """() =>
  document.querySelectorAll('img[src=x], i, script:not([src]), a[href^="javascript:" i]').length"""

COMPUTED = re.compile(r""">49|'49""")
"""What `{{7*7}}` would have become."""

SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def _directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("brewery")


@pytest.fixture(scope="module")
def brewery(_directory: Path) -> Brewery:
    return asyncio.run(brew(_directory, readings=READINGS))


@pytest.fixture
async def server(_directory: Path, brewery: Brewery) -> AsyncIterator[Server]:
    async with serving(_directory, *HTTP_ONLY) as running:
        yield running


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


async def faults_of(shown: Tab, path: str) -> list[str]:
    """What is wrong with a page: rules of accessibility, sizes, complaints of the browser."""
    await shown.go(path)
    found = [f"rule {each}" for each in await violations(shown.page)]
    found += [f"text under 13 px: {each}" for each in await shown.page.evaluate(SMALL_TEXTS)]
    found += [f"target too small: {each}" for each in await shown.page.evaluate(SMALL_TARGETS)]
    if (await shown.page.evaluate(SIDEWAYS)) > 0:
        found.append("scrolls sideways")
    found += [each for each in shown.complaints if "404" not in each]
    shown.complaints.clear()
    return [f"{path}: {each}" for each in found]


@pytest.mark.parametrize("language", LOCALES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["phone", "desk"])
async def test_every_page_is_for_everybody(
    browser: Browser, server: Server, brewery: Brewery, language: str, scheme: str, width: str
) -> None:
    options = {"locale": LOCALES[language], "viewport": PHONE if width == "phone" else DESK}
    async with tab(browser, server, brewery.key, color_scheme=scheme, bypass_csp=True, **options) as shown:
        found = [fault for path in pages(brewery).values() for fault in await faults_of(shown, path)]
        assert shown.strangers == []
    assert found == [], "\n".join(found)


async def test_no_page_scrolls_sideways_at_320_px_or_at_twice_the_size(
    browser: Browser, server: Server, brewery: Brewery
) -> None:
    found = []
    for viewport in (NARROW, {"width": 640, "height": 450}):
        async with tab(browser, server, brewery.key, viewport=viewport) as shown:
            for path in pages(brewery).values():
                await shown.go(path)
                if (await shown.page.evaluate(SIDEWAYS)) > 0:
                    found.append(f"{path} at {viewport['width']} px")
    assert found == []


async def give_nasty_files(shown: Tab) -> None:
    """Import a recipe from a file whose name is no name, and look at the report."""
    for name in (NASTY, SHORT_NASTY):
        await shown.go("/recipes/import")
        file: FilePayload = {"name": name, "mimeType": "text/xml", "buffer": b"<no"}
        await shown.page.set_input_files("main [name=files]", file)
        await shown.page.click("main form button")
        await expect(shown.page.locator("main .card h2")).to_contain_text("{{7*7}}")


async def test_what_people_and_devices_write_stays_text(
    browser: Browser, server: Server, brewery: Brewery
) -> None:
    async with tab(browser, server, brewery.key) as shown:
        dialogs: list[str] = []
        shown.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        found = []
        picture = f"/picture/{brewery.picture}.svg"
        for path in (*pages(brewery).values(), picture):
            await shown.go(path)
            if await shown.page.evaluate(MADE_ELEMENTS):
                found.append(f"{path}: a text became an element")
            if COMPUTED.search(await shown.page.evaluate("() => document.documentElement.textContent")):
                found.append(f"{path}: a text was computed")
        await give_nasty_files(shown)
        if await shown.page.evaluate(MADE_ELEMENTS):
            found.append("the name of a file became an element")
        assert found == []
        assert dialogs == []
        # A policy that was broken would be among the complaints.
        assert [each for each in shown.complaints if "404" not in each] == []
