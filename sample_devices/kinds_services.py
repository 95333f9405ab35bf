"""The kinds of device that use a service other than JSON or forms over HTTP: line protocols, GET, raw TCP."""

from functools import partial

from sample_devices.kinds import Kind
from sample_devices.wire.brewery_mqtt import TcpServerForward
from sample_devices.wire.emanometer_http import (
    EManometerInflux,
    EManometerPrometheus,
    EManometerTcp,
    EManometerUbidots,
)
from sample_devices.wire.gravitymon_targets import (
    ChamberInflux,
    GravityMonInflux,
    GravityMonTcp,
    PressureMonInflux,
)
from sample_devices.wire.gravitymon_templates import (
    BLYNK,
    BREWFATHER_CUSTOM,
    BRICKS,
    ISPINDLE,
    THINGSPEAK,
    UBIDOTS,
    with_template,
)
from sample_devices.wire.home_assistant import HomeAssistantState
from sample_devices.wire.ispindel import ISpindelHttp, Setup
from sample_devices.wire.ispindel_services import (
    ISpindelBricks,
    ISpindelFhem,
    ISpindelInflux,
    ISpindelPrometheus,
    ISpindelTcontrol,
    ISpindelTcontrolOld,
    ISpindelTcp,
    ISpindelThingSpeak,
    ISpindelUbidots,
)

_NO_SLASH = partial(ISpindelHttp, default_path="api/ispindel")
_CRAFTBEERPI = partial(ISpindelHttp, default_path="/api/hydrometer/v1/data")
_FAHRENHEIT = partial(ISpindelHttp, default_path="/ispindel", setup=Setup(temp_unit="F"))
_KELVIN = partial(ISpindelHttp, default_path="/ispindel", setup=Setup(temp_unit="K"))
_SG = partial(ISpindelHttp, default_path="/ispindel", setup=Setup(gravity_unit="G"))

GRAVITYMON_TEMPLATES = {
    "ispindle": (ISPINDLE, "iSpindle: no unit of the gravity"),
    "brewfather": (BREWFATHER_CUSTOM, "BrewFatherCustom: five zeros"),
    "ubidots": (UBIDOTS, "UBIDots: name in the path"),
    "bricks": (BRICKS, "BierBot Bricks: Plato, several lines"),
    "thingspeak": (THINGSPEAK, "ThingSpeak: five fields and a key"),
    "blynk": (BLYNK, "Blynk: GET of three pins and a key"),
}

SERVICE_KINDS: dict[str, Kind] = {
    "ispindel-noslash": Kind("http", _NO_SLASH, "iSpindel, HTTP with a URI that lacks its first slash."),
    "ispindel-fahrenheit": Kind("http", _FAHRENHEIT, "iSpindel, HTTP, temperature in Fahrenheit."),
    "ispindel-sg": Kind("http", _SG, "iSpindel, HTTP, polynomial in SG."),
    "ispindel-kelvin": Kind("http", _KELVIN, "iSpindel, HTTP, temperature in Kelvin."),
    "ispindel-craftbeerpi": Kind("http", _CRAFTBEERPI, "iSpindel, CraftBeerPi: JSON at a path of its own."),
    "ispindel-thingspeak": Kind("http", ISpindelThingSpeak, "iSpindel, ThingSpeak: form, key in a header."),
    "ispindel-influx": Kind("http", ISpindelInflux, "iSpindel, InfluxDB: line protocol sent as a form."),
    "ispindel-prometheus": Kind("http", ISpindelPrometheus, "iSpindel, Prometheus: text, name in the path."),
    "ispindel-fhem": Kind("http", ISpindelFhem, "iSpindel, FHEM: GET, all values in one parameter."),
    "ispindel-ubidots": Kind("http", ISpindelUbidots, "iSpindel, Ubidots: JSON, CRLF after the body."),
    "ispindel-bricks": Kind("http", ISpindelBricks, "iSpindel, BierBot Bricks: JSON, no name."),
    **{
        f"gravitymon-{name}": Kind("http", with_template(template), f"GravityMon, template for {about}.")
        for name, (template, about) in GRAVITYMON_TEMPLATES.items()
    },
    "gravitymon-influx": Kind("http", GravityMonInflux, "GravityMon, InfluxDB v2: units in tags, wants 204."),
    "pressuremon-influx": Kind("http", PressureMonInflux, "PressureMon, InfluxDB v2: pressure, no gravity."),
    "chamber-influx": Kind("http", ChamberInflux, "Chamber controller, InfluxDB v2: temperatures, no unit."),
    "home-assistant-state": Kind("http", HomeAssistantState, "Home Assistant, rest_command: a state."),
    "emanometer-ubidots": Kind("http", EManometerUbidots, "eManometer, Ubidots: `nun-openings`."),
    "emanometer-influx": Kind("http", EManometerInflux, "eManometer, InfluxDB: a name, no reading."),
    "emanometer-prometheus": Kind(
        "http", EManometerPrometheus, "eManometer, Prometheus: nothing, no reading."
    ),
    "emanometer-tcp": Kind("tcp", EManometerTcp, "eManometer, generic TCP: JSON and CRLF."),
    "ispindel-tcp": Kind("tcp", ISpindelTcp, "iSpindel, generic TCP: JSON and CRLF."),
    "ispindel-tcontrol": Kind("tcp", ISpindelTcontrol, "iSpindel, TCONTROL: an empty line, no reading."),
    "ispindel-tcontrol-6.0": Kind("tcp", ISpindelTcontrolOld, "iSpindel up to 6.0, TCONTROL: four values."),
    "gravitymon-tcp": Kind("tcp", GravityMonTcp, "GravityMon, POST by TCP: JSON, no line end."),
    "tcp-server-tcp": Kind("tcp", TcpServerForward, "iSpindel-TCP-Server's forward: JSON with a recipe."),
}
