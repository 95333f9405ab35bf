"""The page of a running gateway: logins survive a power cut, and without the page nothing of it is loaded."""

from pathlib import Path

import aiohttp

from gateway.services.logins import COOKIE

from .program import HTTP_ONLY, Server, answer, serving


async def status(http: aiohttp.ClientSession, server: Server, path: str, cookie: str = "") -> int:
    headers = {"Cookie": f"{COOKIE}={cookie}"} if cookie else {}
    async with http.get(f"{server.url}{path}", headers=headers, allow_redirects=False) as found:
        return found.status


def has_loaded(server: Server, library: str) -> bool:
    """Whether the process has this library in its memory, of which a part is compiled."""
    return library in Path(f"/proc/{server.process.pid}/maps").read_text()


async def test_a_login_survives_a_power_cut_and_dies_with_its_key(tmp_path: Path) -> None:
    http = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
    async with http, serving(tmp_path, *HTTP_ONLY) as server:
        form = {"key": server.first_key or "", "next": "/ui/settings"}
        origin = {"Origin": server.url}
        async with http.post(
            f"{server.url}/ui/login", data=form, headers=origin, allow_redirects=False
        ) as entered:
            assert (entered.status, entered.headers["Location"]) == (303, "/ui/settings")
            cookie = entered.cookies[COOKIE].value
        await server.kill()
        async with serving(tmp_path, *HTTP_ONLY) as again:
            assert await status(http, again, "/ui/settings", cookie) == 200
            assert await status(http, again, "/ui/settings", cookie[:-1]) == 303
            await answer(tmp_path, "keys revoke first")
            assert await status(http, again, "/ui/settings", cookie) == 303
            assert (await again.stop())[0] == 0
            for text in (*server.lines, *server.errors, *again.lines, *again.errors):
                assert cookie not in text
                assert (server.first_key or "?") not in text


async def test_without_a_page_its_libraries_are_never_loaded(tmp_path: Path) -> None:
    loaded = {}
    for options in (HTTP_ONLY, (*HTTP_ONLY, "--no-page")):
        data = tmp_path / str(len(options))
        async with serving(data, *options) as server, aiohttp.ClientSession() as http:
            statuses = [await status(http, server, path) for path in ("/ui/", "/ui/login", "/")]
            loaded[options[-1] == "--no-page"] = has_loaded(server, "markupsafe"), statuses
            assert ("Page on" in "".join(server.lines)) is (options[-1] != "--no-page")
            assert (await server.stop())[0] == 0
    assert loaded == {False: (True, [303, 200, 200]), True: (False, [404, 404, 200])}
