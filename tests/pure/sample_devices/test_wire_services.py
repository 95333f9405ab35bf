"""The services, MQTT and TCP kinds: their shape against the samples of devices.md."""

import re

from sample_devices.devices import KINDS
from sample_devices.kinds_mqtt import MQTT_KINDS
from sample_devices.kinds_services import SERVICE_KINDS
from sample_devices.wire.report import Address, HttpReport, MqttReport, Place, Report, TcpReport
from tests.cases import each

from .golden import BEER, EVENING, GATEWAY, POINT, make

MINE = [*SERVICE_KINDS, *MQTT_KINDS]

# Bodies as they stand in the samples of devices.md; of MQTT the message with the reading.
DOCUMENTED = {
    "ispindel-influx": 'measurements,source=iSpindel042 tilt=52.33711,temperature=19.8125,temp_units="C",'
    "battery=3.961264,gravity=12.48312,interval=900,RSSI=-67",
    "ispindel-ubidots": '{"tilt":52.33711,"temperature":19.8125,"battery":3.961264,"gravity":12.48312,'
    '"interval":900,"RSSI":-67}\r\n',
    "ispindel-bricks": '{"apikey":"k3y","type":"ispindel","brand":"wemos_d1_mini","version":"7.3.3",'
    '"chipid":"0f1e2d3c4b5a6978","s_number_wort_0":12.48,"s_number_temp_0":19.81,'
    '"s_number_voltage_0":3.96,"s_number_wifi_0":-67,"s_number_tilt_0":52.33}',
    "gravitymon-influx": "measurement,host=gravmon7f3a2c,device=7f3a2c,temp-format=C,gravity-format=G "
    "gravity=1.0456,velocity=-2.1,corr-gravity=1.0450,angle=45.123,temp=20.56,battery=3.98,rssi=-70\n",
    "ispindel-tcp": '{"name":"iSpindel042","ID":5312877,"angle":52.33711,"temperature":19.8125,'
    '"temp_units":"C","battery":3.961264,"gravity":12.48312,"interval":900,"RSSI":-67}\r\n',
    "ispindel-tcontrol": "\r\n",
    "gravitymon-tcp": '{"name": "gravmon7f3a2c", "ID": "7f3a2c", "token": "", "interval": 900, '
    '"temperature": 20.56, "temp_units": "C", "gravity": 1.0456, "velocity": -2.1, "angle": 45.123, '
    '"battery": 3.98, "RSSI": -70, "corr-gravity": 1.0450, "gravity-unit": "G", "run-time": 4.21 }',
    "ispindel-tcontrol-6.0": "T: 19.8 D: 52.3 U: 3.96 G: 12.48\r\n",
    "ispindel-thingspeak": "field1=52.33&field2=66.87&field3=C&field4=3.96&field5=12.48&field6=900&field7=-67"
    "&headers=false",
    "gravitymon-thingspeak": '{ "api_key": "W1", "field1": 1.0456, "field2": 20.56, "field3": 45.123, '
    '"field4": 3.98, "field5": -70 }',
    "gravitymon-ispindle": '{ "name" : "gravmon7f3a2c", "ID": "7f3a2c", "token" : "tok-9", "interval": 900, '
    '"temperature": 20.56, "temp_units": "C", "gravity": 1.0456, "angle": 45.123, "battery": 3.98, '
    '"RSSI": -70}',
    "emanometer-ubidots": '{"temperature":3.4,"pressure":0.82,"co2":4.9,"interval":300,"RSSI":-59,'
    '"nun-openings":14,"open-time":6}\r\n',
    "ispindel-brewblox": '{"key":"iSpindel042","data":{"Tilt[deg]":52.3,"Temperature[degC]":19.8,'
    '"Battery[V]":3.96,"Gravity":12.48,"Rssi[dBm]":-67}}',
    "ispindel-aws": '{"state":{"reported":{"name":"iSpindel042","tilt":52.3,"temperature":19.8,'
    '"battery":3.96,"gravity":12.48,"interval":900,"RSSI":-67}}, "key":"iSpindel042"}',
    "gravitymon-brewblox": '{"key":"gravmon7f3a2c","data":{"Temperature[degC]": 20.56,'
    '"Temperature[degF]": 69.01,"Battery[V]":3.98,"Tilt[deg]":45.123,"Rssi[dBm]":-70,"SG":1.0456,'
    '"Plato":11.37}}',
    "tiltbridge-mqtt": '{"Color":"Black","timeStamp":1741980600,"fermunits":"SG","SG":"1.0450",'
    '"Temp":"68.0","tempunits":"F","WoB":"4"}',
    "tiltbridge-mqtt-0.2": '{"color":"Black","device":"tiltbridge","gravity":"1.0040",'
    '"gravity_unit":"G","temp":"71.0","temp_unit":"F"}',
    "brewblox-tilt-old": '{"key": "tilt", "data": {"Red": {"Temperature[degF]": 68, '
    '"Temperature[degC]": 20.0, "Specific gravity": 1.045, "Signal strength[dBm]": -80, '
    '"Plato[degP]": 11.19}}}',
    "raptpill2mqtt": '{"specific_gravity_uncali": "1.0456", '
    '"specific_gravity_pts_per_day_uncali": "-4.2", "temperature_celsius_uncali": "19.61", '
    '"temperature_fahrenheit_uncali": "67.3", "battery": "87.4", "rssi": "-62", '
    '"lastActivityTime": "2025-03-14 19:30:00.123456"}',
    "brewpiless-mqtt": '{"state":4,"beerTemp":18.4,"beerSet":18.5,"fridgeTemp":16.1,"fridgeSet":15.8,'
    '"mode":2,"gravity":1.0325,"plato":8.15,"voltage":3.91,"auxTemp":18.6,"tilt":44.12,'
    '"hydrometerRssi":-66,"hydrometerName":"iSpindel042"}',
    # theengs/decoder tests/BLE/test_ble.cpp, with what each gateway puts before and takes out.
    "theengs": '{"id": "F6:BD:46:01:00:00", "rssi": -60, "brand": "Tilt", "model": "Brewing Hydro- '
    'Thermometer", "model_id": "TILT", "type": "THBX", "color": "red", "tempf": 68, "tempc": 20, '
    '"gravity": 1.016, "txpower": -59}',
    "openmqttgateway": '{"id":"F6:BD:46:01:00:00","rssi":-60,"brand":"Tilt","model":"Brewing Hydro- '
    'Thermometer","model_id":"TILT","type":"THBX","color":"red","tempf":68,"tempc":20,"gravity":1.016,'
    '"txpower":-59}',
    "smartpid-mqtt": '{"temp":18.6,"unit":"C","runmode":"monitor"}',
}

# Topics as in the samples, the device's own name and id taken out.
TOPICS = {
    "gravitymon-ha-mqtt": "gravmon/* temperature gravity rssi tilt battery",
    "pressuremon-mqtt": "pressuremon/* temperature temperature-unit battery pressure pressure-unit interval"
    " RSSI",
    "emanometer-mqtt-spunding": "ispindel/* temperature temp_units pressure co2 interval RSSI num-openings"
    " open-time",
    "itilt-adafruit": "anna1000/* battery-capacity gyro-temperature beer-temperature tilt battery-voltage"
    " gravity alcohol-by-volume wifi-signalstrength publication-interval original-gravity firmware-version",
    "emanometer-mqtt": "ispindel/* temperature temp_units pressure co2 interval RSSI",
    "brewpiless-mqtt-keys": "brewery/* state beerTemp beerSet fridgeTemp fridgeSet mode gravity plato voltage"
    " auxTemp tilt hydrometerRssi hydrometerName",
}


def body_of(report: Report) -> str:
    match report:
        case HttpReport():
            return report.request.partition(b"\r\n\r\n")[2].decode()
        case TcpReport():
            return report.data.decode()
        case MqttReport():
            return report.messages[-1].payload.decode()


def skeleton(body: str) -> str:
    """Leave keys, order and spacing; of the values whether they are text or number."""
    body = re.sub(r'(: ?|=)"[^"]*"', r"\1text", body)
    body = re.sub(r'"(Red|Blue)"', "colour", body)
    body = re.sub(r"(host|device|source)=\w+", r"\1=name", body)
    return re.sub(r"([:=] ?)-?\d+(\.\d+)?", r"\1number", body)


@each("kind", DOCUMENTED)
def test_bodies_have_the_documented_shape(kind: str) -> None:
    assert skeleton(body_of(make(kind))) == skeleton(DOCUMENTED[kind])


@each("kind", TOPICS)
def test_one_value_topics_come_in_the_documented_order(kind: str) -> None:
    report = make(kind)
    assert isinstance(report, MqttReport)
    root, *keys = TOPICS[kind].split()
    topics = [message.topic for message in report.messages if not message.topic.startswith("homeassistant/")]
    assert [topic.rpartition("/")[2] for topic in topics] == keys
    assert {f"{topic.split('/')[0]}/*" for topic in topics} == {root}


@each("kind, extra", [("ispindel-ubidots", b"\r\n"), ("ispindel-influx", b""), ("gravitymon-influx", b"")])
def test_only_ubidots_sends_more_than_it_declares(kind: str, extra: bytes) -> None:
    report = make(kind, Place(1, name="Braeu"))
    assert isinstance(report, HttpReport)
    head, _, body = report.request.partition(b"\r\n\r\n")
    assert head.endswith(b"Content-Length: %d" % (len(body) - len(extra)))
    assert body.endswith(extra)


@each("kind", [kind for kind in MINE if KINDS[kind].transport == "http"])
def test_the_path_of_the_url_replaces_the_kind_s_own(kind: str) -> None:
    report = KINDS[kind].factory(Place(1)).report(POINT, Address("h", 80, "/own"), EVENING)
    assert isinstance(report, HttpReport)
    assert report.request.split(b" ")[1].partition(b"?")[0] == b"/own"


def test_the_first_target_has_no_slash() -> None:
    report = make("ispindel-noslash")
    assert isinstance(report, HttpReport)
    assert report.request.startswith(b"POST api/ispindel HTTP/1.1\r\n")


def test_a_pill_has_no_velocity_before_it_knows_one() -> None:
    early = KINDS["raptpill2mqtt"].factory(Place(1)).report(BEER.at(0), GATEWAY, EVENING)
    assert "pts_per_day" not in body_of(early)


def test_the_ninth_tilt_has_a_number_behind_its_colour() -> None:
    def names(kind: str) -> list[str]:
        return [make(kind, Place(1, number, number)).said[0].name for number in (0, 7, 8)]

    assert names("tiltbridge-mqtt") == ["Black", "Green", "Black2"]
    assert names("brewblox-tilt") == ["Pink", "Yellow", "Pink-2"]
    assert names("raptpill2mqtt")[0] == "Yellow"


CONVERTED = {"ispindel-kelvin", "theengs-rapt", "craftbeerpi"}
"""A reading has no Kelvin, an advertisement is hex, and the user alone names a sensor."""


@each("kind", [kind for kind in MINE if make(kind).said and kind not in CONVERTED])
def test_what_a_report_says_is_on_the_wire(kind: str) -> None:
    report = make(kind)
    match report:
        case HttpReport():
            wire = report.request.decode()
        case TcpReport():
            wire = report.data.decode()
        case MqttReport():
            wire = "\n".join(f"{m.topic} {m.payload.decode()}" for m in report.messages)
    (said,) = report.said
    for text in (*said.name.split("/"), said.device_id, said.gravity, said.temp):
        assert text is None or text in wire
