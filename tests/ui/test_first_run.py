"""The first minutes: the key from the terminal, the login by link, and what must not stay anywhere."""

from pathlib import Path

from playwright.async_api import expect

from tests.ui.browsing import browser_test, chromium, gateway, tab

pytestmark = browser_test


async def test_a_link_with_the_key_logs_in_and_leaves_no_key_behind(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser, tab(browser, server) as shown:
        page = shown.page
        await page.goto(f"{server.url}/")
        assert page.url.startswith(f"{server.url}/ui/login"), "a browser's GET / leads to the page"
        await page.goto(f"{shown.url('/login')}#{key}")
        await page.wait_for_url(shown.url("/"))
        assert key not in page.url
        await page.go_back()
        assert key not in page.url
        assert not any(key in url for url in shown.asked)
        cookies = {cookie["name"]: cookie for cookie in await page.context.cookies(shown.url("/"))}
        kept = cookies["hg_login"]
        assert (kept["httpOnly"], kept["sameSite"], kept["path"]) == (True, "Strict", "/ui")
        assert kept["value"] != key
        assert shown.complaints == []
        assert not any(key in line for line in (*server.lines, *server.errors))


async def test_without_a_script_the_key_is_typed(tmp_path: Path) -> None:
    async with (
        gateway(tmp_path) as (server, key),
        chromium() as browser,
        tab(browser, server, java_script_enabled=False) as shown,
    ):
        await shown.go("/login")
        await shown.page.fill("input[name=key]", "hg_wrong")
        await shown.page.click("main form button")
        await expect(shown.page.locator("main")).to_contain_text("This key is not known here")
        await shown.log_in(key)
        await expect(shown.page.locator("h1")).to_be_visible()


async def test_a_link_from_another_site_goes_on_for_who_is_logged_in(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser, tab(browser, server, key) as shown:
        foreign = server.url.replace("127.0.0.1", "localhost")
        await shown.page.goto(f"{foreign}/ui/static/0/icon.svg")
        target = shown.url("/more")
        await shown.page.evaluate("url => { location.href = url }", target)
        await shown.page.wait_for_url(target)
        await expect(shown.page.locator("h1")).to_have_text("More")


async def test_the_way_back_never_leads_to_another_site(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, key), chromium() as browser:
        for target in ("//evil.example/", "https://evil.example/", "/\\evil.example", "/v1/recipes"):
            async with tab(browser, server) as shown:
                await shown.page.goto(f"{shown.url('/login')}?next={target}#{key}")
                await shown.page.wait_for_url(shown.url("/"))
                assert shown.strangers == []
