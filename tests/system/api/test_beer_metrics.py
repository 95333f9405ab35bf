"""The beer in `/metrics`: what is shown of devices and brews, when it goes away, and who sees it."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.domain.alarm import Alarm, AlarmEvent, Channel
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.domain.key import ALL_SCOPES
from gateway.domain.payload import Payload
from gateway.insight.records import PHASES
from gateway.intake.clock_check import ClockDoubt
from gateway.manage import beer_metrics, status
from gateway.services.brewsessions import SessionChange
from gateway.store.protocols.alarms import AlarmChange
from tests.system.api.everything import Running, running

INTERVAL_S = 900
HOUR_S = 3600
DAY_S = 24 * HOUR_S

OF_A_READING = {
    "gravity_sg": 1.03,
    "temperature_celsius": 20.5,
    "battery_volts": 3.9,
    "rssi_dbm": -71,
    "angle_degrees": 45.5,
}

Scrape = dict[str, list[tuple[dict[str, str], float]]]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


async def scrape(service: Running, key: str | None = None) -> Scrape:
    """The samples of each metric, labels and value, without the prefix of all."""
    answer = await service.ask("GET", "/metrics", key)
    assert answer.status == 200
    found: Scrape = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            assert sample.timestamp is None
            found.setdefault(sample.name.removeprefix("hydrometer_"), []).append(
                (sample.labels, sample.value)
            )
    return found


async def report(service: Running, name: str, ago_s: float, **members: Any) -> Device:
    """A report of an iSpindel, so many seconds ago."""
    body = {"name": name, "ID": name, "angle": 45.5, "temperature": 20.5, "temp_units": "C", "gravity": 1.03}
    body |= {"battery": 3.9, "RSSI": -71, "interval": INTERVAL_S} | members
    raw = json.dumps({member: value for member, value in body.items() if value is not None}).encode()
    await service.services.intake.take(Payload(raw, service.services.clock.now() - ago_s, "http /ingest"))
    return await device_of(service, name)


async def device_of(service: Running, name: str) -> Device:
    return next(each for each in await service.services.store.devices.all() if each.name == name)


async def brew(service: Running, code: str, device: Device, account: str = "owner") -> BrewSession:
    """A brew with the device in it, and its readings so far."""
    account_id = await service.services.access.account_id(account)
    session = await service.services.brewsessions.add_session(account_id, SessionChange(batchcode=code))
    await service.services.brewsessions.assign(str(device.id), session.id, 0)
    return session


async def fire(service: Running, rule: str, scope: Any, subject: int, account_id: int | None = None) -> None:
    alarm = Alarm(0, account_id, rule, scope, str(subject), "firing", since=1, fired_at=1)
    event = AlarmEvent(0, None, 1, "fired", "it fired")
    await service.services.alarms.apply(lambda _: [AlarmChange(alarm, event, tells=True)])


async def test_a_device_is_shown_with_its_last_reading(service: Running) -> None:
    device = await report(service, "Red", 60)
    found, labels = await scrape(service), {"device": device.key, "name": "Red"}
    for name, value in OF_A_READING.items():
        assert found[name] == [(labels, value)], name
    assert found["assigned"] == [(labels, 0)]
    assert found["report_interval_seconds"] == [(labels, INTERVAL_S)]
    [(_, at)] = found["last_reading_timestamp_seconds"]
    assert 0 <= service.services.clock.now() - at - 60 < 30
    assert not {"gravity_smoothed_sg", "battery_percent", "pressure_pascals"} & found.keys()


async def test_pressure_is_in_pascals_and_no_number_is_made_up(service: Running) -> None:
    await report(service, "Keg", 60, type="eManometer", gravity=None, angle=None, pressure=1.1)
    found = await scrape(service)
    assert [value for _, value in found["pressure_pascals"]] == [pytest.approx(110_000)]
    assert not {"gravity_sg", "angle_degrees"} & found.keys()


async def test_values_go_when_a_device_falls_silent_and_all_of_it_after_30_days(service: Running) -> None:
    await report(service, "Silent", 2.2 * INTERVAL_S)
    await report(service, "Late", 2 * INTERVAL_S)
    await report(service, "Gone", 30 * DAY_S + HOUR_S)
    found = await scrape(service)
    for name in OF_A_READING:
        assert [labels["name"] for labels, _ in found[name]] == ["Late"], name
    for name in ("last_reading_timestamp_seconds", "report_interval_seconds", "assigned"):
        assert sorted(labels["name"] for labels, _ in found[name]) == ["Late", "Silent"], name


async def test_without_an_interval_the_usual_gap_says_when_a_device_is_silent(service: Running) -> None:
    for ago_h in (8, 6, 4, 2):
        await report(service, "Rare", ago_h * HOUR_S, interval=None, gravity=1.03 - ago_h / 1e4)
    for ago_min in (180, 170, 160, 150, 140):
        await report(service, "Often", ago_min * 60, interval=None, gravity=1.03 - ago_min / 1e5)
    found = await scrape(service)
    assert [labels["name"] for labels, _ in found["gravity_sg"]] == ["Rare"]
    assert "report_interval_seconds" not in found


async def test_nothing_of_a_doubtful_clock(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    device = await report(service, "Red", 60)
    await brew(service, "B1", device)
    monkeypatch.setattr(service.services.clock_monitor, "doubt", ClockDoubt("nobody knows", None))
    assert not {*OF_A_READING, "last_reading_timestamp_seconds", "assigned"} & (await scrape(service)).keys()
    monkeypatch.undo()
    assert "gravity_sg" in await scrape(service)
    [summary] = await service.services.store.devices.summaries()
    doubtful = [replace(summary, flags=("clock_suspect",))]

    async def summaries() -> Any:
        return doubtful

    monkeypatch.setattr(service.services.store.devices, "summaries", summaries)
    assert "gravity_sg" not in await scrape(service)


async def test_a_brew_has_its_figures_and_its_phase(service: Running) -> None:
    device = await report(service, "Red", 80 * HOUR_S, gravity=1.05)
    session = await brew(service, "B1", device)
    for quarter in range(320, 0, -1):
        gravity = 1.05 - 0.0004 * (320 - quarter) / 4
        await report(service, "Red", quarter * INTERVAL_S, gravity=round(gravity, 5))
    found, labels = await scrape(service), {"session": str(session.id), "batchcode": "B1"}
    values = {name: found[name][0][1] for name in found if name.startswith("brew_")}
    assert values["brew_gravity_sg"] == pytest.approx(1.018, abs=0.001)
    assert values["brew_original_gravity_sg"] == pytest.approx(1.05, abs=0.002)
    assert values["brew_attenuation_ratio"] == pytest.approx(0.64, abs=0.03)
    assert values["brew_abv_ratio"] == pytest.approx(0.042, abs=0.003)
    assert values["brew_gravity_per_day_sg"] == pytest.approx(-0.0096, abs=0.001)
    assert values["brew_day"] == pytest.approx(80 / 24, abs=0.05)
    for name in values.keys() - {"brew_phase", "brew_alarm", "brew_device_info"}:
        assert found[name][0][0] == labels
    phases = {each["phase"]: value for each, value in found["brew_phase"]}
    assert set(phases) == set(PHASES)
    assert sorted(phases.values()) == [0] * 5 + [1]
    assert phases["lag"] == 0
    assert found["brew_device_info"] == [({**labels, "device": device.key, "name": "Red"}, 1)]
    assert found["gravity_smoothed_sg"] == [
        ({"device": device.key, "name": "Red"}, values["brew_gravity_sg"])
    ]
    await service.services.brewsessions.update_session(session, SessionChange(ended=True))
    assert not [name for name in await scrape(service) if name.startswith("brew_")]


async def test_limits_are_those_of_the_alarm_and_alarms_are_named_by_their_rules(service: Running) -> None:
    device = await report(service, "Red", 60)
    session = await brew(service, "B1", device)
    alarms, labels = service.services.alarms, {"device": device.key, "name": "Red"}
    assert "temperature_low_celsius" not in await scrape(service)
    await alarms.set("temperature", {"lo": 18, "hi": 22}, "brew", str(session.id))
    await fire(service, "stuck", "brew", session.id)
    await fire(service, "silent", "device", device.id)
    found = await scrape(service)
    assert found["temperature_low_celsius"] == [(labels, 18)]
    assert found["temperature_high_celsius"] == [(labels, 22)]
    fires = {
        (name, each["rule"]): value for name in ("brew_alarm", "device_alarm") for each, value in found[name]
    }
    assert {key for key, value in fires.items() if value} == {
        ("brew_alarm", "stuck"),
        ("device_alarm", "silent"),
    }
    assert ("brew_alarm", "done") in fires
    assert ("device_alarm", "battery") in fires
    assert ("brew_alarm", "keeper") not in fires
    await alarms.set("temperature", {"off": True}, "brew", str(session.id))
    assert "temperature_low_celsius" not in await scrape(service)


async def test_another_account_sees_its_own_beer_alone(service: Running) -> None:
    await service.services.access.add_account("other")
    key = await service.services.access.add("theirs", ALL_SCOPES, "other")
    other_id = await service.services.access.account_id("other")
    mine, theirs = await report(service, "Mine", 60), await report(service, "Theirs", 60)
    await report(service, "In no brew", 60)
    sessions = {"owner": await brew(service, "B1", mine), "other": await brew(service, "B2", theirs, "other")}
    await fire(service, "stuck", "brew", sessions["owner"].id)
    await fire(service, "stuck", "brew", sessions["other"].id, other_id)
    for name, account_id in (("mine", None), ("theirs", other_id)):
        channel = Channel(name, "ntfy", {"url": "https://a.example/b"}, account_id=account_id)
        await service.services.store.messages.save_channel(channel)
    found = await scrape(service, key)
    assert not [name for name in found if name.startswith("gateway_") and name != "gateway_messages"]
    seen = {(name, value) for name in found for labels, _ in found[name] for name, value in labels.items()}
    assert {value for name, value in seen if name in {"name", "batchcode", "channel"}} == {
        "Theirs",
        "B2",
        "theirs",
    }
    assert [each["rule"] for each, value in found["brew_alarm"] if value] == ["stuck"]
    found = await scrape(service)
    assert {each["name"] for each, _ in found["gravity_sg"]} == {"Mine", "Theirs", "In no brew"}
    assert {each["batchcode"] for each, value in found["brew_alarm"] if value} == {"B1", "B2"}
    assert {each["channel"] for each, _ in found["gateway_messages"]} == {"mine", "theirs"}
    assert "gateway_stored_total" in found


async def test_messages_and_readings_that_wait_are_counted(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "REST_FACTOR", 0.0)
    await service.services.store.messages.save_channel(
        Channel("phone", "ntfy", {"url": "https://a.example/b"})
    )
    await service.services.targets.add_with_key("cloud", "https://user:secret@a.example", "k" * 40)
    device = await report(service, "Red", 300)
    session = await brew(service, "B1", device)
    await fire(service, "stuck", "brew", session.id)
    found = await scrape(service)
    states = {each["state"]: value for each, value in found["gateway_messages"]}
    assert states == {"waiting": 1, "held": 0, "open": 0, "sent": 0, "merged": 0, "expired": 0}
    assert found["gateway_target_oldest_seconds"] == [({"target": "https://a.example"}, 0)]
    await service.services.store.targets.map(session.id, "https://user:secret@a.example", 7)
    [(_, waits_s)] = (await scrape(service))["gateway_target_oldest_seconds"]
    assert 300 <= waits_s < 330


async def test_a_scrape_is_bounded(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beer_metrics, "MOST", 2)
    for number in range(4):
        device = await report(service, f"d{number}", 60 * (number + 1))
        await brew(service, f"B{number}", device)
    found = await scrape(service)
    assert [each["name"] for each, _ in found["gravity_sg"]] == ["d0", "d1"]
    assert len({each["batchcode"] for each, _ in found["brew_alarm"]}) == 2
