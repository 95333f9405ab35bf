"""Every page in a real browser: accessible, in shape, and asking nobody else for anything."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, FilePayload, ViewportSize, expect

from tests.program.program import HTTP_ONLY, Server, serving
from tests.ui.brewery import NASTY, SHORT_NASTY, Brewery, brew
from tests.ui.browsing import DESK, PHONE, Tab, browser_test, chromium, tab, violations
from tests.ui.pictures import LOCALES, pages

pytestmark = [*browser_test, pytest.mark.timeout(1200)]

READINGS = 3000

NARROW: ViewportSize = {"width": 320, "height": 640}
TWICE: ViewportSize = {"width": 640, "height": 450}
"""The narrowest screen, and a desk at twice the size."""

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

HALVES = 2
"""Parts of the walk that can go on at the same time."""

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
    """What is wrong with a page at each width, in each scheme: accessibility, sizes, complaints."""
    await shown.go(path)
    found = []
    for viewport in (PHONE, DESK, NARROW, TWICE):
        await shown.page.set_viewport_size(viewport)
        where = f"{path} at {viewport['width']} px"
        if (await shown.page.evaluate(SIDEWAYS)) > 0:
            found.append(f"{where}: scrolls sideways")
        if viewport in (NARROW, TWICE):
            continue
        small = await shown.page.evaluate(SMALL_TEXTS)
        found += [f"{where}: text under 13 px: {each}" for each in small]
        small = await shown.page.evaluate(SMALL_TARGETS)
        found += [f"{where}: target too small: {each}" for each in small]
        for scheme in SCHEMES:
            await shown.page.emulate_media(color_scheme=scheme)
            found += [f"{where}, {scheme}: rule {each}" for each in await violations(shown.page)]
    found += [f"{path}: {each}" for each in shown.complaints if "404" not in each]
    shown.complaints.clear()
    return found


@pytest.mark.parametrize("half", range(HALVES))
@pytest.mark.parametrize("language", LOCALES)
async def test_every_page_is_for_everybody(
    browser: Browser, server: Server, brewery: Brewery, language: str, half: int
) -> None:
    paths = [*pages(brewery).values()][half::HALVES]
    async with tab(browser, server, brewery.key, bypass_csp=True, locale=LOCALES[language]) as shown:
        found = [fault for path in paths for fault in await faults_of(shown, path)]
        assert shown.strangers == []
    assert found == [], "\n".join(found)


async def give_nasty_files(shown: Tab) -> None:
    """Import a recipe from a file whose name is no name, and look at the report."""
    for name in (NASTY, SHORT_NASTY):
        await shown.go("/recipes/import")
        file: FilePayload = {"name": name, "mimeType": "text/xml", "buffer": b"<no"}
        await shown.page.set_input_files("main [name=files]", file)
        await shown.page.click("main form:has([name=files]) button")
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
