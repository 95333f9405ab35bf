"""iTilt 1.09 by MQTT: Ubidots, Cayenne and Adafruit IO, whose name servers lead it to us.

Source: JJSlabbert/iTilt-digital-hydrometer `SOURCE CODE/iTilt1.09.ino` (pubToUbidots, pubToCayenne,
pubToAdafruit; devices.md 10.8).  The signal is (RSSI + 90) * 1.8, at most 100, and no dBm.

    Ubidots   `/v1.6/devices/<client id>`: one JSON object; 2 decimals, tilt 1, gravity 4
    Cayenne   `v1/<user>/things/<client id>/data/json`: three lists of `{"channel": n,"value": v}`
    Adafruit  `<user>/feeds/<feed>`: eleven single values

Cayenne and Adafruit have 4 decimals, but 2 of the gyroscope's temperature and of the signal.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.brewpiless_http import WARMER_PROBE_C
from sample_devices.wire.identity import named
from sample_devices.wire.numbers import fixed
from sample_devices.wire.rapt_http import battery_percent
from sample_devices.wire.report import Address, Facts, Login, Message, MqttReport, Place, Said

KEEP_ALIVE_S = 15  # MQTT_KEEPALIVE of PubSubClient
TOKEN = "BBFF-abc"  # noqa: S105 - made up
VERSION = "1.09"
INTERVAL_S = "900"
ORIGINAL_SG = "1.0600"
ABV_PER_SG = 131.25  # percent; the usual short formula

FEEDS = (
    "battery-capacity", "gyro-temperature", "beer-temperature", "tilt", "battery-voltage", "gravity",
    "alcohol-by-volume", "wifi-signalstrength", "publication-interval", "original-gravity",
    "firmware-version",
)  # fmt: skip
CHANNELS = (
    ("id", "battery-capacity", "gyro-temperature", "firmware-version", "beer-temperature"),
    ("tilt", "battery-voltage", "gravity", "publication-interval", "original-gravity"),
    ("alcohol-by-volume", "wifi-signalstrength"),
)
"""What Cayenne's channels are, from 0 on, one message each line."""

FACTS = {
    "battery-capacity": "battery_percent", "gyro-temperature": "aux_temp", "tilt": "angle",
    "battery-voltage": "battery", "alcohol-by-volume": "abv", "publication-interval": "interval_s",
    "original-gravity": "og",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ITiltUbidots:
    """An iTilt set to Ubidots."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the message; the name is in the topic only."""
        name = named(self.place, "iTilt")
        values = _values(point, 2) | {"tilt": fixed(point.tilt_deg, 1), "gravity": fixed(point.gravity_sg, 4)}
        payload = (
            f'{{"Battery Capacity":{values["battery-capacity"]},'
            f'"Temperature in Gyro":{values["gyro-temperature"]},'
            f'"Temperature from DS18B20":{values["beer-temperature"]},"Tilt":{values["tilt"]},'
            f'"Battery Voltage":{values["battery-voltage"]},"Gravity":{values["gravity"]},'
            f'"ABV":{values["alcohol-by-volume"]},"WiFi Signalstrength":{values["wifi-signalstrength"]}}}'
        )
        said = _said(name, values, ("battery-capacity", "gyro-temperature", "tilt", "battery-voltage"))
        return MqttReport(
            (said,), _login(name, TOKEN, ""), (Message(f"/v1.6/devices/{name}", payload.encode()),)
        )


@dataclass(frozen=True, slots=True)
class ITiltCayenne:
    """An iTilt set to Cayenne."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the three lists, channel by channel."""
        name, values = named(self.place, "iTilt"), _values(point, 4) | {"id": "1"}
        channels = iter(range(len(FEEDS) + 1))
        lists = [
            ",".join(f'{{"channel": {next(channels)},"value": {values[each]}}}' for each in keys)
            for keys in CHANNELS
        ]
        topic = f"v1/brewer/things/{name}/data/json"
        messages = tuple(Message(topic, f"[{text}]".encode()) for text in lists)
        return MqttReport((_said(name, values, tuple(FACTS)),), _login(name, "brewer", "secret"), messages)


@dataclass(frozen=True, slots=True)
class ITiltAdafruit:
    """An iTilt set to Adafruit IO; its user's name is all that tells two of them apart."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the eleven messages."""
        name, values = named(self.place, "anna"), _values(point, 4)
        messages = tuple(Message(f"{name}/feeds/{feed}", values[feed].encode()) for feed in FEEDS)
        return MqttReport(
            (_said(name, values, tuple(FACTS)),), _login(f"iTilt-{name}", name, "aio"), messages
        )


def _login(client_id: str, user: str, password: str) -> Login:
    return Login(client_id, KEEP_ALIVE_S, user, password)


def _values(point: Point, decimals: int) -> dict[str, str]:
    """Print the values, by Adafruit's feeds."""
    abv = (float(ORIGINAL_SG) - point.gravity_sg) * ABV_PER_SG
    return {
        "battery-capacity": fixed(battery_percent(point), decimals),
        "gyro-temperature": fixed(point.temperature_c + WARMER_PROBE_C, 2),
        "beer-temperature": fixed(point.temperature_c, decimals),
        "tilt": fixed(point.tilt_deg, decimals),
        "battery-voltage": fixed(point.battery_v, decimals),
        "gravity": fixed(point.gravity_sg, decimals),
        "alcohol-by-volume": fixed(abv, decimals),
        "wifi-signalstrength": fixed(min((point.rssi_dbm + 90) * 1.8, 100), 2),
        "publication-interval": INTERVAL_S,
        "original-gravity": ORIGINAL_SG,
        "firmware-version": VERSION,
    }


def _said(name: str, values: dict[str, str], sent: tuple[str, ...]) -> Said:
    facts: Facts = {FACTS[key]: values[key] for key in sent}
    return Said(name, None, values["gravity"], "G", values["beer-temperature"], "C", facts)
