"""What is at the broker, when, and what goes: with a real mosquitto."""

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.alarm import Alarm, AlarmEvent
from gateway.domain.brewsession import BrewSession
from gateway.insight.records import Insight, OriginalGravity
from gateway.integrations.home_assistant import publisher as module
from gateway.services.build import Services, build_services
from gateway.services.device_settings import BasicChange
from gateway.store.protocols.alarms import AlarmChange
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.homeassistant.schema import faults_of
from tests.system.integrations.conftest import CONFIGS, INSTANCE, OWN, House, Listener
from tests.system.transports.conftest import wait_for, wait_until

pytestmark = pytest.mark.broker

RED = "ispindel_7"


def names_of(slug: str) -> set[str]:
    base = f"{OWN}/device/{slug}"
    return {f"{CONFIGS}/hg_{INSTANCE}_{slug}/config", f"{base}/availability", f"{base}/state"}


GATEWAY = {f"{CONFIGS}/hg_{INSTANCE}/config", f"{OWN}/gateway/state", f"{OWN}/status"}


async def brew_of(house: House, **more: Any) -> BrewSession:
    """An open brew with the device 1."""
    session = BrewSession(0, 1, "2026-07", "Primary Fermentation", 0, None, 0, 0, **more)
    session = await house.services.store.sessions.add(session)
    await house.services.brewsessions.assign("1", session.id, None)
    return session


async def is_noted(services: Services, number: int) -> bool:
    return await services.store.published.last_event() == number


async def test_the_retained_messages_are_those_of_the_table(house: House, listener: Listener) -> None:
    await house.report(battery=3.98, RSSI=-61)
    async with house.publishing():
        await house.settled()
        assert listener.retained.keys() == GATEWAY | names_of(RED)
        # The gateway's device before those that refer to it; for each what it is, then what it says.
        assert listener.topics() == [
            f"{CONFIGS}/hg_{INSTANCE}/config",
            f"{CONFIGS}/hg_{INSTANCE}_{RED}/config",
            f"{OWN}/device/{RED}/availability",
            f"{OWN}/gateway/state",
            f"{OWN}/device/{RED}/state",
            f"{OWN}/status",
        ]
        for slug in ("", RED):
            assert faults_of(listener.config(slug)) == []
        assert listener.retained[f"{OWN}/device/{RED}/availability"] == "online"
        state = listener.state(RED)
        assert (state["sg"], state["temp_c"], state["battery_v"], state["rssi"]) == (1.05, 20.0, 3.98, -61)
        gateway = listener.state("", "gateway")
        assert {**gateway, "disk_free": 0} == {"waiting": 0, "quarantine": 0, "disk_free": 0, "targets": {}}
    assert listener.retained[f"{OWN}/status"] == "offline"
    assert listener.retained.keys() == GATEWAY | names_of(RED)


async def test_a_state_at_most_every_ten_seconds_and_the_newest_wins(
    house: House, listener: Listener, clock: FakeClock
) -> None:
    await house.report()
    async with house.publishing():
        await house.settled()
        before = len(listener.live)
        for gravity in (1.049, 1.048, 1.047):
            clock.advance(2)
            await house.report(gravity=gravity)
        await wait_for(lambda: min(clock.naps) == 4)
        assert len(listener.live) == before
        clock.advance(4)
        await wait_for(lambda: listener.state(RED)["sg"] != 1.05)
        assert listener.state(RED)["sg"] == 1.047
        assert listener.topics()[before:] == [f"{OWN}/device/{RED}/state"]


async def test_a_reading_after_a_while_is_there_at_once(
    house: House, listener: Listener, clock: FakeClock
) -> None:
    await house.report()
    async with house.publishing():
        await house.settled()
        clock.advance(900)
        await house.report(gravity=1.049)
        await wait_for(lambda: listener.state(RED)["sg"] == 1.049)


async def test_an_alarm_changes_the_state_at_once_and_is_an_event_that_is_not_retained(
    house: House, listener: Listener
) -> None:
    await house.report()
    session = await brew_of(house)
    stuck = Alarm(1, None, "stuck", "brew", str(session.id), "firing", 0, text="stuck at 1.020")
    now = int(house.services.clock.now())
    old = AlarmEvent(3, 1, now, "fired", "from before the first start")
    house.alarms.events = [(stuck, old)]
    async with house.publishing():
        await house.settled()
        assert listener.state(RED)["alarms"]["stuck"] is False
        house.alarms.open = [stuck]
        news = [
            AlarmEvent(4, 1, now, "fired", "stuck at 1.020"),
            AlarmEvent(5, 1, now, "snoozed", ""),
            AlarmEvent(6, 1, now, "reminder", "still stuck"),
            AlarmEvent(7, 1, now, "fired", "it would have", late=True),
            AlarmEvent(8, 1, now - 25 * 3600, "fired", "a day ago"),
        ]
        house.alarms.events += [(stuck, event) for event in news]
        house.services.notices.publish("alarm", brew=session.id)
        await wait_for(lambda: listener.state(RED)["alarms"]["stuck"])
        await wait_for(lambda: sum(topic.endswith("/event") for topic in listener.topics()) == 2)
        assert [text for topic, text in listener.live if topic == f"{OWN}/device/{RED}/event"] == [
            '{"event_type":"fired","id":4,"at":"2026-03-04T09:30:00+00:00","rule":"stuck","severity":'
            f'"warning","scope":"brew","subject":"{session.id}","text":"stuck at 1.020"}}',
            '{"event_type":"reminder","id":6,"at":"2026-03-04T09:30:00+00:00","rule":"stuck","severity":'
            f'"warning","scope":"brew","subject":"{session.id}","text":"still stuck"}}',
        ]
        assert not any(topic.endswith("/event") for topic in listener.retained)
        await wait_until(lambda: is_noted(house.services, 8))
    # A restart tells nothing twice, and what happened meanwhile once.
    house.alarms.events.append((stuck, AlarmEvent(9, 1, now, "cleared", "falls again")))
    async with house.publishing():
        await house.settled()
        await wait_for(lambda: sum(topic.endswith("/event") for topic in listener.topics()) == 3)
    assert sum(topic.endswith("/event") for topic in listener.topics()) == 3


async def test_events_of_targets_and_of_the_gateway_belong_to_the_gateway(
    house: House, listener: Listener
) -> None:
    async with house.publishing():
        await house.settled()
        for number, (rule, scope) in enumerate((("sending", "target"), ("keeper", "gateway")), 1):
            alarm = Alarm(number, None, rule, scope, "x", "firing", 0)  # type: ignore[arg-type]
            event = AlarmEvent(number, number, int(house.services.clock.now()), "fired", "words")
            house.alarms.events.append((alarm, event))
            house.services.notices.publish("alarm")
            await wait_for(lambda: listener.topics().count(f"{OWN}/gateway/event") == number)  # noqa: B023


async def test_an_alarm_of_the_alarm_service_goes_all_the_way(house: House, listener: Listener) -> None:
    """With the real services, and the store behind them."""
    await house.report()
    session = await brew_of(house)
    services, now = house.real, int(house.services.clock.now())
    await services.alarms.start()
    fired = Alarm(0, None, "stuck", "brew", str(session.id), "firing", now, fired_at=now, evidence={})
    async with house.publishing(services=services):
        await house.settled()
        assert listener.state(RED)["brew"] == "2026-07"
        event = AlarmEvent(0, 0, now, "fired", "stuck at 1.050")
        await services.alarms.apply(lambda _: [AlarmChange(fired, event, tells=True)])
        await wait_for(lambda: listener.state(RED)["alarms"]["stuck"])
        await wait_for(lambda: f"{OWN}/device/{RED}/event" in listener.topics())
        (text,) = [text for topic, text in listener.live if topic.endswith("/event")]
        assert json.loads(text) | {"id": 0} == {
            "event_type": "fired", "id": 0, "at": "2026-03-04T09:30:00+00:00", "rule": "stuck",
            "severity": "warning", "scope": "brew", "subject": str(session.id), "text": "stuck at 1.050",
        }  # fmt: skip
        number = json.loads(text)["id"]
        await wait_until(lambda: is_noted(services, number))


async def test_figures_of_the_brew(house: House, listener: Listener, passed: Any) -> None:
    await house.report()
    async with house.publishing():
        await house.settled()
        assert (listener.state(RED)["brew"], listener.state(RED)["phase"]) == (None, None)
        session = await brew_of(house)
        house.insight.figures[session.id] = Insight(
            0, og=OriginalGravity(1.055, "hand"), attenuation=50.0, rate=-0.004, phase="active"
        )
        house.services.notices.publish("insight", brew=session.id)
        await passed(lambda: listener.state(RED)["phase"] == "active")
        state = listener.state(RED)
        assert (state["brew"], state["brew_id"], state["og"]) == ("2026-07", session.id, 1.055)
        await house.services.brewsessions.release("1")
        await passed(lambda: listener.state(RED)["brew"] is None)
        assert listener.state(RED)["attenuation"] is None


async def test_another_name_is_another_configuration_of_the_same_ids(
    house: House, listener: Listener, passed: Any
) -> None:
    await house.report()
    async with house.publishing():
        await house.settled()
        before = listener.config(RED)
        await house.services.devices.start(1, BasicChange(label="Fermenter {{ 2 }}").apply)
        house.services.notices.notify("device", device=1)
        await passed(lambda: listener.config(RED)["dev"]["name"] == "Fermenter {{ 2 }}")
        assert listener.config(RED) == {**before, "dev": {**before["dev"], "name": "Fermenter {{ 2 }}"}}


async def test_a_new_value_is_a_new_component_that_stays(
    house: House, listener: Listener, passed: Any, clock: FakeClock
) -> None:
    await house.report()
    async with house.publishing():
        await house.settled()
        assert "battery_v" not in listener.config(RED)["cmps"]
        clock.advance(900)
        await house.report(battery=4.0)
        await wait_for(lambda: "battery_v" in listener.config(RED)["cmps"])
        # It is in the configuration before its value is in the state.
        state = f"{OWN}/device/{RED}/state"
        await wait_for(lambda: listener.topics()[-1] == state)
        clock.advance(900)
        await house.report(gravity=1.049)
        await wait_for(lambda: listener.state(RED)["sg"] == 1.049)
        assert listener.state(RED)["battery_v"] is None
    async with house.publishing():
        await house.settled()
        assert "battery_v" in listener.config(RED)["cmps"]


async def test_a_device_that_comes_is_announced_and_one_that_goes_is_removed(
    house: House, listener: Listener, passed: Any
) -> None:
    async with house.publishing():
        await house.settled()
        assert listener.retained.keys() == GATEWAY
        await house.report()
        await house.report("Green", 8)
        await passed(lambda: listener.retained.keys() == GATEWAY | names_of(RED) | names_of("ispindel_8"))
        await house.forget(1)
        await passed(lambda: listener.retained.keys() == GATEWAY | names_of("ispindel_8"))
    await house.forget(2)  # as `devices remove` does while no gateway runs
    async with house.publishing():
        await passed(lambda: listener.retained.keys() == GATEWAY)


async def test_silence_makes_a_device_unavailable(
    house: House, listener: Listener, clock: FakeClock, passed: Any
) -> None:
    topic = f"{OWN}/device/{RED}/availability"
    await house.report(interval=600)
    async with house.publishing():
        await house.settled()
        waited = await passed(lambda: listener.retained[topic] == "offline", 20.0)
        assert 2.1 * 600 <= waited <= 2.1 * 600 + 100
        await house.report(interval=600, gravity=1.049)
        await wait_for(lambda: listener.retained[topic] == "online")


async def test_nothing_is_silent_by_a_clock_in_doubt(
    house: House, listener: Listener, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, passed: Any
) -> None:
    await house.report(interval=600)
    monkeypatch.setattr(type(house.services.clock_monitor), "held_back", lambda _: "in doubt")
    async with house.publishing():
        await house.settled()
        clock.jump(10 * 86_400)
        before = len(listener.live)
        for _ in range(3):
            clock.advance(61)
            await house.services.store.quarantine.count()
            await wait_for(lambda: clock.naps)
        assert listener.retained[f"{OWN}/device/{RED}/availability"] == "online"
        assert all(topic.endswith("gateway/state") for topic in listener.topics()[before:])


async def test_a_start_of_home_assistant_brings_everything_anew(
    house: House, listener: Listener, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda least, most: least + 0.9 * most)
    await house.report()
    async with house.publishing():
        await house.settled()
        before = listener.topics()
        listener.say("homeassistant/status", "offline")
        listener.say("homeassistant/status", "online", retain=False)
        await wait_for(lambda: listener.topics().count("homeassistant/status") == 2)
        await wait_for(lambda: clock.naps and min(clock.naps) == 4.5)
        clock.advance(4.5)
        await wait_for(lambda: listener.topics().count(f"{OWN}/status") == 2)
        assert listener.topics()[len(before) + 2 :] == before


async def test_the_word_of_an_earlier_start_of_home_assistant_is_no_news(
    house: House, listener: Listener, clock: FakeClock
) -> None:
    listener.say("homeassistant/status", "online", retain=True)
    await wait_for(lambda: "homeassistant/status" in listener.retained)
    async with house.publishing():
        await house.settled()
        clock.advance(6)
        await house.report()
        await wait_for(lambda: f"{OWN}/device/{RED}/state" in listener.retained)
        assert listener.topics().count(f"{OWN}/status") == 1


async def test_a_broker_that_has_forgotten_everything_is_told_anew(
    house: House, listener: Listener, tmp_path: Any
) -> None:
    await house.report()
    async with house.publishing():
        await house.settled()
        house.mosquitto.kill()
        (tmp_path / "mosquitto.db").unlink(missing_ok=True)
        listener.retained.clear()
        await house.report(gravity=1.049)  # nobody waits for the broker
        house.mosquitto.start()
        await wait_for(lambda: listener.retained.keys() == GATEWAY | names_of(RED))
        assert listener.state(RED)["sg"] == 1.049


async def test_switched_off_it_removes_what_it_published(house: House, listener: Listener) -> None:
    await house.report()
    listener.say("homeassistant/device/other/config", "{}", retain=True)
    async with house.publishing():
        await house.settled()
    await module.clear(house.services, house.mosquitto.url, INSTANCE)
    await wait_for(lambda: listener.retained.keys() == {"homeassistant/device/other/config"})
    assert await house.services.store.published.all() == {}


async def test_another_prefix_leaves_nothing_below_the_first(house: House, listener: Listener) -> None:
    await house.report()
    async with house.publishing():
        await house.settled()
    listener.retained.pop(f"{OWN}/status")
    async with house.publishing("ha"):
        await house.settled()
        assert {topic for topic in listener.retained if not topic.startswith(OWN)} == {
            f"ha/device/hg_{INSTANCE}/config",
            f"ha/device/hg_{INSTANCE}_{RED}/config",
        }


async def test_a_brew_of_its_own_is_there_until_a_day_after_its_end(
    house: House, listener: Listener, clock: FakeClock, passed: Any
) -> None:
    await house.report()
    session = await brew_of(house)
    slug = f"brew_{session.id}"
    brew = {f"{CONFIGS}/hg_{INSTANCE}_{slug}/config", f"{OWN}/brew/{session.id}/state"}
    house.insight.figures[session.id] = Insight(0, sg=1.0482, phase="lag", og=OriginalGravity(1.05, "hand"))
    async with house.publishing(brews=True):
        await house.settled()
        assert listener.retained.keys() == GATEWAY | names_of(RED) | brew
        assert faults_of(listener.config(slug)) == []
        assert listener.config(slug)["dev"]["name"] == "2026-07"
        state = listener.state(str(session.id), "brew")
        assert (state["sg"], state["phase"], state["og"]) == (1.0482, "lag", 1.05)
        now = int(clock.now())
        await house.services.store.sessions.end(replace(session, ended_at=now), now)
        house.services.notices.notify("brew", brew=session.id)
        waited = await passed(lambda: not brew & listener.retained.keys(), 300.0)
        assert 24 * 3600 <= waited + 300 <= 24 * 3600 + 1500
    assert listener.retained.keys() == GATEWAY | names_of(RED)


async def test_two_gateways_on_one_broker_do_not_meet(
    house: House, listener: Listener, tmp_path: Path, clock: FakeClock
) -> None:
    await house.report()
    async with AsyncExitStack() as stack:
        store = SqliteStore(tmp_path / "other")
        await store.open()
        stack.push_async_callback(store.close)
        other = House(build_services(store, tmp_path / "other", clock), house.mosquitto, listener)
        await other.services.access.start()
        await other.report("Red", gravity=1.02)  # the same device at both
        async with house.publishing():
            await house.settled()
            ours = dict(listener.retained)
            theirs = {topic.replace(INSTANCE, "00000002") for topic in ours}
            async with other.publishing(instance="00000002"):
                await wait_for(lambda: listener.retained.keys() == ours.keys() | theirs)
            assert {topic: listener.retained[topic] for topic in ours} == ours
            assert listener.retained["hydrometer_gateway/00000002/status"] == "offline"
