"""The page in a frame of Home Assistant, in a real browser: logged in there, and live."""

from pathlib import Path

from playwright.async_api import expect

from tests.patience import PATIENCE_S
from tests.payloads import ispindel
from tests.program.ingress import BASE, INGRESS, ingress
from tests.program.program import answer
from tests.ui.browsing import BROWSER_MS, DESK, browser_test, chromium, gateway

pytestmark = browser_test

SPINDLE = "spindle1"


async def test_a_brew_is_followed_inside_home_assistant(tmp_path: Path) -> None:
    """Log in inside the frame, open the brew, and see its next reading arrive by itself."""
    async with (
        gateway(tmp_path / "data", *INGRESS) as (server, key),
        ingress(tmp_path / "nginx", server.port) as origin,
        chromium() as browser,
    ):
        await answer(server.data, "sessions add --batchcode HP001")
        context = await browser.new_context(viewport=DESK, locale="en-GB")
        page = await context.new_page()
        page.set_default_timeout(BROWSER_MS)
        asked: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.request.post(f"{server.url}/ingest", data=ispindel(1))
        await answer(server.data, f"devices assign {SPINDLE} 1")

        await page.goto(f"{origin}/")
        app = page.frame_locator("iframe[name=app]")
        await app.locator("input[name=key]").fill(key)
        await app.locator("main form button").first.click()
        await app.get_by_role("link", name="HP001").first.click()
        frame = page.frame("app")
        assert frame is not None
        await frame.wait_for_url(f"{origin}{BASE}/ui/brews/1")
        await expect(app.locator(".live")).to_have_attribute("data-state", "live", timeout=PATIENCE_S * 1000)
        styles = await app.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
        assert styles != "rgba(0, 0, 0, 0)", "the styles came"

        before = await app.locator("main").inner_text()
        await page.request.post(f"{server.url}/ingest", data=ispindel(1, gravity="9.7"))
        await expect(app.locator("main")).not_to_have_text(before, timeout=PATIENCE_S * 1000)
        assert len([url for url in asked if url == f"{origin}{BASE}/ui/brews/1"]) == 1, "no reload"

        await app.locator("details.corner summary").click()
        await app.get_by_role("button", name="Log out").click()
        await expect(app.locator("input[name=key]")).to_be_visible()
        await context.close()
    outside = [
        url
        for url in asked
        if not url.startswith((f"{origin}{BASE}/", server.url, "data:"))
        and url not in {f"{origin}/", f"{origin}/favicon.ico"}
    ]
    assert outside == []
    assert [line for line in complaints if "favicon" not in line and "404" not in line] == []
