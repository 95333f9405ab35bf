"""RAPT Pill: the portal's web hook as POST and GET, and the MeadTools bridge.

Sources: docs.rapt.io (custom web hooks), scottpancakes/rapt-pill-HA README for the template,
ljreaux/RaptPill-To-MeadTools `src/PillToMeadTools.py` (devices.md 8.1, 8.3).

    POST       device_id (GUID), device_name, temperature (Celsius), gravity (SG times 1000), battery
               (percent), rssi: all quoted, one a line
    headers    GET without a query: each parameter of the hook is a header
    GET        name, temp, temp_unit, gravity (times 1000), battery, rssi, with a header of the user's
    MeadTools  {"token","name","gravity" (SG),"temperature","temp_units","battery" (percent)}
"""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from sample_devices.fermentation import BATTERY_EMPTY_V, BATTERY_FULL_V, Point
from sample_devices.wire.answers import any_2xx
from sample_devices.wire.bodies import python_json, shortest, thousandth
from sample_devices.wire.clients import JSON, plain_post, python_post, request, target, with_query
from sample_devices.wire.identity import guid, named
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said

DEFAULT_PATH = "/rapt"
MEADTOOLS_PATH = "/api/hydrometer/rapt-pill"


def battery_percent(point: Point) -> float:
    """Give the charge in percent with one decimal, linear between an empty and a full cell."""
    charge = (point.battery_v - BATTERY_EMPTY_V) / (BATTERY_FULL_V - BATTERY_EMPTY_V)
    return round(min(max(charge * 100, 0.0), 100.0), 1)


@dataclass(frozen=True, slots=True)
class RaptWebhook:
    """A RAPT Pill whose cloud calls a web hook with a JSON payload of quoted variables."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the template has no date."""
        name, device_id = named(self.place, "Yellow Pill "), guid(self.place)
        gravity, temp = shortest(point.gravity_sg * 1000, 1), shortest(point.temperature_c, 1)
        lines = {
            "device_id": device_id, "device_name": name, "temperature": temp, "gravity": gravity,
            "battery": shortest(battery_percent(point), 1), "rssi": str(point.rssi_dbm),
        }  # fmt: skip
        body = "{\n" + ",\n".join(f'"{key}": "{text}"' for key, text in lines.items()) + "\n}"
        facts = {"battery_percent": battery_percent(point), "rssi": point.rssi_dbm}
        said = Said(name, device_id, thousandth(gravity), "G", temp, "C", facts)
        return HttpReport((said,), plain_post(to, target(to, DEFAULT_PATH), body.encode()), any_2xx)


@dataclass(frozen=True, slots=True)
class RaptGet:
    """A RAPT Pill whose cloud calls a web hook by GET, with query parameters."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the GET, the parameters encoded; it has no date."""
        name = named(self.place, "Green Pill ")
        gravity, temp = shortest(point.gravity_sg * 1000, 1), shortest(point.temperature_c, 1)
        query = (
            f"name={quote(name)}&temp={temp}&temp_unit=C&gravity={gravity}"
            f"&battery={shortest(battery_percent(point), 1)}&rssi={point.rssi_dbm}"
        )
        fields = [f"Host: {to.authority}", "X-Webhook-Token: shared-secret"]
        line = f"GET {with_query(target(to, DEFAULT_PATH), query)} HTTP/1.1"
        facts = {"battery_percent": battery_percent(point), "rssi": point.rssi_dbm}
        said = Said(name, None, thousandth(gravity), "G", temp, "C", facts)
        return HttpReport((said,), request(line, fields), any_2xx)


@dataclass(frozen=True, slots=True)
class RaptHeaders:
    """A RAPT Pill whose cloud calls a web hook by GET, with header parameters."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the GET; it has no date."""
        name, device_id = named(self.place, "Red Pill "), guid(self.place)
        gravity, temp = shortest(point.gravity_sg * 1000, 1), shortest(point.temperature_c, 1)
        fields = [
            f"Host: {to.authority}", f"device_id: {device_id}", f"device_name: {name}",
            f"temperature: {temp}", f"gravity: {gravity}",
            f"battery: {shortest(battery_percent(point), 1)}", f"rssi: {point.rssi_dbm}",
        ]  # fmt: skip
        line = f"GET {target(to, DEFAULT_PATH)} HTTP/1.1"
        facts: Facts = {"battery_percent": battery_percent(point), "rssi": point.rssi_dbm}
        said = Said(name, device_id, thousandth(gravity), "G", temp, "C", facts)
        return HttpReport((said,), request(line, fields), any_2xx)


@dataclass(frozen=True, slots=True)
class RaptMeadTools:
    """RaptPill-To-MeadTools with one Pill."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name = named(self.place, "Blue Pill ")
        gravity, temp = round(point.gravity_sg, 4), round(point.temperature_c, 1)
        body = python_json({
            "token": "mt-dev-1", "name": name, "gravity": gravity, "temperature": temp,
            "temp_units": "C", "battery": battery_percent(point),
        })  # fmt: skip
        facts = {"battery_percent": battery_percent(point)}
        said = Said(name, None, repr(gravity), "G", repr(temp), "C", facts)
        return HttpReport((said,), python_post(to, target(to, MEADTOOLS_PATH), body.encode(), [JSON]))
