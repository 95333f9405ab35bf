"""What the devices of a benchmark send: an iSpindel's post, every one different in its bytes."""

ROUND_PAYLOADS = 1_000_000
"""Payload numbers that one load run may use."""

DEVICES = 50
"""Hydrometers that report, each in its turn."""

ANGLE_STEPS = 1_000_000
"""Angles from 20 to 30 degrees in steps of 0.00001; beyond them the battery changes."""

PATH = "/ingest/ispindel"

BODY = (
    '{"name":"iSpindel%03d","ID":%d,"token":"","angle":%.5f,"temperature":%.4f,"temp_units":"C",'
    '"battery":%.6f,"gravity":%.5f,"interval":900,"RSSI":%d}'
)

HEAD = (
    f"POST {PATH} HTTP/1.1\r\nHost: brewgw.lan:8080\r\nUser-Agent: ESP8266HTTPClient\r\n"
    "Connection: keep-alive\r\nAccept-Encoding: identity;q=1,chunked;q=0.1,*;q=0\r\n"
    "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)
"""Headers in the order of ESP8266HTTPClient."""


def device_name(device: int) -> str:
    """The name that device number `device` reports under."""
    return f"iSpindel{device:03d}"


def device_id(device: int) -> int:
    """The chip id of device number `device`."""
    return 5_312_877 + device


def body(number: int, devices: int = DEVICES) -> bytes:
    """Body number `number`: no other has the same bytes, and every number changes as it does in a beer."""
    device, step = number % devices, number // devices
    angle = 20 + step % ANGLE_STEPS * 1e-5
    temperature = 19 + step // 4 % 32 / 16
    battery = 3.5 + step % 64 * 1e-3 + step // ANGLE_STEPS * 1e-6
    gravity = 5 + step % ANGLE_STEPS * 1e-5
    rssi = -60 - step % 16
    return (BODY % (device, device_id(device), angle, temperature, battery, gravity, rssi)).encode()


def http_request(number: int, devices: int = DEVICES) -> bytes:
    """The whole request of a device that posts body number `number`."""
    text = body(number, devices)
    return (HEAD % len(text)).encode() + text
