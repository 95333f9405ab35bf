"""A real alarm of a real brew, through every door: command line, page, endpoints, history."""

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp

from gateway.services.logins import COOKIE
from tests.payloads import ispindel

from .program import HTTP_ONLY, Server, answer, post, process, serving, until

TOKEN = re.compile(r'name="token" value="([0-9a-f]+)"')


async def logged_in(http: aiohttp.ClientSession, server: Server) -> str:
    form, headers = {"key": server.first_key or ""}, {"Origin": server.url}
    async with http.post(
        f"{server.url}/ui/login", data=form, headers=headers, allow_redirects=False
    ) as entered:
        return entered.cookies[COOKIE].value


async def page(http: aiohttp.ClientSession, server: Server, path: str, cookie: str) -> str:
    async with http.get(f"{server.url}/ui{path}", headers={"Cookie": f"{COOKIE}={cookie}"}) as found:
        assert found.status == 200
        return await found.text()


async def press(http: aiohttp.ClientSession, server: Server, path: str, cookie: str, token: str) -> None:
    headers = {"Cookie": f"{COOKIE}={cookie}", "Origin": server.url}
    async with http.post(
        f"{server.url}/ui{path}", headers=headers, data={"token": token}, allow_redirects=False
    ) as done:
        assert (done.status, done.headers["Location"]) == (303, "/ui/alarms")


async def next_second() -> None:
    """Wait until the next second has begun: figures are made of one reading a second."""
    now = int(time.time())
    await until(lambda: int(time.time()) > now)


async def test_a_brew_that_does_not_start_is_told_acknowledged_and_remembered(tmp_path: Path) -> None:
    http = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
    async with http, serving(tmp_path, *HTTP_ONLY) as server:
        assert (await process(tmp_path, "alarms list")).status == 0
        pitched = (datetime.now(UTC) - timedelta(hours=5)).isoformat()
        await answer(tmp_path, "sessions add --batchcode HP001")
        await answer(tmp_path, "sessions note HP001 US-05 --kind pitched", "--at", pitched)
        await answer(tmp_path, "alarms set not_started --brew HP001 hours=2")
        for n in range(4):
            body = ispindel(1, name="Red", gravity=f"1.050{n}", angle=f"60.{n}")
            assert await post(http, server, body.replace('"battery":3.95', '"battery":3.31')) == 200
            await next_second()
        await answer(tmp_path, "devices assign Red HP001 --since", pitched)

        async def two_fire() -> bool:
            return len((await process(tmp_path, "alarms list --json")).objects) == 2

        await until(two_fire)
        listed = await process(tmp_path, "alarms list")
        assert listed.status == 1, "for cron"
        lines = {line.split()[0]: line for line in listed.lines[1:]}
        assert "not started" in "".join(lines.values())
        found = {alarm["rule"]: alarm for alarm in (await process(tmp_path, "alarms list --json")).objects}
        assert {rule: alarm["name"] for rule, alarm in found.items()} == {
            "not_started": "HP001",
            "battery": "Red",
        }
        checks = (await answer(tmp_path, "alarms check --brew HP001 --json")).objects
        assert {check["rule"] for check in checks if check["fires"]} == {"not_started", "battery"}
        assert all(check["why_not"] for check in checks if not check["fires"])

        cookie = await logged_in(http, server)
        shown = await page(http, server, "/alarms", cookie)
        token = TOKEN.findall(shown)[-1]
        for path in ("/", "/brews/1", "/tv"):
            assert "Not started" in await page(http, server, path, cookie), path
        assert "Alarm: Not started" in await page(http, server, "/brews/1/chart", cookie)
        await press(http, server, f"/alarms/{found['not_started']['id']}/ack", cookie, token)
        assert [a["rule"] for a in (await process(tmp_path, "alarms list --json")).objects] == ["battery"]
        await answer(tmp_path, f"alarms snooze {found['battery']['id']} 8h")
        quiet = await process(tmp_path, "alarms list")
        assert (quiet.status, quiet.out) == (0, "")
        assert "2 more are acknowledged or snoozed" in quiet.err
        assert {line.split()[1] for line in (await process(tmp_path, "alarms list --all")).lines[1:]} == {
            "acknowledged",
            "quiet",
        }
        assert (await server.stop())[0] == 0
    events = (await answer(tmp_path, "alarms history --brew HP001 --json")).objects
    assert [event["kind"] for event in events] == ["fired", "acknowledged"]
    assert events[1]["text"] == "acknowledged by page:first"
