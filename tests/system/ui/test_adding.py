"""The wizard: the right family, the right settings, and everything that is heard meanwhile."""

import json
import re
from pathlib import Path

import pytest

from gateway.domain.key import Scope
from gateway.domain.payload import Payload
from gateway.drivers.families import families
from gateway.services.knocks import KnockKind
from gateway.ui.words import catalogue
from tests.cases import each
from tests.clock import FakeClock
from tests.system.ui.site import Browser, Element, logged_in, served

WAY = "/devices/add/ispindel/http"


def spindle(**members: object) -> bytes:
    report = {"name": "iSpindel042", "ID": 5, "angle": 52.3, "temperature": 19.8, "temp_units": "C"}
    return json.dumps({**report, "gravity": 12.3, **members}).encode()


async def sent(page: Browser, body: bytes, driver: str | None = None) -> None:
    now = page.services.clock.now()
    await page.services.intake.take(Payload(body, now, "http /ingest", driver, source="192.168.1.37"))


async def ready(page: Browser) -> None:
    await page.services.intake.start()
    page.services.stats.listening |= {"http": "192.168.1.20:8080", "tcp": "192.168.1.20:9501"}


def typed(page: Element) -> dict[str, str]:
    """What the page says to type, by field."""
    fields = [*page.all("input", readonly=""), *page.all("textarea", readonly="")]
    return {each.attributes["aria-label"]: each.attributes.get("value", each.text) for each in fields}


async def test_the_search_finds_by_name_and_alias_and_leads_to_the_best_way(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        found = await page.get("/devices/add?q=i-spindle")
        assert found.page.all("b")[0].text == "iSpindel"
        assert len((await page.get("/devices/add")).page.all("b")) == len(families())
        other = await page.get("/devices/add?q=%3Cb%3Eteapot")
        assert 'has the name "<b>teapot"' in other.text
        assert other.page.one("a", class_="button").attributes["href"] == "/ui/devices/add/other"
        ways = (await page.get("/devices/add/ispindel")).page.all("li")
        assert ways[0].text == "HTTP the best way"
        assert [way for way in ways if "MQTT does not listen" in way.text]
        assert "There is no such family" in (await page.get("/devices/add/teapot", 404)).text
        assert "iSpindel has no such way" in (await page.get("/devices/add/ispindel/steam", 404)).text


async def test_settings_have_the_address_that_the_device_has_to_know(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await ready(page)
        here = (await page.get(WAY)).page
        assert typed(here) == {
            "Service Type": "HTTP",
            "Server Address": "192.168.1.20",  # not 127.0.0.1, which stands in the browser's bar
            "Server Port": "8080",
            "Path / URI": "/ingest/ispindel",
        }
        there = (await page.get(WAY, Host="10.1.2.3:81")).page
        assert typed(there)["Server Address"] == "10.1.2.3"
        assert "number is" not in there.text
        named = (await page.get(WAY, Host="brewpi.local")).page
        assert typed(named)["Server Address"] == "brewpi.local"
        assert "The gateway's number is 192.168.1.20." in named.text
        page.services.stats.listening["broker"] = "192.168.1.9:1884"
        mqtt = typed((await page.get("/devices/add/ispindel/mqtt")).page)
        assert (mqtt["Server Address"], mqtt["Server Port"]) == ("192.168.1.9", "1884")


async def test_a_listener_that_does_not_run_says_why_before_anybody_types(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        stats = page.services.stats
        stats.say("tcp", "TCP: port 9501 is taken", well=False)
        tcp = await page.get("/devices/add/ispindel/tcp")
        assert "TCP does not listen." in tcp.text
        assert "TCP: port 9501 is taken" in tcp.text
        fixed = await page.get("/devices/add/ispindel/craftbeerpi")
        assert "Nothing listens at port 5000" in fixed.text
        assert fixed.page.one("div", class_="warn").one("code").text == "--also-listen 5000"
        stats.listening |= {"tcp": "10.0.0.2:9501", "http 5000": "10.0.0.2:5000"}
        assert "does not listen" not in (await page.get("/devices/add/ispindel/tcp")).text
        assert "Nothing listens" not in (await page.get("/devices/add/ispindel/craftbeerpi")).text


async def test_every_family_and_every_way_has_its_page_in_both_languages(tmp_path: Path) -> None:
    async with served(tmp_path, clock=FakeClock()) as page:
        for number, family in enumerate(families().values()):
            page.language = "de" if number % 2 else "en"
            await page.get(f"/devices/add/{family.id}")
            for way in family.ways:
                shown = typed((await page.get(f"/devices/add/{family.id}/{way.id}")).page)
                assert shown.keys() == {field.name for field in way.fields}
                assert not [text for text in shown.values() if re.search(r"\{(host|key|\w+_port)\}", text)]


async def test_a_new_device_is_heard_judged_named_and_put_into_a_brew(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await ready(page)
        made = await page.client.post(
            "/manage/brewsessions",
            json={"batchcode": "HP001"},
            headers={"X-API-KEY": await page.services.access.add("maker", frozenset({"admin"}))},
        )
        assert made.status == 200
        await page.get(WAY)
        since = int(page.services.clock.now()) - 5
        await sent(page, spindle())
        heard = await page.get(f"{WAY}?since={since}")
        assert "iSpindel042" in heard.text
        assert "from 192.168.1.37" in heard.text
        assert "12.3 °P" in heard.text.replace("\u00a0", " ")
        assert "The gravity is taken for °P." in heard.text
        assert [button.text for button in heard.page.one("div", class_="buttons").all("button")] == [
            "Right",
            "No, it is SG",
        ]
        [device] = await page.services.store.devices.all()
        given = {"device": device.id, "since": since}
        last = await page.post(f"{WAY}/unit", given)
        assert last.page.one("input", name="name").attributes["value"] == "iSpindel042"
        assert not last.page.all("section")  # nothing that reloads while somebody types
        wrong = await page.post(f"{WAY}/save", {**given, "name": "Vat", "brew": "99"}, 422)
        assert "This brew is not running any more." in wrong.text
        assert wrong.page.one("input", name="name").attributes["value"] == "Vat"
        saved = await page.post(f"{WAY}/save", {**given, "name": "Fermenter 2", "brew": "1"})
        assert "Fermenter 2 is in HP001." in saved.text
        [device] = await page.services.store.devices.all()
        assert (device.settings.label, device.session_id) == ("Fermenter 2", 1)
        readings = await page.services.store.devices.parts(device.id)
        assert [part.session_id for part in readings] == [1]


async def test_no_it_is_sg_changes_the_unit_for_good(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await ready(page)
        await sent(page, spindle(gravity=1.2))
        [device] = await page.services.store.devices.all()
        await page.post(f"{WAY}/unit", {"device": device.id, "since": 0, "unit": "P"})
        [device] = await page.services.store.devices.all()
        assert device.settings.gravity_unit == "P"
        await page.post(f"{WAY}/unit", {"device": device.id, "unit": "furlong"}, 400)
        await page.post(f"{WAY}/unit", {"device": 99}, 404)


async def test_known_devices_quarantine_and_knocks_are_heard_too(tmp_path: Path) -> None:
    clock = FakeClock()
    async with served(tmp_path, clock=clock) as page:
        await ready(page)
        await sent(page, spindle())
        await sent(page, b"SG=1.045&Temp=68&Color=RED&Timepoint=45730.8&Beer=&Comment=", "tilt")
        clock.jump(100)
        since = int(clock.now())
        quiet = await page.get(f"{WAY}?since={since}")
        assert "iSpindel042" not in quiet.text
        clock.jump(1)
        await sent(page, spindle(gravity=12.2))
        await sent(page, b"SG=1.044&Temp=68&Color=RED&Timepoint=45730.9&Beer=&Comment=", "tilt")
        await sent(page, b'{"hello": "<b>world</b>"}')
        page.services.knocks.add(KnockKind.HTTPS, "192.168.1.44")
        page.services.knocks.add(KnockKind.PATH, "192.168.1.45", "/api/<isspindel>")
        heard = await page.get(f"{WAY}?since={since}")
        assert "iSpindel042 known already" in heard.text
        assert "RED" not in heard.text  # a known device of another family
        assert "192.168.1.37 sent something that was not understood: " in heard.text
        assert "192.168.1.44 speaks https to a port for plain http. just now Switch https off" in heard.text
        assert "192.168.1.45 reported to /api/<isspindel>, which nobody reads." in heard.text
        part = await page.get(f"{WAY}/heard?since={since}")
        assert "192.168.1.44" in part.text


async def test_a_device_that_waits_for_the_owners_word_is_heard_as_such(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await ready(page)
        page.services.intake.inbox.asks = True
        since = int(page.services.clock.now()) - 5
        await sent(page, spindle())
        heard = await page.get(f"{WAY}?since={since}")
        assert "iSpindel042 from 192.168.1.37 waits for your word" in heard.text
        assert not heard.page.all("form", action=f"/ui{WAY}/unit")


async def test_silence_for_two_intervals_opens_the_list_of_causes(tmp_path: Path) -> None:
    clock = FakeClock()
    async with served(tmp_path, clock=clock) as page:
        await ready(page)
        since = int(clock.now())
        early = await page.get(f"{WAY}?since={since}")
        assert "The usual time between two reports is 15 minutes." in early.text
        assert [each.attributes.get("open") for each in early.page.all("section")[0].all("details")] == [None]
        clock.jump(1801)
        late = await page.get(f"{WAY}?since={since}")
        assert "Nothing has come for two intervals." in late.text
        assert [each.attributes.get("open") for each in late.page.all("section")[0].all("details")] == [""]
        assert len(late.page.all("dt")) == 6


async def test_the_page_keeps_the_time_since_when_it_listens(tmp_path: Path) -> None:
    clock = FakeClock()
    async with served(tmp_path, clock=clock) as page:
        await ready(page)
        since = int(clock.now())
        answer = await page.client.get(f"/ui{WAY}", headers=page.headers, allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (303, f"/ui{WAY}?since={since}")
        clock.jump(60)
        html = (await page.get(f"{WAY}?since={since}")).raw
        assert f'data-src="/ui{WAY}/heard?since={since}"' in html
        # Without a script the page has to ask by itself; with one this stands in no element.
        assert '<noscript><meta http-equiv="refresh" content="10"></noscript>' in html
        for bad in ("x", "-1", "99999999999", str(since - 8 * 86_400), ""):
            assert f"since={int(clock.now())}" in (await page.get(f"{WAY}?since={bad}")).raw


async def test_a_key_is_made_once_and_may_only_report(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        way = "/devices/add/rapt/webhook"
        before = await page.get(way)
        assert typed(before.page)["URL"].endswith("/ingest/rapt/hg_...")
        for name in ("rapt", "rapt 2"):
            made = await page.post(f"{way}/key", {"since": int(page.services.clock.now())})
            key = typed(made.page)["URL"].rpartition("/")[2]
            found = next(each for each in page.services.access.all() if each.name == name)
            assert found.scopes == {"ingest"}
            assert key.startswith(found.shown)
            assert made.headers["Cache-Control"] == "no-store"
            assert "refresh" not in made.raw  # it would take the key away again
        assert key not in (await page.get(way)).raw


@each("scopes, account", [(frozenset({"read"}), None), (frozenset({"read", "admin"}), "other")])
async def test_who_may_not_change_sees_the_settings_and_nothing_that_is_heard(
    tmp_path_factory: pytest.TempPathFactory, scopes: frozenset[Scope], account: str | None
) -> None:
    async with served(tmp_path_factory.mktemp("adding")) as page:
        await ready(page)
        if account is not None:
            await page.services.access.add_account(account)
        page.cookie = await logged_in(page.services, scopes, account)
        await sent(page, spindle())
        shown = await page.get(f"{WAY}?since={int(page.services.clock.now()) - 5}")
        assert typed(shown.page)["Path / URI"] == "/ingest/ispindel"
        assert "iSpindel042" not in shown.text
        assert "A key of the owner's account" in shown.text
        await page.get(f"{WAY}/heard", 403)
        for form in ("unit", "save", "key"):
            await page.post(f"{WAY}/{form}", {"device": 1}, 403)


def test_every_kind_of_knock_has_its_words() -> None:
    for language in ("en", "de"):
        words = catalogue(language)
        assert all(f"adding.knock.{kind}" in words for kind in KnockKind)
        assert all(f"adding.knock.{kind}.remedy" in words for kind in KnockKind)
