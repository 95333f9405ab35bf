"""Fermentrack: its pushes: generic, in the older format, for Brewer's Friend, Grainfather and ThingSpeak.

Source: thorrak/fermentrack `external_push/models.py` (devices.md 10.2): Python's json and requests.  The
generic push is a string body, so no Content-Type is sent; it carries one reading per controller
(`brewpi_devices`) and one per hydrometer (`gravity_sensors`); in the older format one per controller
(`brewpi`).  Grainfather gets an iSpindel's JSON of a hydrometer, its name the brew's with `,SG`, and 0 in the
place of ID, angle, battery and RSSI.  ThingSpeak gets fields of the last controller: beer, name, unit, beer,
fridge and room temperature, gravity.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.answers import any_2xx
from sample_devices.wire.bodies import python_json
from sample_devices.wire.clients import JSON, python_post, target
from sample_devices.wire.identity import named, serial
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said

DEFAULT_PATH = "/fermentrack"
STREAM_PATH = "/stream/KEY"
BEER_SETTING_F = 66.0
FRIDGE_BELOW_BEER_F = 5.2
PROBE_ABOVE_TILT_F = 0.2


def _fahrenheit(point: Point) -> float:
    return round(point.temperature_c * 9 / 5 + 32, 1)


def _controller_facts(temp: float) -> Facts:
    return {"aux_temp": round(temp - FRIDGE_BELOW_BEER_F, 1), "temp_target": BEER_SETTING_F}


@dataclass(frozen=True, slots=True)
class FermentrackPush:
    """A Fermentrack with one BrewPi controller and one Tilt, in the same beer."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of both; the controller's gravity has 3 decimals, the sensor's 4."""
        fridge, tilt = named(self.place, "Fridge "), f"Tilt {serial(self.place)}"
        fridge_id, tilt_id = 2 * serial(self.place) + 1, 2 * serial(self.place) + 2
        temp = _fahrenheit(point)
        probe = round(temp + PROBE_ABOVE_TILT_F, 1)
        coarse, fine = round(point.gravity_sg, 3), round(point.gravity_sg, 4)
        controller = {
            "name": fridge, "internal_id": fridge_id, "temp_format": "F", "control_mode": "b",
            "beer_temp": probe, "fridge_temp": round(temp - FRIDGE_BELOW_BEER_F, 1),
            "beer_setting": BEER_SETTING_F, "gravity": coarse,
        }  # fmt: skip
        sensor = {
            "name": tilt, "internal_id": tilt_id, "sensor_type": "tilt", "gravity": fine, "temp": temp,
            "temp_format": "F",
        }  # fmt: skip
        body = python_json({
            "api_key": "k", "version": "1.0", "brewpi_devices": [controller], "gravity_sensors": [sensor],
            "battery": round(point.battery_v, 2),
        })  # fmt: skip
        readings = (
            Said(fridge, str(fridge_id), repr(coarse), "G", repr(probe), "F", _controller_facts(temp)),
            Said(tilt, str(tilt_id), repr(fine), "G", repr(temp), "F"),
        )
        return HttpReport(readings, python_post(to, target(to, DEFAULT_PATH), body.encode(), []), any_2xx)


@dataclass(frozen=True, slots=True)
class FermentrackOld:
    """A Fermentrack that pushes one BrewPi controller in the older format, that of Node-RED flows."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name, device_id = named(self.place, "Fridge "), 2 * serial(self.place) + 1
        gravity, temp = round(point.gravity_sg, 3), _fahrenheit(point)
        facts: Facts = {"aux_temp": round(temp - FRIDGE_BELOW_BEER_F, 1)}
        controller = {
            "name": name, "internal_id": device_id, "temp_format": "F", "beer_temp": temp,
            "fridge_temp": facts["aux_temp"], "gravity": gravity,
        }  # fmt: skip
        body = python_json({"api_key": "k", "brewpi": [controller]})
        said = Said(name, str(device_id), repr(gravity), "G", repr(temp), "F", facts)
        return HttpReport((said,), python_post(to, target(to, DEFAULT_PATH), body.encode(), []), any_2xx)


@dataclass(frozen=True, slots=True)
class FermentrackGrainfather:
    """A Fermentrack that pushes one hydrometer to Grainfather, under the brew's name."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name, gravity, temp = named(self.place, "brew"), round(point.gravity_sg, 4), _fahrenheit(point)
        body = python_json({
            "report_source": "Fermentrack", "name": f"{name},SG", "token": "grainfather", "ID": 0,
            "angle": 0, "battery": 0, "interval": 900, "RSSI": 0, "gravity": gravity, "temperature": temp,
            "temp_units": "F",
        })  # fmt: skip
        said = Said(name, None, repr(gravity), "G", repr(temp), "F", {"interval_s": 900})
        return HttpReport((said,), python_post(to, target(to, "/ispindel"), body.encode(), [JSON]), any_2xx)


@dataclass(frozen=True, slots=True)
class FermentrackThingSpeak:
    """A Fermentrack that pushes a BrewPi controller to ThingSpeak."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name, beer = named(self.place, "Fridge "), "Pale Ale"
        gravity, temp = round(point.gravity_sg, 3), _fahrenheit(point)
        facts: Facts = {"aux_temp": round(temp - FRIDGE_BELOW_BEER_F, 1), "ext_temp": 69.8, "beer": beer}
        body = python_json({
            "api_key": "W1", "version": "1.0", "field1": beer, "field2": name, "field3": "F", "field4": temp,
            "field5": facts["aux_temp"], "field6": facts["ext_temp"], "field7": gravity,
        })  # fmt: skip
        own = [JSON, "X-API-KEY: W1"]
        said = Said(name, None, repr(gravity), "G", repr(temp), "F", facts)
        return HttpReport((said,), python_post(to, target(to, "/update.json"), body.encode(), own), any_2xx)


@dataclass(frozen=True, slots=True)
class FermentrackStream:
    """A Fermentrack that pushes one Tilt to a Brewer's Friend stream."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name, gravity, temp = (
            named(self.place, "Cellar Tilt "),
            round(point.gravity_sg, 4),
            _fahrenheit(point),
        )
        body = python_json({
            "report_source": "Fermentrack", "name": name, "device_source": "Tilt", "gravity": gravity,
            "gravity_unit": "G", "temp": temp, "temp_unit": "F",
        })  # fmt: skip
        own = [JSON, "X-API-KEY: KEY"]
        said = Said(name, None, repr(gravity), "G", repr(temp), "F")
        return HttpReport((said,), python_post(to, target(to, STREAM_PATH), body.encode(), own), any_2xx)
