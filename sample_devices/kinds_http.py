"""The kinds of device that report by HTTP as JSON, form or query, for the table of all kinds."""

from functools import partial

from sample_devices.kinds import Kind
from sample_devices.wire.brew_bubbles import BrewBubbles
from sample_devices.wire.brewpiless_http import BrewPiLessBrewfather, BrewPiLessFriend, BrewPiLessGet
from sample_devices.wire.emanometer_http import EManometerHttp
from sample_devices.wire.fermentrack import (
    FermentrackGrainfather,
    FermentrackOld,
    FermentrackPush,
    FermentrackStream,
    FermentrackThingSpeak,
)
from sample_devices.wire.gravitymon_http import GravityMonGateway, GravityMonGet
from sample_devices.wire.home_assistant import HomeAssistantRest
from sample_devices.wire.hydrom import Hydrom
from sample_devices.wire.irelay import IRelay
from sample_devices.wire.plaato import Plaato
from sample_devices.wire.pressuremon_http import PressureMonGet, PressureMonHttp
from sample_devices.wire.rapt_http import RaptGet, RaptHeaders, RaptMeadTools, RaptWebhook
from sample_devices.wire.streams import BrewersFriendStream, BrewfatherStream, HomeAssistant
from sample_devices.wire.tcp_server_http import TcpServerBrewPiLess, TcpServerCraftBeerPi
from sample_devices.wire.tilt_app import TiltApp
from sample_devices.wire.tilt_pico import TiltPico, TiltPicoW
from sample_devices.wire.tilt_pitch import (
    TiltPitchFriend,
    TiltPitchGrainfather,
    TiltPitchStream,
    TiltPitchTaplist,
    TiltPitchWebhook,
)
from sample_devices.wire.tiltbridge_2 import (
    TiltBridge2,
    TiltBridge2Influx,
    TiltBridge2Local,
    TiltBridge2Stream,
)
from sample_devices.wire.tiltbridge_http import (
    TiltBridge10,
    TiltBridgeBrewStatus,
    TiltBridgeGrainfather,
    TiltBridgeLocal,
    TiltBridgeSheets,
    TiltBridgeStream,
    TiltBridgeTaplist,
)
from sample_devices.wire.tiltbridge_junior import TiltBridgeJunior
from sample_devices.wire.tilty import PyTilt, Tilty, TiltyForm
from sample_devices.wire.torpedo_http import TorpedoHttp

_TWO_SENSORS = partial(PressureMonHttp, has_two=True)

HTTP_KINDS: dict[str, Kind] = {
    "gravitymon-get": Kind("http", GravityMonGet, "GravityMon 2.x, default GET: query, not encoded."),
    "gravitymon-gateway": Kind("http", GravityMonGateway, "GravityMon Gateway: JSON with a trailing comma."),
    "pressuremon-http": Kind("http", PressureMonHttp, "PressureMon, default POST: pressure, no gravity."),
    "pressuremon-get": Kind("http", PressureMonGet, "PressureMon, default GET: query, not encoded."),
    "pressuremon-two": Kind("http", _TWO_SENSORS, "PressureMon, default POST with two sensors."),
    "tilt-app": Kind("http", TiltApp, "Tilt app, cloud POST: form, Tilt HD with MAC."),
    "tilt-pico": Kind("http", TiltPico, "Tilt Pico 2: form, not encoded, HTTP/1.0, length in characters."),
    "tilt-pico-w": Kind("http", TiltPicoW, "Tilt Pico W gateway: form, `Comment` without `=`."),
    "tiltbridge-http": Kind("http", TiltBridgeLocal, "TiltBridge, local target: JSON, two Tilts."),
    "tiltbridge-stream": Kind("http", TiltBridgeStream, "TiltBridge, user or Brewfather target: JSON."),
    "tiltbridge-grainfather": Kind("http", TiltBridgeGrainfather, "TiltBridge, Grainfather: name in URL."),
    "tiltbridge-brewstatus": Kind("http", TiltBridgeBrewStatus, "TiltBridge, BrewStatus target: form."),
    "tiltbridge-sheets": Kind("http", TiltBridgeSheets, "TiltBridge, Google Sheets target: JSON."),
    "tiltbridge-taplist": Kind("http", TiltBridgeTaplist, "TiltBridge, taplist.io target: JSON."),
    "tiltbridge-1.0": Kind("http", TiltBridge10, "TiltBridge 1.0.x, local target: CRLF after the body."),
    "tiltbridge-2": Kind("http", TiltBridge2, "TiltBridge 2, Fermentrack 2 target: PUT, two Tilts with MAC."),
    "tiltbridge-2-local": Kind("http", TiltBridge2Local, "TiltBridge 2, local target: two Tilts with MAC."),
    "tiltbridge-2-influx": Kind("http", TiltBridge2Influx, "TiltBridge 2, InfluxDB target: two lines."),
    "tiltbridge-2-stream": Kind("http", TiltBridge2Stream, "TiltBridge 2, user target: JSON."),
    "tiltbridge-junior": Kind("http", TiltBridgeJunior, "TiltBridge Junior: JSON, raw and smoothed."),
    "tilt-pitch": Kind("http", TiltPitchWebhook, "tilt-pitch, webhook: JSON, the name is the beer's."),
    "tilt-pitch-stream": Kind("http", TiltPitchStream, "tilt-pitch, Brewfather stream: gravity_unity."),
    "tilt-pitch-friend": Kind("http", TiltPitchFriend, "tilt-pitch, Brewer's Friend stream: JSON with OG."),
    "tilt-pitch-taplist": Kind("http", TiltPitchTaplist, "tilt-pitch, taplist.io: JSON."),
    "tilt-pitch-grainfather": Kind("http", TiltPitchGrainfather, "tilt-pitch, Grainfather: name in URL."),
    "tilty": Kind("http", Tilty, "tilty (Go), template: gravity times 1000 with unit G."),
    "tilty-form": Kind("http", TiltyForm, "tilty (Go), form template: gravity times 1000."),
    "pytilt": Kind("http", PyTilt, "pytilt: JSON list, gravity times 1000, Celsius without a unit."),
    "rapt-webhook": Kind("http", RaptWebhook, "RAPT Pill, portal web hook: quoted, gravity times 1000."),
    "rapt-get": Kind("http", RaptGet, "RAPT Pill, portal web hook by GET: gravity times 1000."),
    "rapt-headers": Kind("http", RaptHeaders, "RAPT Pill, portal web hook by GET: all in headers."),
    "rapt-meadtools": Kind("http", RaptMeadTools, "RaptPill-To-MeadTools: JSON, battery in percent."),
    "plaato": Kind("http", Plaato, "Plaato Airlock, web hook: JSON, unit with a degree sign."),
    "brewpiless-http": Kind("http", BrewPiLessBrewfather, "BrewPiLess, Brewfather preset: JSON, nulls."),
    "brewpiless-friend": Kind("http", BrewPiLessFriend, "BrewPiLess, Brewer's Friend preset: empty texts."),
    "brewpiless-get": Kind("http", BrewPiLessGet, "BrewPiLess, GET of the user's own: no name, no unit."),
    "fermentrack": Kind("http", FermentrackPush, "Fermentrack, generic push: two readings, no Content-Type."),
    "fermentrack-old": Kind("http", FermentrackOld, "Fermentrack, older push: controllers alone."),
    "fermentrack-grainfather": Kind(
        "http", FermentrackGrainfather, "Fermentrack, Grainfather push: an iSpindel's JSON, zeros."
    ),
    "fermentrack-thingspeak": Kind(
        "http", FermentrackThingSpeak, "Fermentrack, ThingSpeak push: seven fields."
    ),
    "fermentrack-stream": Kind("http", FermentrackStream, "Fermentrack, Brewer's Friend push: JSON."),
    "brew-bubbles": Kind("http", BrewBubbles, "Brew Bubbles, URL target: CRLF after the body, no gravity."),
    "emanometer-http": Kind("http", EManometerHttp, "eManometer, generic HTTP: pressure, no gravity."),
    "irelay": Kind("http", IRelay, "Nautilis iRelay, own probe: temperature and a token."),
    "tcp-server-brewpiless": Kind(
        "http", TcpServerBrewPiLess, "iSpindel-TCP-Server to BrewPiLess: no units."
    ),
    "tcp-server-craftbeerpi": Kind(
        "http", TcpServerCraftBeerPi, "iSpindel-TCP-Server to CraftBeerPi: no gravity."
    ),
    "hydrom": Kind("http", Hydrom, "Hydrom: JSON, gravity in Plato and SG."),
    "torpedo": Kind("http", TorpedoHttp, "Torpedo (ESP32), HTTP: JSON, interval in milliseconds."),
    "brewfather-stream": Kind("http", BrewfatherStream, "Brewfather custom stream, full: JSON."),
    "brewers-friend-stream": Kind("http", BrewersFriendStream, "Brewer's Friend stream, full: JSON, Plato."),
    "home-assistant": Kind("http", HomeAssistant, "Home Assistant, Brewfather add-on: gravity is null."),
    "home-assistant-rest": Kind("http", HomeAssistantRest, "Home Assistant, rest_command: a stream's JSON."),
}
