"""The table of values that are taken out, by the names of their members.

The names are those of devices sections 5 to 11 and 13.
"""

import re
from enum import Enum


class Kind(Enum):
    """The kind of a member's value."""

    SECRET = 1
    """A key or password; also a place on earth, where a person lives."""
    IDENTITY = 2
    FREE = 3
    """Text that a person wrote."""
    COLOR = 4
    """A Tilt's colour, perhaps with its MAC behind a colon."""
    KEPT = 5
    """A value of the firmware or of the measurement itself."""
    UNKNOWN = 6


NAMES = {
    Kind.SECRET: "token token2 api_key apikey password pwd ssid psk authorization x_auth_token x_api_key "
    "x_webhook_token secret login_id lat latitude lon lng long longitude geo gps location position altitude",
    Kind.IDENTITY: "id chipid device_id mac internal_id host source device device_name hydrometername "
    "serial name key mdns_id mdns uniq_id instance job beerbug_id login ip email deviceid devicename chip_id "
    "sensor sensor_id sensorid sensor_name uuid unique_id serial_number label topic entity_id address "
    "mac_address macaddress device_mac tilt_mac ble_mac bt_mac ble_address bluetooth_address",
    Kind.FREE: "beer beername comment recipe gsheets_name gsheets_link doclongurl notes batchcode",
    Kind.COLOR: "color colour tiltcolor tilt_color tilt_colour",
    Kind.KEPT: "type brand version api_name device_source report_source device_integration sensor_type "
    "control_mode controller_state state mode runmode device_state heat_state device_type app_ver "
    "app_build timepoint timestamp created_date lastactivitytime sg temp temperature gravity angle tilt "
    "battery rssi interval velocity corr_gravity run_time pressure pressure1 ph bpm og abv plato xhr "
    "gravity_unit gravity_unity gravity_units gravity_format fermunits temp_unit temp_units tempunit "
    "tempunits temperature_unit temp_format unit pressure_unit volume_unit tzoffset",
}
"""Names by kind, in small letters, with `_` for `-`."""

KINDS = {name: kind for kind, names in NAMES.items() for name in names.split()}

SECRET_NAME = re.compile(r"pass|secret|token|auth|api_?key|pwd|psk|ssid")

STRUCTURE = frozenset({"state", "reported", "desired", "data", "tilts", "dev", "device", "metadata"})
"""Names of objects in objects that are no names of devices."""

MEASUREMENTS = frozenset({"measurements", "measurement", "chamber"})
"""Measurements of InfluxDB's line protocol; any other is a name."""

COLORS = frozenset({"red", "green", "black", "purple", "orange", "blue", "yellow", "pink"})

MISSING = frozenset({"null", "nan", "inf", "-inf", "none", "unknown", "unavailable", "true", "false"})

MARKS = MISSING | {"untitled", "undefined", "p", "end of log"}
"""Texts of firmware where a person wrote nothing (devices section 15)."""

UNITS = frozenset({
    "c", "f", "k", "g", "p", "sg", "plato", "celsius", "fahrenheit", "kelvin", "°c", "°f", "°p", "°k", "degc",
    "degf", "psi", "bar", "kpa", "l", "gal",
})  # fmt: skip

WORDS = MISSING | COLORS | UNITS | {"tilt"}
"""Words that stay under an unknown name: they identify nobody."""


def kind_of(key: str) -> Kind:
    """Return the kind of a member's value by the member's name."""
    name = key.strip().casefold().replace("-", "_")
    kind = KINDS.get(name, Kind.UNKNOWN)
    return Kind.SECRET if kind is Kind.UNKNOWN and SECRET_NAME.search(name) else kind
