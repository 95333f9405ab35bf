"""SmartPID M5, a temperature controller without a hydrometer, by MQTT.

`smartpidM5/pro/<id>/dynamic/CH1` and `CH2`: `{"temp":18.6,"unit":"C","runmode":"monitor"}`, while running
also `SP`, `mode`, `pwm`, `countdown`, `countup` (secuspec/homeassistant-smartpid-md5
custom_components/smartpid_md5/discovery.py). A firmware of third parties has
`smartpidM5/proofpro/<id>/power/` with the same members, and `temp_valid` false where the sensor is out of
range (marosell/smartpid-m5-oss docs/MQTT_SCHEMA.md). `status`, `config`, `events` and `commands` hold no
measurement. Each channel is a device of its own, `<id>/CH1`. A message comes every few seconds, so one a
minute is kept.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver

SPACING_S = 60.0


def parse(payload: Payload) -> list[Report]:
    """Return one report per message of a channel, none for any other message."""
    if wire.stripped(payload).isalpha():
        return []  # a bare word: `online`
    source = wire.fields(payload)
    if "temp" not in source or source.get("temp_valid") is False:
        return []
    report = Report(stable_id=payload.label, name=payload.label)
    fill.temperature(report, source, {"temp": None}, None)
    fill.facts(report, source, {}, {"SP": "temp_target"})
    fill.words(report, source, {"runmode": "device_state"})
    return [report] if fill.measures(report) else []


DRIVER = Driver(
    "smartpid",
    "SmartPID",
    parse,
    topics=(
        "smartpidM5/pro/{id}/dynamic/{label}",
        "smartpidM5/proofpro/{id}/dynamic/{label}",
        "smartpidM5/proofpro/{id}/power/{label}",
    ),
    spacing_s=SPACING_S,
)
