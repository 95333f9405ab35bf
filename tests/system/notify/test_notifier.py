"""The notifier over real services: restarts, a doubtful clock, late readings, ends, a failing store."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import Alarm, AlarmEvent, Channel
from gateway.domain.payload import Payload
from gateway.domain.target import Target
from gateway.errors import StoreUnavailable
from gateway.intake.clock_check import ClockDoubt
from gateway.notify.notifier import LOOK_S, MINUTE, PART, REST_S, TOLD, Notifier
from gateway.services.brewsessions import SessionChange
from gateway.services.channels import Trouble
from gateway.services.device_settings import CalibrationChange
from gateway.services.sending import TargetSending
from gateway.store.protocols.alarms import AlarmChange
from gateway.store.sqlite.store import SqliteStore
from tests.patience import PATIENCE_S
from tests.system.notify.month import BEGIN, DAY_S, HOUR_S, Month, new_month

GAP_S = 900


@pytest.fixture
async def month(tmp_path: Path) -> AsyncIterator[Month]:
    async with new_month(tmp_path) as month:
        yield month


def report(at: int, sg: float = 1.050, celsius: float = 20.0, volts: float = 4.0) -> Payload:
    said = {
        "name": "GREEN", "ID": 7, "angle": 45, "temperature": celsius, "temp_units": "C", "battery": volts,
        "gravity": round(sg, 5), "gravity-unit": "G", "interval": GAP_S, "RSSI": -60,
    }  # fmt: skip
    return Payload(
        json.dumps(said).encode(), at, "http /ingest/ispindel", driver="ispindel", source="192.0.2.7"
    )


async def brew_with_device(month: Month) -> tuple[int, int]:
    """A brew and its device, which has reported once."""
    parts = month.services
    session = await parts.brewsessions.add_session(OWNER_ID, SessionChange(batchcode="B1"))
    await parts.intake.take(report(int(month.clock.now())))
    (device,) = await parts.store.devices.all()
    await parts.brewsessions.assign(device.key, session.id, since=0)
    return session.id, device.id


async def pass_time(
    month: Month, seconds: int, *, reports: bool = True, look: bool = True, **values: Any
) -> None:
    for _ in range(seconds // GAP_S):
        month.clock.advance(GAP_S)
        if reports:
            await month.services.intake.take(report(int(month.clock.now()), **values))
        if look:
            await month.look()


def firing(month: Month) -> list[str]:
    return sorted(alarm.rule for alarm in month.services.alarms.firing())


async def told(month: Month) -> list[tuple[str, str]]:
    return [(row[1], row[3]) for row in await month.messages()]


async def test_silent_waits_after_a_start_and_what_is_known_stays(month: Month) -> None:
    await brew_with_device(month)
    await pass_time(month, HOUR_S)
    assert firing(month) == []
    await pass_time(month, HOUR_S, reports=False)
    assert firing(month) == ["silent"]
    await month.restart()
    await month.look()
    assert firing(month) == ["silent"], "nothing is known yet, so nothing changes"
    await pass_time(month, GAP_S)
    assert firing(month) == []
    assert await told(month) == [("silent", "fired"), ("silent", "cleared")]
    month.clock.advance(2 * HOUR_S)  # the gateway was off
    await month.restart()
    await month.look()
    month.clock.advance(GAP_S + 599)
    await month.look()
    assert firing(month) == [], "readings may be on their way"
    month.clock.advance(2)
    await month.look()
    assert firing(month) == ["silent"]


async def test_while_the_clock_is_in_doubt_only_the_gateway_is_looked_at(month: Month) -> None:
    session, _ = await brew_with_device(month)
    await month.services.alarms.set("reached", {"day": 0.0}, "brew", str(session))
    await pass_time(month, HOUR_S // 2)
    (pending,) = month.services.alarms.open
    assert (pending.rule, pending.state) == ("reached", "pending")
    doubt = ClockDoubt("it says 1970", None)
    monitor = month.services.clock_monitor
    with (
        patch.object(monitor, "held_back", lambda: "waits for the clock"),
        patch.object(monitor, "doubt", doubt),
    ):
        month.clock.jump(-40 * 365 * DAY_S)
        for _ in range(6):
            month.clock.advance(GAP_S)
            await month.look()
        assert month.services.alarms.open[0] == pending, "it stands still"
        assert firing(month) == ["keeper"], "the clock needs a person after an hour"
    month.clock.jump(40 * 365 * DAY_S)
    await month.look()
    assert firing(month) == [], "nothing fires by the jump, and the clock is known"
    await pass_time(month, HOUR_S // 2)
    assert firing(month) == [], "a quarter of an hour before the doubt, and half an hour after it"
    await pass_time(month, HOUR_S // 4)
    assert firing(month) == ["reached"]
    assert [kind for rule, kind in await told(month) if rule != "keeper"] == ["fired"]


async def test_a_jump_of_the_clock_makes_nobody_silent(month: Month) -> None:
    await brew_with_device(month)
    await pass_time(month, HOUR_S)
    month.clock.jump(DAY_S)
    await month.look()
    assert firing(month) == []
    await pass_time(month, HOUR_S)
    assert firing(month) == []


ENDS = ["ended", "deleted", "over", "moved", "forgotten"]


@pytest.mark.parametrize("how", ENDS)
async def test_a_subject_that_ends_takes_its_alarms_along(month: Month, how: str) -> None:
    session, device = await brew_with_device(month)
    parts = month.services
    await parts.alarms.set("reached", {"day": 0.0, "text": "rack it"}, "brew", str(session))
    await pass_time(month, 2 * HOUR_S)
    await pass_time(month, HOUR_S, reports=False)
    assert firing(month) == ["reached", "silent"]
    before, stored = len(await told(month)), await parts.store.sessions.get(session)
    assert stored is not None
    if how == "ended":
        await parts.brewsessions.update_session(stored, SessionChange(ended=True))
    elif how == "deleted":
        await parts.brewsessions.delete_session(stored)
    elif how == "over":
        await parts.brewsessions.update_session(stored, SessionChange(phase="All Gone"))
    elif how == "moved":
        other = await parts.brewsessions.add_session(OWNER_ID, SessionChange(batchcode="B2"))
        await parts.brewsessions.assign("ispindel:7", other.id, since=month.clock.now())
    else:
        await parts.forgetting.forget(await parts.devices.find(device))
    await month.look()
    assert "reached" not in firing(month)
    reasons = [event.text for alarm, event in await month.history() if event.kind == "cleared"]
    words = {
        "ended": "The brew was ended.", "deleted": "The brew was deleted.",
        "over": "The brew is over: All Gone.",
        "moved": "No device is in the brew any more.",
        "forgotten": "No device is in the brew any more.",
    }  # fmt: skip
    assert words[how] in reasons
    assert len(await told(month)) == before or how == "moved", "a person did it, so nobody is told"


async def test_what_was_reached_by_a_calibration_is_history(month: Month) -> None:
    session, device = await brew_with_device(month)
    alarms = month.services.alarms
    await alarms.set("reached", {"sg": 1.045, "text": "dry hops"}, "brew", str(session))
    await pass_time(month, 12 * HOUR_S)
    change = CalibrationChange(gravity_offset=-0.010)
    await month.services.devices.configure(device, change.apply)
    await month.look()
    await pass_time(month, 4 * HOUR_S)
    assert firing(month) == []
    assert await told(month) == []
    assert [(alarm.rule, event.late) for alarm, event in await month.history()] == [("reached", True)]


async def test_what_is_reached_by_the_beer_is_told_once(month: Month) -> None:
    session, _ = await brew_with_device(month)
    await month.services.alarms.set("reached", {"sg": 1.045, "text": "dry hops"}, "brew", str(session))
    await pass_time(month, 6 * HOUR_S)
    await pass_time(month, 8 * HOUR_S, sg=1.040)
    assert firing(month) == ["reached"]
    (alarm,) = month.services.alarms.firing()
    assert "dry hops" in alarm.text
    await month.services.alarms.acknowledge(alarm.id, "me")
    await pass_time(month, 4 * HOUR_S, sg=1.050)
    await pass_time(month, 8 * HOUR_S, sg=1.040)
    await month.restart()
    await pass_time(month, 4 * HOUR_S, sg=1.040)
    assert await told(month) == [("reached", "fired")]


async def test_many_alarms_of_the_temperature_push_out_nothing_that_was_told(month: Month) -> None:
    session, _ = await brew_with_device(month)
    await month.services.alarms.set("reached", {"sg": 1.045}, "brew", str(session))
    await pass_time(month, 8 * HOUR_S, sg=1.040)
    assert await told(month) == [("reached", "fired")]
    at = int(month.clock.now())
    swings = [
        Alarm(0, None, "temperature", "brew", str(session), "ok", at, fired_at=at, cleared_at=at)
        for _ in range(TOLD)
    ]
    await month.services.store.alarms.change([AlarmChange(alarm) for alarm in swings])
    remembered = await month.services.store.alarms.told("brew", str(session), TOLD)
    assert [alarm.rule for alarm in remembered] == ["reached"]


async def test_a_store_that_fails_changes_nothing_and_is_looked_at_again(month: Month) -> None:
    await brew_with_device(month)
    await pass_time(month, HOUR_S)
    await pass_time(month, HOUR_S, reports=False, look=False)
    stats = month.services.stats
    with patch.object(type(month.services.store.alarms), "change", side_effect=StoreUnavailable("full")):
        for _ in range(3):
            await month.notifier._try_to_look(())
        assert (firing(month), stats.parts[PART], PART in stats.in_trouble) == ([], "full", True)
    assert await month.history() == []
    await month.notifier._try_to_look(())
    assert (firing(month), PART in stats.in_trouble) == (["silent"], False)
    assert await told(month) == [("silent", "fired")]


async def test_a_channel_that_fails_rings_on_the_others(month: Month) -> None:
    store, troubles = month.services.store, month.services.channels.troubles
    await store.messages.save_channel(Channel("mail", "webhook", {"url": "http://192.0.2.9/"}))
    troubles["mail"] = Trouble("the key is refused", int(month.clock.now()), blocked=True)
    await month.look()
    (alarm,) = month.services.alarms.firing()
    assert (alarm.rule, alarm.scope, alarm.subject) == ("sending", "target", "channel mail")
    assert "the key is refused" in alarm.text
    (_, event), *_ = await month.services.alarms.history()
    assert [message.channel for message in await store.messages.of_event(event.id)] == ["phone"]
    troubles["mail"] = Trouble("no answer", int(month.clock.now()))
    await month.look()
    assert firing(month) == [], "it is tried again"
    await pass_time(month, HOUR_S + GAP_S, reports=False)
    assert firing(month) == ["sending"], "for more than an hour"
    before = await month.history()
    await month.restart()
    troubles.clear()  # a start knows of none
    await month.look()
    assert firing(month) == ["sending"], "it has taken nothing yet"
    troubles["mail"] = Trouble("no answer", int(month.clock.now()))
    await month.look()
    assert (firing(month), await month.history()) == (["sending"], before), "it is as it was"
    del troubles["mail"]
    now = int(month.clock.now())
    tested = await store.messages.test("mail", AlarmEvent(0, None, now, "test", "a test"))
    await store.messages.mark("mail", [tested], "sent", sent_at=now)
    await month.look()
    assert firing(month) == []


async def test_what_was_refused_is_no_older_news_after_a_start(month: Month) -> None:
    parts = month.services
    await parts.store.targets.add(Target("brew", "https://brew.example", ""))
    [one] = await parts.sending.overview()
    refused = 0

    async def overview(_: object) -> list[TargetSending]:
        return [replace(one, state="well", refused=refused)]

    with patch.object(type(parts.sending), "overview", overview):
        await month.look()
        month.clock.advance(HOUR_S)
        refused = 2
        await month.look()
        assert firing(month) == ["sending"]
        for _ in range(3):
            await month.restart()
            await month.look()
            assert firing(month) == ["sending"], "nothing has changed"
            month.clock.advance(6 * HOUR_S)
            await month.look()
            assert firing(month) == ["sending"], "refused within a day"
        month.clock.advance(6 * HOUR_S)
        await month.look()
    assert firing(month) == []


async def test_what_the_gateway_says_of_itself(month: Month) -> None:
    await brew_with_device(month)
    stats, intake = month.services.stats, month.services.intake
    stats.say("nightly backup", "into /mnt: FAILED, is tried again within an hour: no disk", well=False)
    await month.look()
    (alarm,) = month.services.alarms.firing()
    assert (alarm.rule, alarm.subject, alarm.severity) == ("keeper", "backup", "critical")
    stats.say("nightly backup", "into /mnt: ok")
    await month.look()
    assert firing(month) == []
    stats.backed_up_at = month.clock.now() - 3 * DAY_S
    await month.look()
    assert "3 days old" in month.services.alarms.firing()[0].text
    stats.backed_up_at = month.clock.now()
    for _ in range(2):
        month.clock.advance(60)
        payload = replace(report(int(month.clock.now())), body=b"what is this?")
        await intake.take(payload)
    month.clock.advance(60)
    await month.look()
    (alarm,) = month.services.alarms.firing()
    assert alarm.subject == "quarantine"
    assert "192.0.2.7" in alarm.text
    await pass_time(month, GAP_S)
    assert firing(month) == [], "it is understood again"


async def test_alarms_that_a_damaged_file_has_taken_are_made_anew(month: Month) -> None:
    await brew_with_device(month)
    await pass_time(month, HOUR_S)
    await pass_time(month, HOUR_S, reports=False)
    store = month.services.store
    assert isinstance(store, SqliteStore)
    forget = "DELETE FROM messages", "DELETE FROM alarm_events", "DELETE FROM alarms"
    await store.alarms._writer.run(lambda c: [c.execute(each) for each in forget] and None)
    month.clock.advance(GAP_S)
    await month.services.intake.take(report(int(month.clock.now())))
    for _ in range(2):
        await month.notifier._try_to_look([MINUTE])
    assert (firing(month), PART in month.services.stats.in_trouble) == ([], False)


async def settled(true: Callable[[], bool]) -> None:
    """Wait until it is so, while no time passes, and everybody sleeps again."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)


async def test_it_runs_by_itself_and_looks_at_news_and_each_minute(month: Month) -> None:
    await brew_with_device(month)
    notifier = Notifier(month.services)
    task = asyncio.create_task(notifier.run())
    try:
        await settled(lambda: notifier.looks == 1)
        month.clock.advance(REST_S)
        month.services.notices.publish("reading")
        await settled(lambda: notifier.looks == 2)
        month.clock.advance(REST_S)
        month.clock.advance(LOOK_S)
        await settled(lambda: notifier.looks == 3)
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_setting_is_looked_at_before_the_minute_is_over(month: Month) -> None:
    await brew_with_device(month)
    await pass_time(month, HOUR_S)
    notifier = Notifier(month.services)
    task = asyncio.create_task(notifier.run())
    try:
        await settled(lambda: notifier.looks == 1)
        assert not [alarm for alarm in month.services.alarms.open if alarm.rule == "temperature"]
        await month.services.alarms.set("temperature", {"lo": 5, "hi": 10})
        month.clock.advance(REST_S)
        await settled(lambda: notifier.looks == 2)
        assert [alarm for alarm in month.services.alarms.open if alarm.rule == "temperature"]
    finally:
        task.cancel()
        await asyncio.wait([task])


def afternoon(seed: int) -> list[Payload]:
    """Ten hours of a beer that is warm for a while, a battery that fades, and a pause of the device."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    found = []
    for place in range(40):
        if 18 <= place < 22:
            continue
        warm = 24.0 if 24 <= place < 38 else 20.0
        sg = 1.050 - 0.0004 * place + dice.gauss(0, 0.0002)
        found.append(report(BEGIN + place * GAP_S, sg, warm, 3.9 if place < 20 else 3.4))
    return found


def new_folder(place: Path, name: str) -> Path:
    (place / name).mkdir()
    return place / name


async def end_state(directory: Path, order: Sequence[Payload]) -> tuple[set[Any], list[Any]]:
    async with new_month(directory, BEGIN) as month:
        session, _ = await brew_with_device(month)
        alarms = month.services.alarms
        await alarms.set("temperature", {"lo": 17, "hi": 22})
        await alarms.set("reached", {"sg": 1.045}, "brew", str(session))
        for payload in order:
            month.clock.advance(max(payload.received_at - month.clock.now(), 0))
            await month.services.intake.take(payload)
            await month.look()
        month.set_time(BEGIN + 40 * GAP_S)
        # What has just arrived must hold for an hour, too.
        await pass_time(month, 2 * HOUR_S, sg=1.035, celsius=24.0, volts=3.4)
        messages = await month.messages()
        keys = [(row[1], row[2], row[3], row[0]) for row in messages]
        assert len(keys) == len(set(keys)), "nothing is told twice"
        state = {(one.rule, one.scope, one.subject, one.state) for one in alarms.firing()}
        return state, keys


async def test_readings_in_any_order_end_in_the_same_state(tmp_path: Path) -> None:
    payloads = afternoon(1)
    expected, _ = await end_state(new_folder(tmp_path, "in order"), payloads)
    assert {rule for rule, *_ in expected} == {"temperature", "battery", "reached"}
    for seed in range(4):
        dice = random.Random(seed)  # noqa: S311 - no secret
        order = [payloads[0], *dice.sample(payloads[1:], len(payloads) - 1)]
        got, _ = await end_state(new_folder(tmp_path, str(seed)), order)
        assert got == expected
