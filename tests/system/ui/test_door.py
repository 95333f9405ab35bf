"""The door: logging in and out, forms of strangers, host names, looking without a key, the way from `/`."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from gateway.clock import SystemClock
from gateway.domain.key import ALL_SCOPES
from gateway.drivers import DRIVERS
from gateway.services.access import INGEST_ONLY, READ_ONLY
from gateway.services.build import build_services
from gateway.services.logins import COOKIE, LIFE_S, SECURE_COOKIE
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.http import aliases, own_paths
from gateway.ui.views.login import NEXT
from tests.cases import each
from tests.program.program import ispindel
from tests.pure.drivers.test_cases import FILES
from tests.system.test_listening import Bench
from tests.system.ui.site import Element, parse

NEIGHBOUR = "127.0.0.2"
"""A sender that is not this machine, but on its network."""

CHROMIUM = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36"


@dataclass
class Seen:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    cookies: Mapping[str, Any]
    text: str

    @property
    def page(self) -> Element:
        return parse(self.text)


class House(Bench):
    """The listeners of a gateway with its page, and keys of each kind."""

    store: SqliteStore

    async def open(self, **settings: Any) -> None:
        await self.start(no_tcp=True, **settings)
        [port] = self.ports("HTTP on ")
        self.root = f"http://127.0.0.1:{port}"
        access = self.parts.access
        self.admin = await access.add("phone", ALL_SCOPES)
        self.reader = await access.add("tablet", READ_ONLY)
        self.ingest = await access.add("spindle", INGEST_ONLY)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        cookie: Any = "",
        fields: Any = None,
        sender: Any = "127.0.0.1",
        **headers: Any,
    ) -> Seen:
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value}
        if cookie:
            sent["Cookie"] = cookie if "=" in cookie else f"{COOKIE}={cookie}"
        connector = aiohttp.TCPConnector(local_addr=(sender, 0))
        jar = aiohttp.DummyCookieJar()
        url = URL(self.root + path, encoded=True)
        async with (
            aiohttp.ClientSession(connector=connector, cookie_jar=jar) as http,
            http.request(method, url, data=fields, headers=sent, allow_redirects=False) as answer,
        ):
            return Seen(answer.status, dict(answer.headers), answer.cookies, await answer.text())

    async def log_in(self, key: str, target: Any = "", sender: Any = "127.0.0.1", **headers: Any) -> Seen:
        fields = {"key": key, "next": target, "zone": "Europe/Oslo"}
        headers = {"Origin": self.root, **headers}
        return await self.ask("POST", "/ui/login", fields=fields, sender=sender, **headers)

    async def cookie(self, key: str) -> str:
        return str((await self.log_in(key)).cookies[COOKIE].value)

    async def token(self, cookie: str) -> str:
        page = (await self.ask("GET", "/ui/more", cookie=cookie)).page
        return page.all("input", name="token")[0].attributes["value"]

    async def is_in(self, cookie: str) -> bool:
        return (await self.ask("GET", "/ui/me", cookie=cookie)).status == 200


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, SystemClock())
    await services.access.start()
    await services.intake.start()
    house = House(services, tmp_path)
    house.store = store
    yield house
    await house.stop()
    await store.close()


async def test_a_key_logs_a_browser_in_until_it_logs_out(house: House) -> None:
    await house.open()
    form = await house.ask("GET", "/ui/login?next=%2Fui%2Fmore%3Fa%3D1")
    assert form.headers["Cache-Control"] == "no-store"
    assert form.page.one("input", name="next").attributes["value"] == "/ui/more?a=1"
    assert not form.page.all("nav"), "a menu for somebody who may not look"
    assert "keys add" in form.text
    assert not await house.is_in("")
    entered = await house.log_in(house.admin, "/ui/more?a=1", User_Agent="Firefox on a phone")
    assert (entered.status, entered.headers["Location"]) == (303, "/ui/more?a=1")
    assert house.admin not in repr(entered)
    morsel = entered.cookies[COOKIE]
    assert (morsel["path"], morsel["samesite"], morsel["httponly"], morsel["secure"]) == (
        "/ui", "Strict", True, "",
    )  # fmt: skip
    assert int(morsel["max-age"]) == LIFE_S
    [login] = house.parts.logins.all(1)
    assert (login.key.name, login.agent) == ("phone", "Firefox on a phone")
    assert login.preferences == {"zone": "Europe/Oslo"}
    page = await house.ask("GET", "/ui/more", cookie=morsel.value)
    assert page.status == 200
    assert page.cookies[COOKIE].value == morsel.value, "the browser forgets the cookie after 90 days"
    for path, key in (("/v1/recipes", "tablet"), ("/manage/keys", "phone")):
        assert (await house.ask("GET", path, cookie=morsel.value)).status == 401, key
    token = page.page.all("input", name="token")[0].attributes["value"]
    left = await house.ask(
        "POST", "/ui/logout", cookie=morsel.value, fields={"token": token}, Origin=house.root
    )
    assert (left.status, left.headers["Location"]) == (303, "/ui/login")
    assert int(left.cookies[COOKIE]["max-age"]) == 0
    assert not await house.is_in(morsel.value)
    assert (await house.ask("GET", "/ui/more", cookie=morsel.value)).status == 303


async def test_what_is_wrong_with_a_key_is_told_in_words_and_wrong_keys_are_limited(house: House) -> None:
    await house.open()
    refused = await house.log_in(house.ingest)
    assert (refused.status, refused.cookies.get(COOKIE)) == (403, None)
    assert "for devices" in refused.page.text
    for number in range(5):
        refused = await house.log_in("hg_wrong", "/ui/more")
        assert refused.status == 401, number
    assert "This key is not known here" in refused.page.text
    assert "hg_wrong" not in refused.text
    assert refused.page.one("input", name="next").attributes["value"] == "/ui/more"
    refused = await house.log_in("hg_wrong", Accept_Language="de")
    assert refused.status == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 12
    assert re.search(r"in \d+ Sekunden? noch einmal", refused.page.text)
    assert (await house.log_in(house.reader)).status == 303, "a right key always passes"
    huge = await house.ask("POST", "/ui/login", fields={"key": "x" * 20_000}, Origin=house.root)
    assert huge.status == 413


@each(
    "target",
    [
        "//evil", "https://evil", "/ui//evil\\", "/ui", "/", "", "/ui/login", "/ui/login?next=/ui/login",
        "/ui/\r\nSet-Cookie: a=b", "/ui/\x00", "javascript:alert(1)", "\\\\evil", "/%5cevil",
        "/ui/" + "x" * 3000, " /ui/more", "/uii/", "/ui/ä",
    ],
)  # fmt: skip
def test_a_login_leads_to_no_other_place(target: str) -> None:
    assert NEXT.fullmatch(target) is None


@each("target", ["/ui/", "/ui/brews/7?from=2026-11-03T14%3A15#n3", "/ui/more?q=%C3%A4&x=(1)~"])
def test_a_login_leads_to_the_page_that_was_asked_for(target: str) -> None:
    assert NEXT.fullmatch(target)


async def test_a_login_with_another_aim_leads_to_the_first_page(house: House) -> None:
    await house.open()
    assert (await house.log_in(house.reader, "//evil.example/")).headers["Location"].startswith("/ui/")
    shown = await house.ask("GET", "/ui/login?next=//evil.example/")
    assert "evil" not in shown.text


async def test_a_form_that_no_page_of_this_login_made_changes_nothing(house: House) -> None:
    await house.open()
    mine, other = await house.cookie(house.admin), await house.cookie(house.reader)
    good = {"Origin": house.root}
    token, foreign = await house.token(mine), await house.token(other)
    assert token != await house.token(mine), "the same token twice: compression could tell it"
    strange: list[tuple[dict[str, str], str]] = [
        ({}, token),
        ({"Origin": "null"}, token),
        ({"Origin": "http://evil.example"}, token),
        ({"Origin": f"{house.root}.evil.example"}, token),
        ({"Origin": "null", "Referer": f"{house.root}/ui/more"}, token),
        ({"Referer": "http://evil.example/ui/more"}, token),
        ({"Referer": f"http://evil.example/{house.root}"}, token),
        ({"Origin": "file://"}, token),
        (good, ""),
        (good, foreign),
        (good, token[:-1]),
        (good, f"{'0' * 16}{token[16:]}"),
        (good, "\u00e4"),
    ]
    for headers, given in strange:
        seen = await house.ask("POST", "/ui/logout", cookie=mine, fields={"token": given}, **headers)
        assert seen.status == 403, (headers, given)
        assert await house.is_in(mine), (headers, given)
    assert (await house.ask("GET", f"/ui/logout?token={token}", cookie=mine)).status == 404
    assert (await house.ask("POST", f"/ui/logout?token={token}", cookie=mine, **good)).status == 403
    assert (await house.ask("POST", "/ui/logout", fields={"token": token}, **good)).status == 401
    assert await house.is_in(mine)
    for headers in ({}, {"Origin": "null"}, {"Origin": "http://evil.example"}):
        seen = await house.ask("POST", "/ui/login", fields={"key": house.admin}, **headers)
        assert (seen.status, COOKIE in seen.cookies) == (403, False), "a stranger can log its victim in"
    by_referer = {"Referer": f"{house.root}/ui/more"}
    left = await house.ask("POST", "/ui/logout", cookie=mine, fields={"token": token}, **by_referer)
    assert left.status == 303
    assert not await house.is_in(mine)
    assert await house.is_in(other)


async def test_a_foreign_host_name_gets_no_page_but_its_reports_are_taken(house: House) -> None:
    await house.open(hostname=["brew.example.org"])
    cookie = await house.cookie(house.admin)
    for path in ("/ui/", "/ui/more", "/ui/login", "/ui/me", "/docs", "/openapi.json", "/healthz"):
        seen = await house.ask("GET", path, cookie=cookie, Host="evil.example")
        assert seen.status == 403, path
        assert "--hostname evil.example" in seen.text
    for host in ("brew.example.org", "brewpi", "brewpi.lan:8080", "homeassistant.local", "192.168.1.5"):
        assert (await house.ask("GET", "/ui/more", cookie=cookie, Host=host)).status == 200, host
    report = ispindel(1, name="spindle", gravity="12.5")
    assert (await house.ask("POST", "/ingest", fields=json.loads(report), Host="brew-spy.com")).status == 200
    hostile = {"Origin": "http://evil.example", "Host": "evil.example"}
    token = await house.token(cookie)
    seen = await house.ask("POST", "/ui/logout", cookie=cookie, fields={"token": token}, **hostile)
    assert seen.status == 403
    assert await house.is_in(cookie)


async def test_neighbours_look_without_a_key_only_if_the_owner_allows_it(house: House) -> None:
    await house.open()
    assert (await house.ask("GET", "/ui/more", sender=NEIGHBOUR)).status == 303
    house.parts.page.lan_view = True
    seen = await house.ask("GET", "/ui/more", sender=NEIGHBOUR)
    assert seen.status == 200
    assert not [form for form in seen.page.all("form") if form.attributes["method"] == "post"]
    for header in ("Forwarded", "X_Forwarded_For", "X_Real_IP"):
        value = "for=192.168.1.7" if header == "Forwarded" else "192.168.1.7"
        assert (await house.ask("GET", "/ui/more", sender=NEIGHBOUR, **{header: value})).status == 303
    changed = await house.ask("POST", "/ui/logout", fields={}, sender=NEIGHBOUR, Origin=house.root)
    assert changed.status == 401
    assert (await house.ask("GET", "/ui/keys", sender=NEIGHBOUR)).headers["Location"].startswith("/ui/login")
    settings = await house.ask("GET", "/ui/settings", sender=NEIGHBOUR)
    assert (settings.status, "You look without a key" in settings.text) == (200, True)
    assert (await house.ask("GET", "/ui/me", sender=NEIGHBOUR)).status == 204


async def test_a_trusted_proxy_that_forwards_opens_no_view_either(house: House) -> None:
    await house.open(trusted_proxy=["127.0.0.1"])
    house.parts.page.lan_view = True
    through = {"X_Forwarded_For": "192.168.1.7", "X_Forwarded_Host": "brewpi", "X_Forwarded_Proto": "https"}
    assert (await house.ask("GET", "/ui/more", **through)).status == 303
    entered = await house.log_in(house.reader, Origin="https://brewpi", **through)
    assert entered.status == 303
    assert COOKIE not in entered.cookies
    morsel = entered.cookies[SECURE_COOKIE]
    assert (morsel["secure"], morsel["httponly"], morsel["path"]) == (True, True, "/ui")
    cookie = f"{SECURE_COOKIE}={morsel.value}; {COOKIE}=of-another-time"
    assert (await house.ask("GET", "/ui/more", cookie=cookie, **through)).status == 200


async def test_sixty_tabs_lock_neither_the_page_nor_the_devices(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.http.hardening.KEYLESS_RATE", 0.01)  # however slow the machine is
    await house.open()
    cookie = await house.cookie(house.admin)
    tabs = [house.ask("GET", "/ui/more", cookie=cookie, sender=NEIGHBOUR) for _ in range(60)]
    report = json.loads(ispindel(1, name="spindle", gravity="12.5"))
    reports = [house.ask("POST", "/ingest", fields=report, sender="127.0.0.3") for _ in range(5)]
    seen = await asyncio.gather(*tabs, *reports)
    assert [answer.status for answer in seen] == [200] * 65
    strangers = [await house.ask("GET", "/ui/me", sender="127.0.0.4") for _ in range(21)]
    assert strangers[-1].status == 429, "requests without a login have no bound"
    assert (await house.ask("GET", "/ui/more", cookie=cookie, sender="127.0.0.4")).status == 200


async def test_a_browser_at_the_root_is_led_to_the_page(house: House) -> None:
    await house.open(also_listen=[0])
    html = "text/html,application/xhtml+xml,*/*;q=0.8"
    led = await house.ask("GET", "/", Accept=html, User_Agent=CHROMIUM)
    assert (led.status, led.headers["Location"]) == (303, "/ui/")
    hint = await house.ask("GET", "/", Accept="*/*")
    assert "takes readings here" in hint.text
    assert "takes readings here" in (await house.ask("GET", "/ingest", Accept=html)).text
    refused = await house.ask("GET", "/?name=x&gravity=12.5", Accept=html, User_Agent=CHROMIUM)
    assert refused.status == 403, "a page of any site can make a browser report"
    [port] = house.ports("Devices on ")
    house.root = f"http://127.0.0.1:{port}"
    assert "takes readings here" in (await house.ask("GET", "/", Accept=html)).text, "no page is there"
    assert (await house.ask("GET", "/ui/login", Accept=html)).status == 404


async def test_without_a_page_nothing_is_below_it(house: House) -> None:
    await house.open(no_page=True)
    assert "takes readings here" in (await house.ask("GET", "/", Accept="text/html")).text
    for path in ("/ui", "/ui/", "/ui/login", "/ui/me", "/ui/static/0/page.css"):
        assert (await house.ask("GET", path)).status == 404
    assert (await house.ask("POST", "/ui/login", fields={"key": house.admin})).status == 404


def test_no_device_path_is_below_the_page() -> None:
    paths = {path.path for path in (*own_paths(), *aliases())}
    paths |= {exchange.path for driver in DRIVERS for exchange in driver.exchanges}
    assert len(paths) > 50
    assert not [path for path in paths if path.strip("/").split("/")[0] in {"ui", "{ui}"}]


CASES = [(path, json.loads(path.read_text("utf-8"))) for path in FILES]


async def test_each_request_of_each_family_at_the_root_is_taken_as_a_report(house: House) -> None:
    """Even if the firmware says that it takes HTML: what is not a bare GET of a browser is a device's."""
    await house.open()
    families = set()
    async with aiohttp.ClientSession() as http:
        for path, case in CASES:
            if case["transport"] != "http":
                continue
            query = case["path"].partition("?")[2].replace(" ", "%20")
            url = URL(f"{house.root}/{'?' if query else ''}{query}", encoded=True)
            headers = {**(case.get("headers") or {}), "Accept": "text/html"}
            body = (case["body"] or "").encode()
            headers.pop("Content-Length", None)
            headers.pop("Host", None)
            async with http.request(
                case["method"], url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                assert answer.status == 200, path
                assert "takes readings here" not in await answer.text(), path
            families.add(path.parent.name)
    assert len(families) > 25, "the other families come by MQTT alone"
