"""What Home Assistant takes as the configuration of a device, from the fields that it documents.

Members are in its short words. https://www.home-assistant.io/integrations/mqtt, sections on discovery and on
each platform, and the developers' tables of device classes.
"""

from collections.abc import Mapping
from typing import Any

TOP = {"dev", "o", "cmps", "avty", "avty_mode", "qos", "stat_t"}
"""Members of a configuration; those that all components share are among them."""

DEVICE = {"ids", "cns", "name", "mf", "mdl", "mdl_id", "sn", "sw", "hw", "cu", "sa", "via_device"}
ORIGIN = {"name", "sw", "url"}

ANY = {"p", "name", "uniq_id", "stat_t", "val_tpl", "ic", "ent_cat", "en", "dev_cla"}
MEMBERS: Mapping[str, set[str]] = {
    "sensor": ANY | {"unit_of_meas", "stat_cla", "sug_dsp_prc", "ops", "exp_aft", "frc_upd"},
    "binary_sensor": ANY | {"pl_on", "pl_off", "off_dly", "exp_aft", "frc_upd"},
    "event": ANY | {"event_types"},
}
"""Members of a component by its platform."""

UNITS: Mapping[str, set[str] | None] = {
    "temperature": {"°C", "°F", "K"},
    "voltage": {"V", "mV", "µV", "kV", "MV"},
    "battery": {"%"},
    "signal_strength": {"dB", "dBm"},
    "pressure": {"kPa", "hPa", "bar", "mbar", "psi", "Pa", "inHg", "mmHg", "cbar"},
    "data_size": {"B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB"},
    "timestamp": None,
    "enum": None,
}
"""Classes of a sensor with their units; None: without unit and state class."""

CLASSES: Mapping[str, set[str]] = {
    "sensor": {*UNITS},
    "binary_sensor": {"problem", "connectivity", "battery", "heat", "running"},
    "event": {"button", "doorbell", "motion"},
}
CATEGORIES = {"diagnostic", "config"}
STATE_CLASSES = {"measurement", "total", "total_increasing"}


def faults_of(config: Mapping[str, Any]) -> list[str]:
    """All that Home Assistant would refuse, or not understand."""
    found = [f"unknown member {name}" for name in config.keys() - TOP]
    device, origin, components = config.get("dev", {}), config.get("o", {}), config.get("cmps", {})
    found += [f"unknown member of the device {name}" for name in device.keys() - DEVICE]
    found += [f"unknown member of the origin {name}" for name in origin.keys() - ORIGIN]
    found += [f"{what} is missing" for what in ("ids", "name") if not device.get(what)]
    found += [f"the device's {name} is no text" for name in device.keys() - {"ids", "cns"}
              if not isinstance(device[name], str)]  # fmt: skip
    found += [] if origin.get("name") else ["the origin has no name"]
    found += [] if components else ["no components"]
    found += [] if config.get("avty_mode") in {"all", "any", "latest"} else ["mode of availability"]
    found += [] if config.get("qos") in {0, 1, 2} else ["qos"]
    if any(each.keys() - {"t", "pl_avail", "pl_not_avail", "val_tpl"} for each in config.get("avty", ())):
        found.append("availability")
    if "cu" in device and not device["cu"].startswith(("http://", "https://", "homeassistant://")):
        found.append("address of the device's page")
    unique = [each["uniq_id"] for each in components.values() if "uniq_id" in each]
    found += [] if len(unique) == len(set(unique)) else ["a unique id twice"]
    for key, component in components.items():
        found += [f"{key}: {fault}" for fault in _component(component, has_topic="stat_t" in config)]
    return found


def _component(component: Mapping[str, Any], *, has_topic: bool) -> list[str]:
    platform = component.get("p", "")
    if platform not in MEMBERS:
        return [f"platform {platform!r}"]
    if set(component) == {"p"}:
        return []  # removes it
    found = [f"unknown member {name}" for name in component.keys() - MEMBERS[platform]]
    found += [] if component.get("uniq_id") else ["no unique id"]
    found += [] if has_topic or "stat_t" in component else ["no topic of a state"]
    of_class, unit, state_class = (component.get(name) for name in ("dev_cla", "unit_of_meas", "stat_cla"))
    if of_class is not None and of_class not in CLASSES[platform]:
        found.append(f"class {of_class}")
    if component.get("ent_cat", "diagnostic") not in CATEGORIES:
        found.append("category")
    if state_class is not None and state_class not in STATE_CLASSES:
        found.append(f"state class {state_class}")
    if platform == "sensor" and isinstance(of_class, str) and of_class in UNITS:
        units = UNITS[of_class]
        if units is None and (unit is not None or state_class is not None):
            found.append(f"{of_class} with a unit or a state class")
        elif units is not None and unit not in units:
            found.append(f"unit {unit} of {of_class}")
    if ("ops" in component) != (of_class == "enum"):
        found.append("options and class enum belong together")
    if "name" not in component and of_class is None:
        found.append("neither a name nor a class to name it by")
    if platform == "event" and not component.get("event_types"):
        found.append("no types of events")
    return found
