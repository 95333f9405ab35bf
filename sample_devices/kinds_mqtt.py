"""The kinds of device that report by MQTT, beside the default services of iSpindel and GravityMon."""

from functools import partial

from sample_devices.kinds import Kind
from sample_devices.wire.ble_gateways import OpenMqttGatewayTilt, TheengsRapt, TheengsTilt
from sample_devices.wire.brewery_mqtt import (
    BrewPiLessMqtt,
    EManometerMqtt,
    EspHomeMqtt,
    RaptPill2Mqtt,
    SmartPidMqtt,
    TorpedoMqtt,
)
from sample_devices.wire.gravitymon_targets import (
    GravityMonBrewblox,
    GravityMonHomeAssistant,
    PressureMonMqtt,
)
from sample_devices.wire.home_assistant import (
    CRAFTBEERPI_DEVICE,
    CRAFTBEERPI_SENSORS,
    CraftBeerPi,
    HomeAssistantStatestream,
)
from sample_devices.wire.ispindel_services import ISpindelAws, ISpindelBrewblox
from sample_devices.wire.itilt_mqtt import ITiltAdafruit, ITiltCayenne, ITiltUbidots
from sample_devices.wire.tilt_mqtt import (
    BrewbloxTilt,
    BrewbloxTiltOld,
    Tilt2Mqtt,
    TiltBridgeMqtt,
    TiltBridgeMqttOld,
)

_ONE_BY_ONE = partial(BrewPiLessMqtt, one_by_one=True)
_TORPEDO = partial(TorpedoMqtt, topic="hydrometer")
_SPUNDING = partial(EManometerMqtt, spunding=True)

MQTT_KINDS: dict[str, Kind] = {
    "ispindel-brewblox": Kind("mqtt", ISpindelBrewblox, "iSpindel, Brewblox: JSON with units in its keys."),
    "ispindel-aws": Kind("mqtt", ISpindelAws, "iSpindel, AWS IoT: shadow JSON, without its TLS."),
    "gravitymon-ha-mqtt": Kind("mqtt", GravityMonHomeAssistant, "GravityMon, Home Assistant template."),
    "gravitymon-brewblox": Kind("mqtt", GravityMonBrewblox, "GravityMon, Brewblox template: all units."),
    "pressuremon-mqtt": Kind("mqtt", PressureMonMqtt, "PressureMon: seven topics, pressure, no gravity."),
    "tiltbridge-mqtt": Kind("mqtt", TiltBridgeMqtt, "TiltBridge: JSON of texts after discovery messages."),
    "tiltbridge-mqtt-0.2": Kind("mqtt", TiltBridgeMqttOld, "TiltBridge 0.2: one topic for all Tilts."),
    "tilt2mqtt": Kind("mqtt", Tilt2Mqtt, "tilt2mqtt: retained JSON of texts, QoS 2."),
    "brewblox-tilt-old": Kind("mqtt", BrewbloxTiltOld, "brewblox-tilt of j616: history JSON by colour."),
    "brewblox-tilt": Kind("mqtt", BrewbloxTilt, "brewblox-tilt: retained presence and state, history."),
    "raptpill2mqtt": Kind("mqtt", RaptPill2Mqtt, "raptpill2mqtt: retained JSON of texts, percent."),
    "brewpiless-mqtt": Kind(
        *("mqtt", BrewPiLessMqtt, "BrewPiLess: retained JSON, QoS 1, no unit."),
        needs="--mqtt-topic brewery/{label}=brewpiless",
    ),
    "brewpiless-mqtt-keys": Kind(
        *("mqtt", _ONE_BY_ONE, "BrewPiLess: thirteen retained topics, QoS 1."),
        needs="--mqtt-topic brewery/{label}/{key}=brewpiless",
    ),
    "emanometer-mqtt": Kind("mqtt", EManometerMqtt, "eManometer: six of iSpindel's topics, pressure."),
    "emanometer-mqtt-spunding": Kind(
        "mqtt", _SPUNDING, "eManometer in spunding mode: two topics after the RSSI."
    ),
    "torpedo-mqtt": Kind("mqtt", TorpedoMqtt, "Torpedo (ESP32): JSON, name in the topic."),
    "torpedo-mqtt-own": Kind("mqtt", _TORPEDO, "Torpedo (ESP32) with a topic of the user's: JSON."),
    "esphome-mqtt": Kind("mqtt", EspHomeMqtt, "ESPHome build: retained states, names of the user's."),
    "home-assistant-statestream": Kind(
        "mqtt", HomeAssistantStatestream, "Home Assistant, mqtt_statestream: retained states, QoS 1."
    ),
    "craftbeerpi": Kind(
        *("mqtt", CraftBeerPi, "CraftBeerPi 4: a number a sensor, retained, QoS 1."),
        needs=" ".join(
            f"--mqtt-topic cbpi/sensordata/{sensor}={CRAFTBEERPI_DEVICE}:{what}"
            for what, sensor in CRAFTBEERPI_SENSORS.items()
        ),
        alone=True,
    ),
    "theengs": Kind("mqtt", TheengsTilt, "Theengs Gateway: JSON of a Tilt by MAC, °F and °C."),
    "theengs-rapt": Kind("mqtt", TheengsRapt, "Theengs Gateway: a RAPT Pill's advertisement, not decoded."),
    "openmqttgateway": Kind("mqtt", OpenMqttGatewayTilt, "OpenMQTTGateway: JSON of a Tilt by MAC."),
    "smartpid-mqtt": Kind("mqtt", SmartPidMqtt, "SmartPID M5 PRO: temperature of a channel, no gravity."),
    "itilt-json": Kind("mqtt", ITiltUbidots, "iTilt 1.09, Ubidots: JSON, name in the topic."),
    "itilt-cayenne": Kind("mqtt", ITiltCayenne, "iTilt 1.09, Cayenne: three lists of channels."),
    "itilt-adafruit": Kind("mqtt", ITiltAdafruit, "iTilt 1.09, Adafruit IO: eleven feeds."),
}
