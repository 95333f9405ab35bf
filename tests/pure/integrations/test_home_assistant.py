"""What Home Assistant is told of every family, whatever a device is called; we never hear ourselves."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.alarm import Alarm
from gateway.domain.brewsession import BrewSession, SessionEntry
from gateway.domain.device import Device, DeviceSettings
from gateway.domain.reading import Reading
from gateway.drivers import BY_NAME, decode
from gateway.drivers.addresses import captured
from gateway.errors import ConfigError
from gateway.insight.records import PHASES, Finish, Insight, OriginalGravity
from gateway.intake.normalise import normalise
from gateway.integrations.home_assistant import payloads, states
from gateway.integrations.home_assistant.documents import Document, device_document
from gateway.integrations.home_assistant.states import Brew
from gateway.integrations.home_assistant.topics import Place, Topics, check, overlap, slug_of
from gateway.settings import Settings
from gateway.store.records import RawReading
from gateway.transports.topics import TopicMap
from tests.homeassistant.schema import faults_of
from tests.pure.drivers.messages import CHOSEN
from tests.pure.drivers.test_cases import FILES
from tests.pure.drivers.test_cases import payloads as payloads_of_case

INSTANCE = "7f3a91c2"
TOPICS = Topics(INSTANCE, "homeassistant")
DATA = Path("data")
PAGE = "http://192.168.1.20:8080/ui/devices/1"

STATE_MEMBERS = (
    "at", "sg", "plato", "temp_c", "battery_v", "battery_pct", "rssi", "angle", "pressure_kpa", "brew",
    "brew_id", "og", "attenuation", "abv", "rate", "phase", "finish", "alarms",
)  # fmt: skip


def device_of(family: str = "ispindel", stable_id: str = "1234567", **more: Any) -> Device:
    return Device(1, f"{family}:{stable_id}", family, stable_id, more.pop("name", "Red"), 0, **more)


def reading_of(created_at: int = 1_772_616_600, **more: Any) -> Reading:
    texts: dict[str, Any] = dict.fromkeys(
        ("name", "gravity", "gravity_unit", "temp", "temp_unit", "comment", "beer"), ""
    )
    more = {"sg": None, "celsius": None, **more}
    return Reading("00" * 12, created_at, created_at * 1000, **texts, interval="", source="", ip="", **more)


def document_of(device: Device, *readings: Reading, **more: Any) -> Document:
    latest = [RawReading(number, each, b"", "") for number, each in enumerate(readings)]
    about = {"brew": None, "alarms": (), "known": frozenset(), "page": PAGE, **more}
    return device_document(TOPICS, device, latest, **about)


def every_family() -> list[tuple[str, Device, Reading]]:
    """A device and its reading, of each report in the golden cases."""
    found = []
    for path in FILES:
        case = json.loads(path.read_text("utf-8"))
        if "expected_error" in case:
            continue
        for payload in payloads_of_case(case):
            for report in decode(payload).reports:
                device = replace(Device.first_seen(report, 0), id=1, session_id=7)
                found.append(
                    (f"{path.parent.name}/{path.stem}", device, normalise(report, device, payload)[0])
                )
    return found


FAMILIES = every_family()

HOSTILE = (
    "#", "+", "$SYS", "/", "//", "homeassistant", "hydrometer", "hydrometer/red", "brewcast/state/x", "tilt",
    "{{ states('sun.sun') }}", '"}', "\n", "\0", "\u202e", "é", "ß", "Ⅷ", "\ud800", "ispindel/a/gravity", " ",
    "../..", "sensor", "state", "status", "config", "_", "__", "-", "a", "A", "0", "feeds", "🍺", "\t",
)  # fmt: skip


def hostile_names(number: int, seed: int = 7) -> list[str]:
    draw = random.Random(seed)  # noqa: S311
    return ["".join(draw.choices(HOSTILE, k=draw.randint(1, 12))) for _ in range(number)]


def test_every_family_is_taken_with_its_values() -> None:
    assert {name.split("/")[0] for name, *_ in FAMILIES} >= BY_NAME.keys() - {"sensor"}
    for name, device, reading in FAMILIES:
        document = document_of(device, reading)
        config, state = json.loads(document.config), json.loads(document.state)
        assert faults_of(config) == [], name
        assert tuple(state) == STATE_MEMBERS, name
        assert len(document.config) < 8_000, name
        shown = payloads.DEVICE
        for key in document.components - {"alarm"}:
            member = shown[key].needs
            if shown[key].platform == payloads.SENSOR and shown[key].member == member:
                assert state[member] is not None, (name, key)


def test_the_families_show_what_they_send() -> None:
    """Every entity is in some family, and no device has entities of what it never sent."""
    shown = {key for _, device, reading in FAMILIES for key in document_of(device, reading).components}
    assert shown == payloads.DEVICE.keys()
    without = document_of(device_of(), reading_of(celsius=20.0)).components
    assert without & {"gravity", "abv", "stuck", "battery_v", "battery_low", "rssi"} == set()
    assert {"temperature", "at", "brew", "silent", "temperature_alarm"} <= without


def test_the_payload_of_a_device() -> None:
    facts = '{"battery":3.98,"rssi":-61,"angle":41.2,"pressure":1.5,"pressure_unit":"bar"}'
    device = device_of(settings=DeviceSettings(label="Fermenter 2"))
    document = document_of(device, reading_of(sg=1.0123, celsius=19.06, facts=facts))
    config, base = json.loads(document.config), f"hydrometer_gateway/{INSTANCE}/device/ispindel_1234567"
    assert document.place == Place(
        f"hg_{INSTANCE}_ispindel_1234567",
        f"homeassistant/device/hg_{INSTANCE}_ispindel_1234567/config",
        f"{base}/state", f"{base}/event", f"{base}/availability",
    )  # fmt: skip
    assert config["dev"] == {
        "ids": [f"hg_{INSTANCE}_ispindel_1234567"], "name": "Fermenter 2", "mf": "iSpindel",
        "mdl": "iSpindel", "sn": "1234567", "cu": PAGE, "via_device": f"hg_{INSTANCE}",
    }  # fmt: skip
    assert config["avty"] == [{"t": f"hydrometer_gateway/{INSTANCE}/status"}, {"t": f"{base}/availability"}]
    assert config["cmps"]["gravity"] == {
        "p": "sensor", "name": "Gravity", "uniq_id": f"hg_{INSTANCE}_ispindel_1234567_sg",
        "val_tpl": "{{ value_json.sg }}", "unit_of_meas": "SG", "stat_cla": "measurement", "sug_dsp_prc": 4,
        "ic": "mdi:water",
    }  # fmt: skip
    assert config["cmps"]["alarm"]["event_types"] == ["fired", "cleared", "reminder"]
    assert config["cmps"]["alarm"]["stat_t"] == f"{base}/event"
    assert "name" not in config["cmps"]["temperature"]
    words = json.dumps(config)
    assert "object_id" not in words
    assert "default_entity_id" not in words
    state = json.loads(document.state)
    assert state | {"plato": None} == {
        **dict.fromkeys(STATE_MEMBERS), "at": "2026-03-04T09:30:00+00:00", "sg": 1.0123, "temp_c": 19.06,
        "battery_v": 3.98, "rssi": -61, "angle": 41.2, "pressure_kpa": 150.0,
        "alarms": dict.fromkeys(states.RULES_OF_DEVICE, False),
    }  # fmt: skip
    assert state["plato"] == pytest.approx(3.14, abs=0.01)


def test_the_figures_and_alarms_of_the_brew_that_a_device_is_in() -> None:
    session = BrewSession(7, 1, "2026-07", "", 0, None, 0, 0)
    insight = Insight(
        0, sg=1.014, og=OriginalGravity(1.050, "readings"), attenuation=72.123, abv=4.725, rate=-0.00251,
        phase="slowing", finish=Finish(1_772_700_000, 0, 0, 1.010),
    )  # fmt: skip
    brew = Brew(SessionEntry(session, None, "Pale Ale", None), insight)
    alarms = [
        Alarm(1, None, "stuck", "brew", "7", "firing", 0),
        Alarm(2, None, "battery", "device", "1", "acknowledged", 0),
        Alarm(3, None, "silent", "device", "2", "firing", 0),
        Alarm(4, None, "done", "brew", "71", "firing", 0),
    ]
    state = json.loads(document_of(device_of(session_id=7), reading_of(), brew=brew, alarms=alarms).state)
    assert {name: state[name] for name in STATE_MEMBERS[9:17]} == {
        "brew": "2026-07 Pale Ale", "brew_id": 7, "og": 1.05, "attenuation": 72.12, "abv": 4.725,
        "rate": -0.00251, "phase": "slowing", "finish": "2026-03-05T08:40:00+00:00",
    }  # fmt: skip
    assert {rule for rule, fires in state["alarms"].items() if fires} == {"stuck", "battery"}
    own = json.loads(states.brew_state(brew, alarms[:1]))
    assert (own["sg"], own["alarms"]) == (
        1.014,
        {**dict.fromkeys(states.RULES_OF_BREW, False), "stuck": True},
    )


def test_a_component_stays_when_its_value_does_not_come() -> None:
    first = document_of(device_of(), reading_of(sg=1.05, facts='{"battery":4.0}'))
    later = document_of(device_of(), reading_of(celsius=20.0), known=first.components)
    assert later.components == first.components | {"temperature", "temperature_alarm"}
    assert json.loads(later.state)["battery_v"] is None
    # What an earlier version had and this one has not is left out.
    assert document_of(device_of(), known=frozenset({"gravity", "wort"})).components >= {"gravity"}
    assert "wort" not in json.loads(document_of(device_of(), known=frozenset({"wort"})).config)["cmps"]


def test_a_name_is_in_no_id() -> None:
    """Entities, and what a user made of them, survive another name."""
    before = json.loads(document_of(device_of(name="Red"), reading_of(sg=1.05)).config)
    after = json.loads(document_of(device_of(name="{{ 1 }}"), reading_of(sg=1.05)).config)
    assert (before["dev"].pop("name"), after["dev"].pop("name")) == ("Red", "{{ 1 }}")
    assert before == after


def test_values_that_are_no_numbers_are_not_known() -> None:
    odd = '{"battery":"full","rssi":true,"angle":null,"pressure":3,"pressure_unit":"furlong"}'
    state = json.loads(document_of(device_of(), reading_of(sg=float("nan"), facts=odd)).state)
    assert all(state[name] is None for name in STATE_MEMBERS[1:9])
    huge = f'{{"battery":NaN,"rssi":{"9" * 400},"angle":1e400,"pressure":"1e999","pressure_unit":"bar"}}'
    state = json.loads(document_of(device_of(), reading_of(sg=float("inf"), facts=huge)).state)
    assert all(state[name] is None for name in STATE_MEMBERS[1:9])


def test_silence_by_the_interval_or_by_the_usual_gap() -> None:
    at = 1_772_616_600
    known = document_of(device_of(interval_s=900), reading_of(at))
    assert known.silent_at == at + 2.1 * 900
    readings = [reading_of(at - 3600 * number) for number in range(6)]
    assert document_of(device_of(), *readings).silent_at == at + 3 * 3600
    assert document_of(device_of(), reading_of(at)).silent_at == at + 60 * 60
    assert document_of(device_of()).silent_at == 0


def test_a_schema_that_refuses() -> None:
    """Else the tests above could not fail."""
    document = document_of(device_of(), reading_of(sg=1.05, celsius=20.0, facts='{"battery":4.0}'))

    def faults(change: dict[str, Any], key: str = "temperature") -> list[str]:
        config = json.loads(document.config)
        config["cmps"][key] |= change
        return faults_of(config)

    assert faults({}) == []
    assert faults({"unit_of_meas": "F"}) == ["temperature: unit F of temperature"]
    assert faults({"object_id": "x"}) == ["temperature: unknown member object_id"]
    assert faults({"stat_cla": "measurement"}, "finish") == ["finish: timestamp with a unit or a state class"]
    assert faults({"uniq_id": f"hg_{INSTANCE}_ispindel_1234567_sg"}) == ["a unique id twice"]
    assert faults({"dev_cla": "gravity"}, "gravity") == ["gravity: class gravity"]
    assert faults_of(json.loads(document.config) | {"o": {}}) == ["the origin has no name"]


def test_the_phases_are_those_of_the_figures() -> None:
    assert payloads.PHASE.more["ops"] == [*PHASES, "none"]


@pytest.mark.parametrize(
    ("family", "stable_id", "slug"),
    [
        ("ispindel", "1234567", "ispindel_1234567"),
        ("tilt", "red", "tilt_red"),
        ("tilt", "Red", "tilt_red_e3d50859"),
        ("tilt", "+/#", "tilt_b59e9862"),
    ],
)
def test_slugs(family: str, stable_id: str, slug: str) -> None:
    assert slug_of(family, stable_id) == slug


def test_slugs_of_different_devices_differ_and_are_plain() -> None:
    names = {*hostile_names(10_000), "red", "Red", "re_d", "re-d", "x" * 64, "x" * 65, "x" * 66}
    slugs = {slug_of("ispindel", name) for name in names}
    assert len(slugs) == len(names)
    assert all(set(slug) <= {*"abcdefghijklmnopqrstuvwxyz0123456789_"} and len(slug) < 100 for slug in slugs)


def fits(name: str, topic: str) -> bool:
    return captured(name, topic) is not None


def test_we_never_hear_ourselves_whatever_devices_are_called() -> None:
    chosen = [f"{topic}={driver}" for topic, driver in (("brewery/+", "tilt"), ("+/spindle", "ispindel"))]
    topics = TopicMap([*CHOSEN, *chosen])
    for family, name in zip([*BY_NAME] * 10_000, hostile_names(10_000), strict=False):
        device = device_of(family, name, name=name)
        document = document_of(device, reading_of(sg=1.05))
        place = document.place
        config = json.loads(document.config)
        assert faults_of(config) == []
        for topic in (*place.retained, place.event, TOPICS.status, *TOPICS.brew(len(name)).retained):
            assert not set(topic) & set("+# \n\0$")
            assert len(topic) < 200
            assert not topics.is_heard(topic)
            assert topics.place_of(topic) is None
            assert not any(fits(each, topic) for each in topics.filters)
    assert topics.unread.messages == {}


@pytest.mark.parametrize(
    "topic", ["hydrometer_gateway/x/y", "homeassistant/status", "homeassistant/device/x"]
)
@pytest.mark.parametrize("chosen", [[], ["+/#=esphome"], ["+/+/{key}=ispindel"], ["+/+=tilt"]])
def test_what_others_say_to_home_assistant_is_no_reading(topic: str, chosen: list[str]) -> None:
    topics = TopicMap(chosen)
    assert topics.place_of(topic) is None
    assert topics.unread.messages == {}


@pytest.mark.parametrize(
    ("chosen", "prefix"),
    [
        ("#=tilt", "homeassistant"),
        ("+/#=esphome", "homeassistant"),
        ("homeassistant/#=tilt", "homeassistant"),
        ("hydrometer_gateway/x=tilt", "homeassistant"),
        ("+/+/status=tilt", "homeassistant"),
        ("ha/device/+/config=tilt", "ha"),
    ],
)
def test_a_filter_that_hears_us_is_refused(chosen: str, prefix: str) -> None:
    with pytest.raises(ConfigError, match=r"--mqtt-topic .* does not go together with --ha-discovery"):
        check(["beer/x=tilt", chosen], prefix)


def test_filters_that_do_not_hear_us_are_taken() -> None:
    check([*CHOSEN, "home/+=tilt", "+/feeds/+=ispindel"], "homeassistant")
    check([], "some/where")
    with pytest.raises(ConfigError, match="--ha-prefix 'brewcast/state'"):
        check([], "brewcast/state")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("#", "a/b", True), ("a/#", "a", True), ("a/+", "a", False), ("+/b", "a/+", True),
        ("a/b", "a/c", False), ("a/#", "a/+/c", True), ("a/b/#", "a/c", False), ("#", "$SYS/x", False),
        ("+/x", "$SYS/x", False),
        ("$SYS/#", "$SYS/x", True),
    ],
)  # fmt: skip
def test_overlap(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is overlap(other, one) is expected


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(ConfigError, match="--ha-discovery needs --mqtt-url"):
        Settings(data_dir=DATA, ha_discovery=True)
    with pytest.raises(ConfigError, match="--ha-brews needs --ha-discovery"):
        Settings(data_dir=DATA, ha_brews=True, mqtt_url="mqtt://b")
    for prefix in ("", "a/#", "+", "a//b", " a", "$SYS", "a\nb", "x" * 101):
        with pytest.raises(ConfigError, match="ha_prefix: "):
            Settings(data_dir=DATA, ha_prefix=prefix)
    assert Settings(data_dir=DATA, ha_prefix="/ha/").ha_prefix == "ha"
