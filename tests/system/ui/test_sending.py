"""The page of sending on, before a scripted service: states, the table, a key that nobody sees again."""

import json
import logging
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.payload import Payload
from gateway.domain.target import Route, TargetState
from gateway.services.brewsessions import SessionChange
from gateway.services.mapped_targets import NewMapped
from tests.cases import each
from tests.cloud import KEY, ScriptedCloud, running, status
from tests.system.ui.site import Browser, served

NASTY = '"><img src=x onerror=alert(1)>{{7*7}}'

ADD = "/sending/add"


@asynccontextmanager
async def before(directory: Path) -> AsyncIterator[tuple[Browser, ScriptedCloud]]:
    """A page, and a service that has two brews."""
    async with running(ScriptedCloud()) as cloud, served(directory) as browser:
        cloud.listed += [
            {
                "id": "70",
                "batchcode": "HP001",
                "recipe_title": NASTY,
                "phase": "Primary",
                "userdate": "2026-03-01",
            },
            {"id": 71, "batchcode": "", "recipe_title": "Stout", "created_at": "2026-02-01 10:00:00"},
        ]
        yield browser, cloud


async def with_target(browser: Browser, cloud: ScriptedCloud, name: str = "club") -> None:
    await browser.post(ADD, {"name": name, "url": f"{cloud.url}/v1/", "key": KEY})


async def a_brew(browser: Browser, code: str = "HP001", *, reports: bool = True) -> int:
    """A brew with two readings; with a device in it if it `reports`."""
    services = browser.services
    phase = "Primary Fermentation" if reports else "Completed"
    made = await services.brewsessions.add_session(1, SessionChange(batchcode=code, phase=phase))
    if reports:
        body = b'{"name":"iSpindel042","ID":42,"angle":40,"temperature":20,"gravity":1.05}'
        await services.intake.start()
        await services.intake.take(Payload(body, 1_772_616_600.0, "http /ingest/ispindel", "ispindel"))
        device = (await services.store.devices.all())[0]
        await services.store.devices.assign(device.id, made.id, None)
    rows = [{"gravity": 1.05, "created_at": f"2026-03-0{day}"} for day in (1, 2)]
    await services.importing.run(made, json.dumps(rows).encode(), "json", "", reset=False)
    return made.id


async def test_without_any_service_the_page_is_calm_about_it(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await a_brew(browser)
        text = (await browser.get("/sending")).text
        assert "Readings are kept here and sent nowhere. Nothing to do if you want it so." in text
        assert "nowhere." in text
        browser.language = "de"
        assert "Wenn du es so willst, ist nichts zu tun." in (await browser.get("/sending")).text


async def test_a_service_is_tried_and_added_and_nobody_sees_its_key_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with before(tmp_path) as (browser, cloud):
        wrong = await browser.post(ADD, {"name": "club", "url": cloud.url, "key": "hg_secret"}, 422)
        assert "refuses the key" in wrong.text
        assert "hg_secret" not in wrong.raw
        assert wrong.page.one("input", name="name").attributes["value"] == "club"
        assert not (tmp_path / "target-keys").exists()
        done = await browser.post(ADD, {"name": "club", "url": f"{cloud.url}/v1", "key": KEY})
        file = tmp_path / "target-keys" / "club.key"
        assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == (f"{KEY}\n", 0o600)
        assert "club is added. Now choose which brews go there." in done.text
        assert cloud.url in done.text
        pages = [
            "/sending",
            "/sending/states",
            "/sending/club/key",
            "/sending/club/remove",
            "/sending/club/resend",
        ]
        for path in pages:
            assert KEY not in (await browser.get(path)).raw
    assert KEY not in caplog.text
    assert "hg_secret" not in caplog.text


@each(
    "fields, sentence",
    [
        ({"name": "a b"}, "A name is made of letters"),
        ({"name": "upstream"}, "An option of the gateway uses this name"),
        ({"name": "taken"}, "There is a service of this name"),
        ({"url": "ftp://x"}, "An address looks like"),
        ({"url": "http://brew.example"}, "The key would go unencrypted over the Internet."),
        ({"key": "two\nlines"}, "A key is one line"),
        ({"key": ""}, "Something is missing here."),
        ({"per_minute": "0"}, "A whole number from 1 to 6000."),
        ({"url": "http://127.0.0.1:9"}, "gives no answer"),
    ],
)
async def check_wrong(browser: Browser, cloud: ScriptedCloud, fields: dict[str, str], sentence: str) -> None:
    given = {"name": "club", "url": cloud.url, "key": KEY, **fields}
    answer = await browser.post(ADD, given, 422)
    assert sentence in answer.text, answer.text
    assert answer.page.one("div", role="alert").all("a") or "gives no answer" in answer.text
    assert [target.name for target in await browser.services.store.targets.all()] == ["taken"]


async def test_what_is_wrong_in_the_form_stands_beside_its_field(tmp_path: Path) -> None:
    async with before(tmp_path) as (browser, cloud):
        await browser.services.targets.add_with_key("taken", "http://localhost:9/x", KEY)
        await check_wrong(browser=browser, cloud=cloud)


async def test_a_warning_about_plain_http_and_a_service_that_is_away_can_be_overruled(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        fields = {"name": "club", "url": "http://brew.example", "key": KEY}
        asked = await browser.post(ADD, fields, 422)
        assert asked.page.one("input", name="plaintext").attributes["type"] == "checkbox"
        assert not asked.page.all("input", name="anyway")
        asked = await browser.post(ADD, {**fields, "anyway": "1"}, 422)
        ticks = {
            each.attributes["name"]: each.attributes for each in asked.page.all("input", type="checkbox")
        }
        assert {name: "checked" in tick for name, tick in ticks.items()} == {
            "plaintext": False,
            "anyway": True,
        }
        await browser.post(ADD, {**fields, "plaintext": "1", "anyway": "1"})
        assert [t.url for t in await browser.services.store.targets.all()] == ["http://brew.example"]


async def test_the_table_has_each_brew_at_each_service(tmp_path: Path) -> None:
    async with before(tmp_path) as (browser, cloud):
        brew = await a_brew(browser)
        old = await a_brew(browser, "OLD", reports=False)
        await with_target(browser, cloud)
        page = (await browser.get("/sending")).page
        assert "1 running brew goes nowhere" in page.text
        assert "finished" not in page.text
        links = [link.attributes["href"] for link in page.all("a") if "/brews/" in link.attributes["href"]]
        assert f"/ui/sending/club/brews/{brew}" in links
        await browser.post(f"/sending/club/brews/{brew}", {"number": "70"})
        await browser.post(f"/sending/club/brews/{old}", {"typed": "9"})
        text = (await browser.get("/sending")).text
        assert "goes nowhere" not in text
        assert "HP001 not started yet 0 sent, 2 wait number 70" in text
        assert "1 finished brew" in text
        browser.services.targets.states["club"] = TargetState(
            "ok", kind="partly", not_taken={brew: "HTTP 404"}
        )
        text = (await browser.get("/sending/states")).text
        assert "club does not take every brew" in text
        assert "HP001 not taken there" in text


async def test_states_are_words_and_their_reasons_stand_beside_them(tmp_path: Path) -> None:
    async with before(tmp_path) as (browser, cloud):
        await with_target(browser, cloud)
        states = browser.services.targets.states
        states["club"] = TargetState("x", 1_772_616_600, "retries", f"HTTP 503 {NASTY}")
        part = await browser.get("/sending/states")
        assert "no answer, tries again" in part.text
        assert f"HTTP 503 {NASTY}" in part.text
        assert NASTY not in part.raw
        assert "Next attempt at " in part.text
        browser.language = "de"
        states["club"] = TargetState("x", kind="blocked", reason="HTTP 401")
        part = await browser.get("/sending/states")
        assert "steht: Du musst etwas tun" in part.text
        assert part.page.one("bdi", lang="en").text == "HTTP 401"
        section = (await browser.get("/sending")).page.one("section")
        assert section.attributes["data-live"] == "sending"


async def test_pause_resume_and_remove(tmp_path: Path) -> None:
    async with before(tmp_path) as (browser, cloud):
        await with_target(browser, cloud)
        text = (await browser.post("/sending/club/pause")).text
        assert "Nothing is sent to club now." in text
        assert "paused by you" in text
        assert "Resume" in text
        assert "not started yet" in (await browser.post("/sending/club/resume")).text
        asked = await browser.get("/sending/club/remove")
        assert "Remove club?" in asked.text
        assert [t.name for t in await browser.services.store.targets.all()] == ["club"]
        await browser.post("/sending/club/remove")
        assert await browser.services.store.targets.all() == []
        assert not (tmp_path / "target-keys" / "club.key").exists()
        for path in ("pause", "resume", "test", "remove", "key", "resend"):
            await browser.post(f"/sending/club/{path}", {"key": KEY, "since": "2026-03-01"}, 404)


async def test_a_number_is_chosen_from_a_list_that_is_fetched_there(tmp_path: Path) -> None:
    async with before(tmp_path) as (browser, cloud):
        brew = await a_brew(browser)
        await with_target(browser, cloud)
        path = f"/sending/club/brews/{brew}"
        form = await browser.get(path)
        radios = form.page.all("input", type="radio")
        assert [(r.attributes["value"], "checked" in r.attributes) for r in radios] == [
            ("70", True),
            ("71", False),
        ]
        assert NASTY in form.text
        assert NASTY not in form.raw
        for fields in ({}, {"typed": "x"}, {"typed": "0"}, {"number": "-1"}):
            await browser.post(path, fields, 422)
        done = await browser.post(path, {"number": "70", "typed": "72"})
        assert "HP001 goes to club from now on, as number 72." in done.text
        cloud.reads.append(status(503))
        form = await browser.get(path)
        assert "The list of club cannot be fetched." in form.text
        assert form.page.one("input", name="typed").attributes["value"] == "72"
        assert "no longer sent to club" in (await browser.post(f"{path}/stop")).text
        await browser.get("/sending/club/brews/99", 404)
        await browser.get(f"/sending/nobody/brews/{brew}", 404)


async def test_a_test_says_in_words_what_is_right_and_what_is_not(tmp_path: Path) -> None:
    async with before(tmp_path) as (browser, cloud):
        await with_target(browser, cloud)
        assert "No brew is sent there yet." in (await browser.post("/sending/club/test")).text
        brew = await a_brew(browser)
        await browser.post(f"/sending/club/brews/{brew}", {"number": "70"})
        assert "HP001 is number 70 there" in (await browser.post("/sending/club/test")).text
        cloud.unknown.add(70)
        browser.language = "de"
        assert "HP001 soll dort Nummer 70 sein" in (await browser.post("/sending/club/test")).text
        assert cloud.imports == []


async def test_another_key_is_tried_first(tmp_path: Path) -> None:
    async with before(tmp_path) as (browser, cloud):
        await with_target(browser, cloud)
        file = tmp_path / "target-keys" / "club.key"
        wrong = await browser.post("/sending/club/key", {"key": "wrong"}, 422)
        assert "refuses the key" in wrong.text
        assert file.read_text() == f"{KEY}\n"
        cloud.key = "newer"
        await browser.post("/sending/club/key", {"key": "newer"})
        assert file.read_text() == "newer\n"


async def test_readings_are_sent_again_since_a_day(tmp_path: Path) -> None:
    async with before(tmp_path) as (browser, cloud):
        await with_target(browser, cloud)
        brew = await a_brew(browser)
        other = await a_brew(browser, "OTHER", reports=False)
        await browser.post(f"/sending/club/brews/{brew}", {"number": "70"})
        form = (await browser.get("/sending/club/resend")).page
        assert [option.text for option in form.all("option")] == ["All brews", "HP001"]
        done = await browser.post("/sending/club/resend", {"since": "2026-03-01", "brew": str(brew)})
        assert "0 readings are looked for at club" in done.text
        for fields in ({}, {"since": "yesterday"}, {"since": "2026-03-01", "brew": str(other)}):
            await browser.post("/sending/club/resend", fields, 422)


async def test_only_the_owner_with_an_admin_key_sees_any_of_it(tmp_path: Path) -> None:
    paths = ["/sending", "/sending/states", "/sending/add", "/sending/club/key"]
    async with served(tmp_path / "read", frozenset({"read"})) as browser:
        assert "/ui/sending" not in (await browser.get("/more")).raw
        for path in paths:
            await browser.get(path, 403)
    async with served(tmp_path / "other") as browser:
        await browser.services.access.add_account("other")
        from tests.system.ui.site import logged_in

        browser.cookie = await logged_in(browser.services, account="other")
        assert "/ui/sending" not in (await browser.get("/more")).raw
        for path in paths:
            await browser.get(path, 403)
        await browser.post(ADD, {"name": "club", "url": "https://x.example", "key": KEY}, 403)
        assert await browser.services.store.targets.all() == []


async def test_a_target_of_another_kind_has_its_kind_and_what_goes_there(tmp_path: Path) -> None:
    async with before(tmp_path) as (browser, _):
        mapped, address = browser.services.mapped, "http://127.0.0.1:9"
        await mapped.add(NewMapped("grafana", "influx", address, options={"api": 1, "bucket": "b"}))
        secret = NewMapped("hook", "webhook", f"{address}/x?id=S3CRET", private_url=True)
        await mapped.add(replace(secret, options={"latest": True}))
        brew = await a_brew(browser)
        page = await browser.get("/sending")
        assert f"InfluxDB · {address}" in page.text
        assert page.text.count("Nothing goes there yet") == 2
        assert "An outage leaves a gap there, not here" in page.text
        assert f"{address}/x?..." in page.text
        assert "S3CRET" not in page.raw
        assert not page.page.all("table")
        await mapped.add_route("grafana", Route("brew", brew), 0)
        assert "It gets HP001." in (await browser.get("/sending")).text
        assert "It cannot be used so." in (await browser.post("/sending/grafana/test")).text
        again = await browser.post("/sending/grafana/resend", {"since": "2026-01-01"})
        assert "0 readings are sent to grafana again." in again.text
        browser.language = "de"
        assert "Dorthin gehen HP001." in (await browser.get("/sending")).text
