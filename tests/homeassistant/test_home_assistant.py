"""What Home Assistant 2025.4.4 itself makes of what we publish."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.alarm import Alarm, AlarmEvent
from gateway.insight.records import Finish, Insight, OriginalGravity
from gateway.services.device_settings import BasicChange
from tests.homeassistant.conftest import HomeAssistant
from tests.system.integrations.conftest import CONFIGS, INSTANCE, OWN, House, Listener
from tests.system.integrations.test_home_assistant import RED, brew_of

pytestmark = [pytest.mark.homeassistant, pytest.mark.broker]


def states_of(seen: dict[str, Any]) -> dict[str, str]:
    return {name: each["state"] for name, each in seen["states"].items()}


def values_of(seen: dict[str, Any], device: str) -> dict[str, tuple[str, str | None]]:
    """State and unit of each entity of a device, by the name of the entity."""
    named = {name.split(".")[1]: each for name, each in seen["states"].items()}
    return {
        name.removeprefix(f"{device}_"): (each["state"], each.get("unit_of_measurement"))
        for name, each in named.items()
        if name.startswith(f"{device}_")
    }


def is_unavailable(seen: dict[str, Any], device: str) -> bool:
    return {state for state, _ in values_of(seen, device).values()} == {"unavailable"}


async def test_all_entities_appear_with_their_values_and_units(
    house: House, home_assistant: HomeAssistant
) -> None:
    await house.report(battery=3.98, RSSI=-61)
    session = await brew_of(house)
    house.insight.figures[session.id] = Insight(
        0, sg=1.03, og=OriginalGravity(1.055, "hand"), attenuation=45.4, abv=3.28, rate=-0.0041,
        phase="active", finish=Finish(1_772_900_000, 0, 0, 1.010),
    )  # fmt: skip
    async with house.publishing(brews=True):
        expected = {
            "gravity": ("1.05", "SG"), "temperature": ("20.0", "°C"), "attenuation": ("45.4", "%"),
            "abv": ("3.28", "% vol"), "rate": ("-0.0041", "SG/d"), "phase": ("active", None),
            "finish": ("2026-03-07T16:13:20+00:00", None), "brew": ("2026-07", None),
            "last_reading": ("2026-03-04T09:30:00+00:00", None), "battery_voltage": ("3.98", "V"),
            "stuck": ("off", None), "not_started": ("off", None), "done": ("off", None),
            "temperature_alarm": ("off", None), "silent": ("off", None), "battery_low": ("off", None),
            "alarm": ("unknown", None),
        }  # fmt: skip
        seen = await home_assistant.shows(lambda seen: values_of(seen, "red") == expected)
        # Present, and switched off at first.
        ids, own = seen["ids"], f"hg_{INSTANCE}_{RED}"
        assert {name for name, each in ids.items() if each["disabled"]} == {
            f"{own}_extract", f"{own}_rssi", f"{own}_angle"
        }  # fmt: skip
        assert seen["devices"] == {
            "Hydrometer gateway": {"via": None, "url": "http://192.168.1.20:8080/ui/"},
            "Red": {"via": "Hydrometer gateway", "url": "http://192.168.1.20:8080/ui/devices/1"},
            "2026-07": {
                "via": "Hydrometer gateway", "url": f"http://192.168.1.20:8080/ui/brews/{session.id}"
            },
        }  # fmt: skip
        brew, gateway = values_of(seen, "2026_07"), values_of(seen, "hydrometer_gateway")
        assert (brew["gravity"], brew["original_gravity"]) == (("1.03", "SG"), ("1.055", "SG"))
        assert float(gateway["disk_free"][0]) > 0
        assert gateway["readings_waiting"] == ("0", None)


async def test_null_is_unknown_and_offline_is_unavailable(
    house: House, listener: Listener, home_assistant: HomeAssistant
) -> None:
    await house.report()
    async with house.publishing():
        unknown = {"attenuation", "abv", "rate", "finish", "brew", "alarm"}
        await home_assistant.shows(
            lambda seen: {
                name for name, (state, _) in values_of(seen, "red").items() if state == "unknown"
            } == unknown and states_of(seen)["sensor.red_phase"] == "none"
        )  # fmt: skip
        topic = f"{OWN}/device/{RED}/availability"
        listener.say(topic, "offline", retain=True)
        await home_assistant.shows(
            lambda seen: (
                {state for name, state in states_of(seen).items() if ".red_" in name} == {"unavailable"}
            )
        )
        listener.say(topic, "online", retain=True)
        await home_assistant.shows(lambda seen: states_of(seen)["sensor.red_gravity"] == "1.05")
    # A clean stop, and a kill alike: the gateway's own availability.
    await home_assistant.shows(lambda seen: {*states_of(seen).values()} == {"unavailable"})


async def test_a_new_name_renames_the_device_and_keeps_the_entities(
    house: House, home_assistant: HomeAssistant, passed: Any
) -> None:
    await house.report()
    async with house.publishing():
        before = await home_assistant.is_still()
        name = "Fermenter {{ 2 }} \"'\\ü"
        await house.services.devices.start(1, BasicChange(label=name).apply)
        house.services.notices.notify("device", device=1)
        await passed(lambda: house.listener.config(RED)["dev"]["name"] == name)
        seen = await home_assistant.shows(lambda seen: name in seen["devices"])
        assert "Red" not in seen["devices"]
        assert seen["ids"] == before["ids"]


async def test_a_component_that_is_removed_goes_alone(
    house: House, listener: Listener, home_assistant: HomeAssistant
) -> None:
    await house.report()
    async with house.publishing():
        before = await home_assistant.is_still()
        config = listener.config(RED)
        config["cmps"]["brew"] = {"p": "sensor"}
        listener.say(f"{CONFIGS}/hg_{INSTANCE}_{RED}/config", json.dumps(config), retain=True)
        seen = await home_assistant.shows(lambda seen: "sensor.red_brew" not in seen["states"])
        assert before["states"].keys() - seen["states"].keys() == {"sensor.red_brew"}


async def test_a_device_that_is_removed_is_gone(
    house: House, home_assistant: HomeAssistant, passed: Any
) -> None:
    await house.report()
    async with house.publishing():
        await home_assistant.is_still()
        await house.forget(1)
        await passed(lambda: not house.listener.config(RED))
        seen = await home_assistant.shows(lambda seen: "Red" not in seen["devices"])
        assert not any(".red_" in name for name in seen["states"])


async def test_an_alarm_is_an_event_with_its_text(house: House, home_assistant: HomeAssistant) -> None:
    await house.report()
    session = await brew_of(house)
    stuck = Alarm(1, None, "stuck", "brew", str(session.id), "firing", 0)
    async with house.publishing():
        await house.settled()
        await home_assistant.is_still()
        house.alarms.open = [stuck]
        now = int(house.services.clock.now())
        house.alarms.events.append((stuck, AlarmEvent(4, 1, now, "fired", "stuck at 1.020")))
        house.services.notices.publish("alarm", brew=session.id)
        seen = await home_assistant.shows(
            lambda seen: seen["states"]["event.red_alarm"].get("event_type") == "fired"
        )
        event = seen["states"]["event.red_alarm"]
        assert (event["rule"], event["text"], event["id"]) == ("stuck", "stuck at 1.020", 4)
        await home_assistant.shows(lambda seen: states_of(seen)["binary_sensor.red_stuck"] == "on")


async def test_a_broker_without_memory_loses_nothing(
    house: House, home_assistant: HomeAssistant, tmp_path: Path
) -> None:
    await house.report()
    async with house.publishing():
        await home_assistant.is_still()
        house.mosquitto.kill()
        (tmp_path / "mosquitto.db").unlink(missing_ok=True)
        await house.report(gravity=1.04)
        house.mosquitto.start()
        await home_assistant.shows(lambda seen: states_of(seen)["sensor.red_gravity"] == "1.04")
