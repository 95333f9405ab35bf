"""eManometer 0.7.6b: the generic HTTP service of its iSpindel code base.

Source: JackFrost80/eManometer `pio/src/main.cpp` (devices.md 10.4): ArduinoJson of name, ID, temperature,
temp_units, type, pressure (bar), co2, interval, RSSI, and in spunding mode num-openings, open-time.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.bodies import compact_json
from sample_devices.wire.clients import target
from sample_devices.wire.esp import chip_id, post
from sample_devices.wire.identity import named
from sample_devices.wire.numbers import arduino_json, ds18b20
from sample_devices.wire.pressuremon_http import pressure_psi
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said

DEFAULT_PATH = "/ispindel"
INTERVAL_S = 300
BAR_PER_PSI = 0.0689476
OPENINGS, OPEN_S = 14, 6  # of the spunding valve
SPUNDING_FACTS = {"num_openings": OPENINGS, "open_time": OPEN_S}
CO2_G_PER_L = 1.7  # of beer without pressure
CO2_G_PER_L_BAR = 1.6


def emanometer_facts(point: Point) -> Facts:
    """Give what all of its services have beside the temperature, outside of spunding mode."""
    bar = round(pressure_psi(point) * BAR_PER_PSI, 2)
    return {
        "pressure": arduino_json(bar),
        "pressure_unit": "BAR",
        "co2": arduino_json(round(CO2_G_PER_L + CO2_G_PER_L_BAR * bar, 1)),
        "interval_s": INTERVAL_S,
        "rssi": point.rssi_dbm,
    }


@dataclass(frozen=True, slots=True)
class EManometerHttp:
    """An eManometer in spunding mode, set to the generic HTTP service."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the device has no clock."""
        name, device_id = named(self.place, "eMano"), str(chip_id(self.place))
        temp = arduino_json(ds18b20(point.temperature_c))
        facts = emanometer_facts(point)
        body = (
            f'{{"name":{compact_json(name)},"ID":{device_id},"temperature":{temp},"temp_units":"C",'
            f'"type":"eManometer","pressure":{facts["pressure"]},"co2":{facts["co2"]},'
            f'"interval":{INTERVAL_S},"RSSI":{point.rssi_dbm},"num-openings":{OPENINGS},"open-time":{OPEN_S}}}'
        )
        request = post(to, target(to, DEFAULT_PATH), body.encode())
        said = Said(name, device_id, None, None, temp, "C", facts | SPUNDING_FACTS)
        return HttpReport((said,), request)
