"""`/manage/alarms`: what fires, its history, acknowledge and snooze, settings, check, test."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.alarm import RULES, Alarm, AlarmEvent
from gateway.domain.payload import Payload
from gateway.store.protocols.alarms import AlarmChange
from tests.payloads import ispindel
from tests.system.api.everything import Running, running
from tests.system.api.harmless import harmless


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as made:
        yield made


async def ask(here: Running, method: str, path: str, status: int = 200, **body: Any) -> Any:
    more: dict[str, Any] = {"json": body} if body else {}
    answer = await here.ask(method, f"/manage/alarms{path}", **more)
    assert answer.status == status, answer.body
    return json.loads(answer.body)


async def fire(here: Running, rule: str, scope: str, subject: str, hours: int, **more: Any) -> Alarm:
    at = int(here.services.clock.now()) - hours * 3600
    text = f"{rule} of {subject}"
    alarm = Alarm(0, None, rule, scope, subject, "firing", at, at, text=text, **more)  # type: ignore[arg-type]
    event = AlarmEvent(0, 0, at, "fired", text)
    (made,) = await here.services.alarms.apply(lambda _: [AlarmChange(alarm, event)])
    return made


async def brew(here: Running) -> str:
    """A brew with a device that has reported four times."""
    answer = await here.ask("POST", "/manage/brewsessions", json={"batchcode": "HP001"})
    number = str(json.loads(answer.body)["brewsessions"][0]["id"])
    now = here.services.clock.now()
    for n in range(4):
        body = ispindel(7, name="Red", gravity=f"1.0{50 - n}")
        await here.services.intake.take(Payload(body.encode(), now - 600 + n * 60, "http /ingest"))
    await here.services.brewsessions.assign("1", int(number), now - 3600)
    return number


async def test_the_worst_comes_first_and_says_what_it_is_about(here: Running) -> None:
    number = await brew(here)
    await fire(here, "started", "brew", number, 9)
    await fire(here, "battery", "device", "1", 5, evidence={"battery": 3.31})
    await fire(here, "keeper", "gateway", "disk", 1)
    found = await ask(here, "GET", "")
    assert found["count"] == "3"
    assert [(each["rule"], each["severity"], each["name"]) for each in found["alarms"]] == [
        ("keeper", "critical", "disk"),
        ("battery", "warning", "Red"),
        ("started", "info", "HP001"),
    ]
    battery = found["alarms"][1]
    assert (battery["state"], battery["subject"], battery["text"]) == ("firing", "1", "battery of 1")
    assert battery["evidence"] == {"battery": 3.31}
    assert battery["fired_at"].endswith("+00:00")
    assert [each["rule"] for each in (await ask(here, "GET", f"?brew={number}"))["alarms"]] == ["started"]
    assert [each["rule"] for each in (await ask(here, "GET", "?device=1"))["alarms"]] == ["battery"]
    assert (await ask(here, "GET", "?brew=99"))["alarms"] == []
    assert "not both" in (await ask(here, "GET", "?brew=1&device=1", 400))["detail"]


async def test_acknowledge_and_snooze(here: Running) -> None:
    alarm = await fire(here, "keeper", "gateway", "disk", 1)
    [after] = (await ask(here, "POST", f"/{alarm.id}/ack"))["alarms"]
    assert (after["state"], after["acked_by"]) == ("acknowledged", "key:test")
    [after] = (await ask(here, "POST", f"/{alarm.id}/snooze", until="8h"))["alarms"]
    assert after["state"] == "snoozed"
    assert after["snoozed_until"] > after["acked_at"]
    for until, words in (("soon", "no time of quiet"), ("2020-01-01T08:00", "within")):
        assert words in (await ask(here, "POST", f"/{alarm.id}/snooze", 400, until=until))["detail"]
    for path in ("/99/ack", "/x/ack"):
        assert (await ask(here, "POST", path, 404))["detail"] == "no records found"
    events = (await ask(here, "GET", "/history"))["events"]
    assert [each["kind"] for each in events] == ["snoozed", "acknowledged", "fired"]
    assert [each["kind"] for each in (await ask(here, "GET", "/history?last=1"))["events"]] == ["snoozed"]
    assert "from 1 to 10000" in (await ask(here, "GET", "/history?last=0", 400))["detail"]


async def test_settings_are_made_taken_back_and_refused(here: Running) -> None:
    number = await brew(here)
    rules = {each["rule"]: each for each in (await ask(here, "GET", "/settings"))["rules"]}
    assert list(rules) == list(RULES)
    assert rules["temperature"]["limits"] == ["lo", "hi"]
    await ask(here, "PUT", "/settings", rule="temperature", setting={"lo": 17, "hi": "22.5"})
    given: dict[str, Any] = {"scope": "brew", "subject": number}
    await ask(here, "PUT", "/settings", rule="reached", setting={"day": 9, "text": "dry hops"}, **given)
    await ask(here, "PUT", "/settings", setting={"off": True}, scope="device", subject="1")
    found = (await ask(here, "GET", "/settings"))["settings"]
    assert [(each["rule"], each["scope"], each["name"], each["setting"]) for each in found] == [
        ("temperature", "all", "", {"lo": 17, "hi": 22.5}),
        ("reached", "brew", "HP001", {"day": 9, "text": "dry hops"}),
        ("", "device", "Red", {"off": True}),
    ]
    await ask(here, "PUT", "/settings", rule="reached", default=True, **given)
    assert len((await ask(here, "GET", "/settings"))["settings"]) == 2
    for wrong, status, words in (
        ({"rule": "stuk", "setting": {"off": True}}, 400, "did you mean 'stuck'?"),
        ({"rule": "stuck", "setting": {"lo": 1}}, 400, "no setting 'lo'"),
        ({"rule": "temperature", "setting": {"lo": 22, "hi": 17}}, 400, "lo is below hi"),
        ({"rule": "temperature"}, 400, "either setting or default"),
        ({"rule": "temperature", "setting": {"lo": 1}, "default": True}, 400, "either setting or default"),
        ({"rule": "stuck", "setting": {"off": True}, "scope": "brew", "subject": "99"}, 404, "no records"),
        ({"rule": "stuck", "setting": {"off": True}, "scope": "device", "subject": "9"}, 404, "no records"),
        ({"rule": "stuck", "setting": {"off": True}, "scope": "device", "subject": "1"}, 400, "not for a"),
        ({"rule": "sending", "setting": {"off": True}, "scope": "target", "subject": "x"}, 404, "no records"),
        ({"rule": "stuck", "setting": {"off": True}, "scope": "brew", "subject": "x"}, 400, "no id of a"),
    ):
        assert words in (await ask(here, "PUT", "/settings", status, **wrong))["detail"], wrong


async def test_each_rule_says_what_it_sees(here: Running) -> None:
    number = await brew(here)
    checks = (await ask(here, "GET", f"/check?brew={number}"))["checks"]
    by_rule = {(each["scope"], each["rule"]): each for each in checks}
    assert by_rule["brew", "stuck"]["name"] == "HP001"
    assert all(each["why_not"] for each in checks if not each["fires"])
    assert by_rule["device", "battery"]["saw"] == "3.95 V"
    for at in ("0001-01-01", "9999-12-31T23:59:59Z"):
        assert "at lies in the future" in (await ask(here, "GET", f"/check?at={at}", 400))["detail"]
    for at in ("1970-01-01", "2026-03-01T18:30:00Z"):
        for more in ("", "&as_of_now=true"):
            assert (await ask(here, "GET", f"/check?at={at}{more}"))["count"] != "0"
    assert {each["scope"] for each in (await ask(here, "GET", "/check"))["checks"]} >= {"brew", "gateway"}
    await ask(here, "GET", "/check?brew=99", 404)
    await ask(here, "GET", "/check?at=noon", 400)


async def test_a_test_goes_through_the_channels_or_says_why_not(here: Running) -> None:
    assert "no channel yet" in (await ask(here, "POST", "/test", 400, rule="stuck"))["detail"]
    await here.services.channels.add("phone", "webhook", {"url": harmless()})
    [outcome] = (await ask(here, "POST", "/test", rule="stuck"))["channels"]
    assert outcome == {"channel": "phone", "text": "not sent: no gateway is running"}
    assert "no rule 'stuk'" in (await ask(here, "POST", "/test", 400, rule="stuk"))["detail"]
    assert "no records" in (await ask(here, "POST", "/test", 404, channel="mail"))["detail"]


async def test_the_series_of_a_brew_has_its_alarms(here: Running) -> None:
    number = await brew(here)
    at = int(here.services.clock.now()) - 550
    alarm = Alarm(0, None, "stuck", "brew", number, "firing", at, at, text="It stands.")
    event = AlarmEvent(0, 0, at, "fired", "It stands.")
    await here.services.alarms.apply(lambda _: [AlarmChange(alarm, event)])
    answer = await here.ask("GET", f"/manage/brewsessions/{number}/series")
    assert json.loads(answer.body)["alarms"] == [{"at": at, "rule": "stuck", "text": "It stands."}]
