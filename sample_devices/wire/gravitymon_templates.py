"""GravityMon 2.x with the templates that its interface or its documentation offers for other services.

Sources: mp-se/gravitymon-ui `src/modules/gravityFormatOptions.js` (iSpindle, BrewFatherCustom, UBIDots),
mp-se/gravitymon `src_docs/source/services.rst` (Bricks, ThingSpeak, Blynk), `src/push_gravitymon.cpp` for the
decimals (devices.md 6.3).  The path is that of the service in the template's name.  Only the first two have
the name in the text; UBIDots has it in the path, and of the others a key or chip id is all there is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sample_devices.fermentation import Point, plato
from sample_devices.wire.clients import JSON, esp_get, esp_post, target, with_query
from sample_devices.wire.gravitymon import USER_AGENT, device_name, hex_id, template_values
from sample_devices.wire.numbers import fixed
from sample_devices.wire.report import Address, HttpReport, Place, Said


class Template(NamedTuple):
    """The path of the service, the text, and what a server can tell from it.

    `name` and `device_id` are variables of the template, empty where the text has none.
    """

    path: str
    text: str
    facts: tuple[str, ...] = ("angle", "battery", "rssi")
    name: str = "mdns"
    device_id: str = ""
    gravity: str = "gravity"
    temp_unit: str | None = "C"
    is_get: bool = False


ISPINDLE = Template(
    "/ispindel",
    '{ "name" : "${mdns}", "ID": "${id}", "token" : "${token}", "interval": ${sleep-interval}, '
    '"temperature": ${temp}, "temp_units": "${temp-unit}", "gravity": ${gravity}, "angle": ${angle}, '
    '"battery": ${battery}, "RSSI": ${rssi}}',
    facts=("angle", "battery", "rssi", "interval_s"),
    device_id="id",
)
BREWFATHER_CUSTOM = Template(
    "/stream?id=abc123",
    '{   "name": "${mdns}",   "temp": ${temp},   "aux_temp": 0,   "ext_temp": 0,   "temp_unit": '
    '"${temp-unit}",   "gravity": ${gravity},   "gravity_unit": "${gravity-unit}",   "pressure": 0,   '
    '"pressure_unit": "PSI",   "ph": 0,   "bpm": 0,   "comment": "",   "beer": "",   "battery": ${battery}}',
    facts=("battery",),
)
UBIDOTS = Template(
    "/api/v1.6/devices/${mdns}?token=${token}",
    '{   "temperature": ${temp},   "gravity": ${gravity},   "angle": ${angle},   "battery": ${battery},   '
    '"rssi": ${rssi}}',
    temp_unit=None,
)
BRICKS = Template(
    "/api/iot/v1",
    '{\n   "apikey": "${token}",\n   "type":"gravitymon",\n   "brand":"wemos_d1_mini",\n'
    '   "version":"${app-ver}",\n   "chipid":"${id}",\n   "s_number_wort_0":${gravity-plato},\n'
    '   "s_number_temp_0":${temp-c},\n   "s_number_voltage_0":${battery},\n   "s_number_wifi_0":${rssi},\n'
    '   "s_number_tilt_0":${angle}\n}',
    name="id",
    device_id="id",
    gravity="gravity-plato",
)
THINGSPEAK = Template(
    "/update.json",
    '{ "api_key": "${token}", "field1": ${gravity}, "field2": ${temp}, "field3": ${angle}, '
    '"field4": ${battery}, "field5": ${rssi} }',
    name="token",
    temp_unit=None,
)
BLYNK = Template(
    "/external/api/batch/update",
    "token=${token}&v1=${temp}&v2=${gravity}&v3=${angle}",
    facts=("angle",),
    name="token",
    temp_unit=None,
    is_get=True,
)


@dataclass(frozen=True, slots=True)
class GravityMonTemplate:
    """A GravityMon with one HTTP target and one of these templates."""

    place: Place
    template: Template

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST or GET; no template has a time."""
        template, values = self.template, variables(self.place, point)
        path, text = (filled(each, values) for each in (template.path, template.text))
        if template.is_get:
            request = esp_get(to, with_query(target(to, path), text), USER_AGENT)
        else:
            request = esp_post(to, target(to, path), text.encode(), [JSON], USER_AGENT)
        said = Said(
            values[template.name],
            values[template.device_id] if template.device_id else None,
            values[template.gravity],
            "P" if template.gravity == "gravity-plato" else "G",
            values["temp"],
            template.temp_unit,
            {name: values[VARIABLES[name]] for name in template.facts},
        )
        return HttpReport((said,), request)


VARIABLES = {"angle": "angle", "battery": "battery", "rssi": "rssi", "interval_s": "sleep-interval"}


def variables(place: Place, point: Point) -> dict[str, str]:
    """Give the values of the variables that these templates have."""
    texts, device_id = template_values(point), hex_id(place)
    return {
        "mdns": device_name(place), "id": device_id, "token": f"tok{device_id}", "app-ver": "2.2.0",
        "sleep-interval": texts.interval, "temp": texts.temperature, "temp-c": texts.temperature,
        "temp-unit": texts.temp_units, "gravity": texts.gravity, "gravity-unit": "G",
        "gravity-plato": fixed(plato(point.gravity_sg), 2), "angle": texts.tilt, "battery": texts.battery,
        "rssi": texts.RSSI,
    }  # fmt: skip


def filled(text: str, values: dict[str, str]) -> str:
    """Put the values in the place of the variables; nothing is escaped."""
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def with_template(template: Template) -> Callable[[Place], GravityMonTemplate]:
    """Give what makes a GravityMon with this template."""
    return lambda place: GravityMonTemplate(place, template)
