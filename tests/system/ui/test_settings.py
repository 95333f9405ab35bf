"""Settings, accounts and keys, the banner and the help."""

import json
import re
from pathlib import Path

import pytest

from gateway.domain.key import ALL_SCOPES
from gateway.errors import StoreUnavailable
from gateway.forward.forwarding import PAUSED
from gateway.network import Peer
from gateway.services.access import INGEST_ONLY, READ_ONLY
from gateway.services.banner import worst_trouble
from gateway.services.brewsessions import SessionChange
from gateway.services.qr import as_path
from gateway.stats import Stats
from gateway.ui.views.help import FLAGS
from gateway.ui.views.settings import browser_name
from gateway.ui.words import CATALOGUES, LANGUAGES
from tests.cases import each
from tests.system.ui.site import Browser, logged_in, served


def tokens(browser: Browser) -> dict[str, str]:
    """What the viewer of this browser has chosen."""
    login = browser.services.logins.find(browser.cookie)
    assert login is not None
    return dict(login.preferences)


async def test_what_a_viewer_chooses_holds_from_the_next_page_on(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        browser.language = "de"
        chosen = {
            "language": "en",
            "gravity_unit": "P",
            "temp_unit": "F",
            "scheme": "dark",
            "zone": "Asia/Tokyo",
        }
        html = await browser.post("/settings", chosen)
        assert html.page.one(class_="notice").text == "Saved."
        assert html.page.one("html").attributes == {"lang": "en", "class": "dark"}
        for name, value in chosen.items():
            field = html.page.one("select", name=name)
            assert [option.attributes["value"] for option in field.all("option", selected="")] == [value]
        assert tokens(browser) == chosen
        await browser.post("/settings", {**chosen, "language": "", "scheme": "", "zone": ""})
        assert tokens(browser) == {"gravity_unit": "P", "temp_unit": "F"}
        html = await browser.post("/settings", dict.fromkeys(chosen, "../x"), 422)
        wrong = [field.attributes["name"] for field in html.page.all("select", **{"aria-invalid": "true"})]
        assert sorted(wrong) == sorted(chosen)
        assert tokens(browser) == {"gravity_unit": "P", "temp_unit": "F"}
        html = await browser.post("/language", {"language": "de", "next": "/ui/help"})
        assert html.page.one("h1").text == "Hilfe"
        html = await browser.post("/language", {"language": "xx", "next": "//evil.example"})
        assert tokens(browser)["language"] == "de"


async def test_a_zone_that_a_browser_told_and_no_list_has_is_kept(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        key = await browser.services.access.add("old")
        browser.cookie, _ = await browser.services.logins.log_in(key, Peer(""), "", zone="Etc/GMT-3")
        zone = (await browser.get("/settings")).page.one("select", name="zone")
        assert [each.attributes["value"] for each in zone.all("option", selected="")] == ["Etc/GMT-3"]


async def test_logins_are_listed_and_ended(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        logins, access = browser.services.logins, browser.services.access
        tablet = await access.add("tablet", READ_ONLY)
        secret, login = await logins.log_in(
            tablet, Peer("192.168.1.5"), "Mozilla/5.0 (iPad; CPU OS 12_5) Version/12.1 Safari/604.1"
        )
        html = await browser.get("/settings")
        assert "Safari, iPad" in html.text
        assert "key tablet, since" in html.text
        html = await browser.post(f"/settings/logins/{login.id}/end")
        assert html.page.one(class_="notice").text == "That browser is logged out."
        assert logins.find(secret) is None
        await browser.post(f"/settings/logins/{login.id}/end", status=404)
        admin = browser.cookie
        browser.cookie, mine = await logins.log_in(tablet, Peer("192.168.1.5"), "")
        html = await browser.get("/settings")
        assert "test 0" not in html.text, "a key that only looks sees other logins"
        assert "Log out everywhere" not in html.text
        [other] = [login for login in logins.all(1) if login.id != mine.id]
        await browser.post(f"/settings/logins/{other.id}/end", status=404)
        assert logins.find(admin) is not None
        browser.cookie = admin
        await browser.post("/settings/logins/end")
        assert logins.all(1) == []


async def test_another_account_ends_no_login_of_the_owner(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        anna = await browser.services.access.add_account("anna")
        owner = browser.services.logins.find(browser.cookie)
        assert owner is not None
        browser.cookie = await logged_in(browser.services, ALL_SCOPES, anna.name)
        await browser.post(f"/settings/logins/{owner.id}/end", status=404)
        html = await browser.get("/settings")
        assert "The gateway" not in html.text
        assert not html.page.all("input", name="brewery")
        for path in ("/settings/brewery", "/keys/accounts"):
            await browser.post(path, {"brewery": "Anna's", "account_name": "x"}, 403)
        await browser.get("/settings/gateway", 403)


async def test_the_brewery_has_the_name_that_its_owner_gives_it(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        page = browser.services.page
        html = await browser.post("/settings/brewery", {"brewery": " Höhle <b>& Söhne\u202e "})
        assert html.page.one("a", class_="brand").text == "Höhle <b>& Söhne"
        await page.start()
        assert page.brewery == "Höhle <b>& Söhne"
        rows = await browser.services.store.audit.page(limit=1)
        assert (rows[0].actor, rows[0].verb, rows[0].object) == ("page:test 0", "set", "page")
        page.fixed_brewery = "By option"
        html = await browser.get("/settings")
        assert html.page.one("a", class_="brand").text == "By option"
        assert not html.page.all("input", name="brewery")
        await browser.post("/settings/brewery", {"brewery": "x"}, 400)
        page.fixed_brewery = ""
        html = await browser.post("/settings/brewery", {"brewery": ""})
        assert html.page.one("a", class_="brand").text == "Brewery"


async def test_the_gateway_tells_its_state_in_the_words_of_the_status_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as browser:
        stats = browser.services.stats
        stats.say("http", "listening on http://192.168.1.20:8080")
        html = await browser.get("/settings")
        assert "All is well" in html.text
        assert re.search(r"\d+ [kM]B, [\d,.]+ [GT]B free", html.text.replace("\u00a0", " "))
        stats.say("store", "the disk is full", well=False)
        browser.language = "de"
        html = await browser.get("/settings")
        assert "Nicht alles in Ordnung" in html.text
        assert "the disk is full" in html.page.one("section", **{"data-live": "gateway"}).text
        assert html.page.one("a", class_="banner").text == "Nichts kann gespeichert werden: the disk is full."

        async def away(*_: object) -> None:
            raise StoreUnavailable

        monkeypatch.setattr(browser.services.store.totals, "storage", away)
        assert "the disk is full" in (await browser.get("/settings")).text


@each(
    "troubles, kind, is_bad",
    [
        ({}, "", False),
        ({"upstream https://a": "no answer", "clock": "set back"}, "clock", False),
        ({"upstream https://a": PAUSED}, "", False),
        ({"upstream https://a": "no answer", "mirror": "no answer"}, "sending", False),
        ({"tcp": "already in use", "upstream https://a": "no answer"}, "listener", True),
        ({"http 5000": "already in use", "store": "the disk is full"}, "store", True),
        ({"nightly backup": "the disk is full"}, "keeping", False),
        ({"retention": "held", "scrub": "fails", "deadlines": "off"}, "", False),
    ],
)
def test_the_banner_is_the_worst_of_what_keeps_readings(
    troubles: dict[str, str], kind: str, is_bad: bool
) -> None:
    stats = Stats()
    for part, words in troubles.items():
        stats.say(part, words, well=False)
    worst = worst_trouble(stats)
    assert (worst.kind if worst else "") == kind
    assert worst is None or (worst.is_bad, worst.words) == (is_bad, troubles[worst.part])


async def test_a_banner_is_for_the_owner_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        browser.services.stats.say("tcp", "port 9501 is taken", well=False)
        assert (await browser.get("/more")).page.one(class_="banner").text.endswith("port 9501 is taken.")
        anna = await browser.services.access.add_account("anna")
        browser.cookie = await logged_in(browser.services, ALL_SCOPES, anna.name)
        assert not (await browser.get("/more")).page.all(class_="banner")
        browser.cookie = ""
        assert not (await browser.get("/login")).page.all(class_="banner")


@each(
    "agent, name",
    [
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/130.0 Safari/537.36 Edg/130.0", "Edge, Windows"),
        ("Mozilla/5.0 (Linux; Android 9; SM-T580) Chrome/70.0 Safari/537.36", "Chrome, Android"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) Version/17.0 Safari/605.1", "Safari, Mac"),
        ("my own program", "my own program"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_browser_has_a_short_name(agent: str, name: str) -> None:
    assert browser_name(agent) == name


async def test_a_key_is_made_and_shown_once(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        access = browser.services.access
        html = await browser.post("/keys", {"name": "tablet <b>", "rights": "look", "days": "30"})
        assert html.headers["Cache-Control"] == "no-store"
        key = html.page.one("input", readonly="").attributes["value"]
        assert access.check(key, "read").name == "tablet <b>"
        assert access.check(key, "read").expires_at is not None
        listed = await browser.get("/keys")
        assert key not in listed.raw
        assert key[:10] in listed.text
        assert "tablet <b>" in listed.text
        html = await browser.post("/keys", {"name": "tablet <b>", "rights": "change"}, 422)
        assert html.page.one("input", name="name").attributes["value"] == "tablet <b>"
        assert "already" in html.page.one(class_="wrong").text
        for wrong in (
            {"name": ""},
            {"name": "x", "rights": "all"},
            {"name": "x", "days": "7"},
            {"name": "x" * 201},
        ):
            await browser.post("/keys", wrong, 422)
        html = await browser.post("/keys", {"name": "spindles", "rights": "report"})
        assert not html.page.all("svg"), "a code for a key that cannot log in"
        assert (
            access.check(html.page.one("input", readonly="").attributes["value"], "ingest").scopes
            == INGEST_ONLY
        )


async def test_a_phone_is_logged_in_by_a_code(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        there = "http://brewpi.lan:8080"
        html = await browser.post("/keys/phone", {"rights": "look"}, Host="brewpi.lan:8080", Origin=there)
        assert html.headers["Cache-Control"] == "no-store"
        key = html.page.one("input", readonly="").attributes["value"]
        drawn = html.page.one("svg").one("path").attributes["d"]
        assert drawn == as_path(f"http://brewpi.lan:8080/ui/login#{key}").path
        assert browser.services.access.check(key, "read").scopes == READ_ONLY
        html = await browser.post("/keys/phone", {"rights": "change"})
        assert not html.page.all("svg"), "no phone reaches 127.0.0.1"
        assert "Only this machine reaches the page" in html.text
        browser.services.page.address = "http://192.168.1.20:8080"
        html = await browser.post("/keys/phone", {"rights": "change"})
        key = html.page.one("input", readonly="").attributes["value"]
        drawn = html.page.one("svg").one("path").attributes["d"]
        assert drawn == as_path(f"http://192.168.1.20:8080/ui/login#{key}").path
        names = {each.name for each in browser.services.access.all()}
        assert {"phone", "phone 2", "phone 3"} <= names


async def test_a_key_is_revoked_with_its_logins_after_a_question(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        access, logins = browser.services.access, browser.services.logins
        secret, _ = await logins.log_in(await access.add("lost & found"), Peer(""), "Firefox")
        listed = await browser.get("/keys")
        assert "1 login" in listed.text
        [ask] = [
            a.attributes["href"] for a in listed.page.all("a") if a.text.startswith("Revoke lost & found")
        ]
        asked = await browser.get(ask)
        assert "Revoke the key lost & found?" in asked.text
        assert "1 login ends with it." in asked.text
        assert logins.find(secret) is not None
        [form] = [form for form in asked.page.all("form") if "/keys/revoke" in form.attributes["action"]]
        html = await browser.post(form.attributes["action"])
        assert html.page.one(class_="notice").text == "The key lost & found is revoked."
        assert logins.find(secret) is None
        await browser.post(form.attributes["action"], status=404)
        asked = await browser.get("/keys/revoke?account=owner&name=test+0")
        assert "You are logged in with it yourself" in asked.text
        html = await browser.post("/keys/revoke?account=owner&name=test+0")
        assert html.page.one("h1").text == "Log in"


async def test_a_replaced_key_is_valid_for_one_more_day(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        access = browser.services.access
        old = await access.add("spindles", INGEST_ONLY)
        assert "Replace the key spindles" in (await browser.get("/keys/rotate?name=spindles")).text
        html = await browser.post("/keys/rotate?name=spindles")
        new = html.page.one("input", readonly="").attributes["value"]
        assert html.headers["Cache-Control"] == "no-store"
        assert access.check(new, "ingest").scopes == access.check(old, "ingest").scopes
        listed = await browser.get("/keys")
        assert len([a for a in listed.page.all("a") if a.text.startswith("Revoke spindles")]) == 1
        await browser.post("/keys/rotate?name=nobody", status=404)


async def test_keys_of_other_accounts_are_the_owners_business_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        access = browser.services.access
        html = await browser.post("/keys/accounts", {"account_name": "anna"})
        assert html.page.one(class_="notice").text == "The account anna is made. Now make a key for it."
        await browser.post("/keys/accounts", {"account_name": "anna"}, 422)
        await browser.post("/keys", {"name": "hers", "rights": "change", "account": "anna"})
        [hers] = [key for key in access.all() if key.name == "hers"]
        assert hers.account_id != 1
        assert "Account anna" in (await browser.get("/keys")).text
        browser.cookie = await logged_in(browser.services, ALL_SCOPES, "anna")
        listed = await browser.get("/keys")
        assert "Account owner" not in listed.text
        assert "test 0" not in listed.text
        for path in ("/keys/revoke?account=owner&name=test+0", "/keys/rotate?account=owner&name=test+0"):
            await browser.get(path, 404)
            await browser.post(path, status=404)
        await browser.post("/keys", {"name": "x", "account": "owner"}, 404)
        browser.cookie = await logged_in(browser.services, READ_ONLY)
        await browser.get("/keys", 403)
        await browser.post("/keys/phone", {"rights": "change"}, 403)
        assert {key.name for key in access.all() if key.account_id == 1} >= {"test 0"}


async def test_help_tells_of_every_flag_in_every_language(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        for language in LANGUAGES:
            browser.language = language
            html = await browser.get("/help")
            assert html.page.one("html").attributes["lang"] == language
            shown = [code.text for code in html.page.one("section", id="flags").all("code")]
            assert shown == list(FLAGS)
        words = json.loads((CATALOGUES / "en.json").read_text("utf-8"))
        told = {key.removeprefix("device.flag.") for key in words if key.startswith("device.flag.")}
        assert told <= set(FLAGS)
        assert "MIT License" in (await browser.get("/help/licence")).text


async def test_a_link_is_made_shown_once_and_revoked_after_a_question(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        services = browser.services
        brew = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
        html = await browser.get("/settings/links")
        assert "No link yet." in html.text
        html = await browser.post(
            "/settings/links", {"link_name": "cellar", "kind": "picture", "brew": brew.id}
        )
        assert html.headers["Cache-Control"] == "no-store"
        address = html.page.one("input", readonly="").attributes["value"]
        token = address.rpartition("/")[2].removesuffix(".png")
        link = services.links.find(token, "picture")
        assert link is not None
        assert (link.session_id, link.options["gravity_unit"]) == (brew.id, "SG")
        listed = await browser.get("/settings/links")
        assert "A picture of the chart: HP001" in listed.text
        assert token not in listed.raw
        for wrong in (
            {"link_name": ""},
            {"link_name": "x", "kind": "page"},
            {"link_name": "x", "brew": "-1"},
        ):
            await browser.post("/settings/links", wrong, 422)
        await browser.post("/settings/links", {"link_name": "x", "brew": "99"}, 404)
        revoke = f"/settings/links/{link.id}/revoke"
        assert "Revoke the link cellar?" in (await browser.get(revoke)).text
        anna = await services.access.add_account("anna")
        owner, browser.cookie = browser.cookie, await logged_in(services, ALL_SCOPES, anna.name)
        await browser.get(revoke, 404)
        await browser.post(revoke, status=404)
        assert services.links.find(token, "picture") is not None, "another account has revoked it"
        browser.cookie = owner
        assert (await browser.post(revoke)).page.one(class_="notice").text == "The link is revoked."
        assert services.links.find(token, "picture") is None
