"""What Home Assistant is told: the configuration of each device, from a table of its entities.

A configuration is one JSON object for a device with all of its entities, in the short words of Home
Assistant's discovery (from 2024.11 on). All entities of a device read one state, a JSON object, too.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from gateway import __version__
from gateway.insight.records import PHASES
from gateway.integrations.home_assistant.topics import Place

SENSOR, BINARY, EVENT = "sensor", "binary_sensor", "event"

EVENT_TYPES = ("fired", "cleared", "reminder")
"""Kinds of alarm events that Home Assistant is told of."""

NO_PHASE = "none"
"""The phase of a device in no brew, or of a brew that has none yet."""

NAME_CHARACTERS = 200
"""Characters of a name that are sent on."""

DIAGNOSTIC: Mapping[str, Any] = {"ent_cat": "diagnostic"}
HIDDEN: Mapping[str, Any] = {"ent_cat": "diagnostic", "en": False}
PROBLEM: Mapping[str, Any] = {"dev_cla": "problem"}


def _number(unit: str, digits: int, **more: Any) -> dict[str, Any]:
    return {"unit_of_meas": unit, "stat_cla": "measurement", "sug_dsp_prc": digits, **more}


class Component(NamedTuple):
    """An entity of a device: its platform, its name (None: Home Assistant's own), its member of the state.

    `needs` is the member that must have had a value before the entity appears; empty: it is always there.
    `template` is set where the plain member will not do.
    """

    platform: str
    name: str | None
    member: str
    needs: str
    more: Mapping[str, Any]
    template: str = ""

    def payload(self, unique_id: str) -> dict[str, Any]:
        """Return the entity as it stands in a configuration."""
        named = {"p": self.platform} if self.name is None else {"p": self.platform, "name": self.name}
        template = self.template or f"{{{{ value_json.{self.member} }}}}"
        return {**named, "uniq_id": unique_id, "val_tpl": template, **self.more}


def _alarm(rule: str, name: str, needs: str, more: Mapping[str, Any] = PROBLEM) -> Component:
    return Component(
        BINARY, name, rule, needs, more, f"{{{{ 'ON' if value_json.alarms.{rule} else 'OFF' }}}}"
    )


PHASE = Component(
    SENSOR, "Phase", "phase", "sg",
    {"dev_cla": "enum", "ops": [*PHASES, NO_PHASE], "ic": "mdi:chart-bell-curve"},
    f"{{{{ value_json.phase or '{NO_PHASE}' }}}}",
)  # fmt: skip

FIGURES: Mapping[str, Component] = {
    "attenuation": Component(SENSOR, "Attenuation", "attenuation", "sg", _number("%", 1)),
    "abv": Component(SENSOR, "ABV", "abv", "sg", _number("% vol", 1)),
    "rate": Component(SENSOR, "Rate", "rate", "sg", _number("SG/d", 4)),
    "phase": PHASE,
    "finish": Component(SENSOR, "Finish", "finish", "sg", {"dev_cla": "timestamp"}),
}
"""What is known of a brew."""

ALARMS: Mapping[str, Component] = {
    "stuck": _alarm("stuck", "Stuck", "sg"),
    "not_started": _alarm("not_started", "Not started", "sg"),
    "done": _alarm("done", "Done", "sg", {"ic": "mdi:check-circle-outline"}),
    "temperature_alarm": _alarm("temperature", "Temperature alarm", "temp_c"),
}

GRAVITY = Component(SENSOR, "Gravity", "sg", "sg", _number("SG", 4, ic="mdi:water"))

DEVICE: Mapping[str, Component] = {
    "gravity": GRAVITY,
    "extract": Component(SENSOR, "Extract", "plato", "sg", _number("°P", 2, en=False)),
    "temperature": Component(SENSOR, None, "temp_c", "temp_c", _number("°C", 1, dev_cla="temperature")),
    **FIGURES,
    "at": Component(SENSOR, "Last reading", "at", "", {"dev_cla": "timestamp", **DIAGNOSTIC}),
    "brew": Component(SENSOR, "Brew", "brew", "", {"ic": "mdi:beer"}),
    "battery_v": Component(
        SENSOR, "Battery voltage", "battery_v", "battery_v",
        _number("V", 2, dev_cla="voltage", **DIAGNOSTIC),
    ),
    "battery_pct": Component(
        SENSOR, None, "battery_pct", "battery_pct", _number("%", 0, dev_cla="battery", **DIAGNOSTIC)
    ),
    "rssi": Component(
        SENSOR, None, "rssi", "rssi", _number("dBm", 0, dev_cla="signal_strength", **HIDDEN)
    ),
    "angle": Component(SENSOR, "Angle", "angle", "angle", _number("°", 1, **HIDDEN)),
    "pressure": Component(
        SENSOR, None, "pressure_kpa", "pressure_kpa", _number("kPa", 1, dev_cla="pressure")
    ),
    **ALARMS,
    "silent": _alarm("silent", "Silent", ""),
    "battery_low": _alarm("battery", "Battery low", "battery"),
}  # fmt: skip
"""The entities of a hydrometer. Their keys are parts of their ids, and so they never change."""

BREW: Mapping[str, Component] = {
    "gravity": GRAVITY,
    "og": Component(SENSOR, "Original gravity", "og", "", _number("SG", 4, ic="mdi:water-plus")),
    **FIGURES,
    **ALARMS,
}
"""The entities of a brew."""

GATEWAY: Mapping[str, Component] = {
    "waiting": Component(
        SENSOR, "Readings waiting", "waiting", "",
        {"stat_cla": "measurement", "ic": "mdi:tray-full", **DIAGNOSTIC},
    ),
    "quarantine": Component(
        SENSOR, "Quarantine", "quarantine", "",
        {"stat_cla": "measurement", "ic": "mdi:help-circle-outline", **DIAGNOSTIC},
    ),
    "disk_free": Component(
        SENSOR, "Disk free", "disk_free", "", _number("GB", 1, dev_cla="data_size", **DIAGNOSTIC)
    ),
}  # fmt: skip
"""The entities of the gateway itself, beside one for each target."""

TARGET = "target_"
"""Begins the key of a target's entity; the slug of its name follows."""

UNIQUE = {"gravity": "sg", "alarm": "event"}
"""Ends of unique ids that are not the component's key."""


def shown_components(table: Mapping[str, Component], seen: Collection[str]) -> list[str]:
    """Return the keys of the components whose member has had a value."""
    return [key for key, component in table.items() if not component.needs or component.needs in seen]


def target_component(name: str, slug: str) -> Component:
    """Return the entity that says whether readings go to a target."""
    return Component(
        BINARY, f"Target {name[:NAME_CHARACTERS]}", "targets", "", {"dev_cla": "connectivity", **DIAGNOSTIC},
        f"{{{{ 'ON' if value_json.targets.{slug} else 'OFF' }}}}",
    )  # fmt: skip


def gone(key: str) -> dict[str, Any]:
    """Return what removes an entity of a device that stays."""
    return {"p": BINARY if key.startswith(TARGET) else SENSOR}


class About(NamedTuple):
    """What Home Assistant shows of a device: its name, who made it, which model, its number, its page.

    Empty texts are left out. `via` is the id of the device through which it is reached.
    """

    name: str
    maker: str = ""
    model: str = ""
    serial: str = ""
    url: str = ""
    via: str = ""
    version: str = ""


def configuration(
    place: Place,
    about: About,
    status: str,
    components: Iterable[tuple[str, Component]],
    removed: Iterable[str] = (),
) -> str:
    """Return the configuration of a device as JSON. `status` is the gateway's topic of availability."""
    device = {
        "ids": [place.id],
        "name": about.name[:NAME_CHARACTERS],
        "mf": about.maker,
        "mdl": about.model,
        "sn": about.serial[:NAME_CHARACTERS],
        "sw": about.version,
        "cu": about.url,
        "via_device": about.via,
    }
    entities = {key: component.payload(_unique(place, key)) for key, component in components}
    alarm = {"p": EVENT, "name": "Alarm", "uniq_id": _unique(place, "alarm"), "stat_t": place.event}
    return json.dumps(
        {
            "dev": {member: value for member, value in device.items() if value},
            "o": {"name": "hydrometer-gateway", "sw": __version__},
            "avty": [{"t": topic} for topic in (status, place.availability) if topic],
            "avty_mode": "all",
            "qos": 1,
            "stat_t": place.state,
            "cmps": {
                **entities,
                "alarm": {**alarm, "event_types": [*EVENT_TYPES], "ic": "mdi:bell-alert"},
                **{key: gone(key) for key in removed},
            },
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _unique(place: Place, key: str) -> str:
    return f"{place.id}_{UNIQUE.get(key, key)}"
