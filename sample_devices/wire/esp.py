"""What the ESP8266 and ESP32 devices share: request head, one-value topics and the 24-bit chip id.

ESP8266HTTPClient (esp8266/Arduino `libraries/ESP8266HTTPClient`; devices.md section 4.1) writes, in
this order: request line, Host (port appended unless 80 or 443), User-Agent, Connection,
Accept-Encoding, the headers the firmware added, Content-Length.  A User-Agent or Connection header
that the firmware adds is dropped by the library, so both are always the library's own.
"""

from sample_devices.wire.report import Address, Message, Place

_CHIP_IDS = 16_777_213  # largest prime that fits 24 bits: as many numbers in a row give different ids
_NUMBER_STEP = 0x9E3779
_SEED_STEP = 0x5BD1E9


def post(to: Address, default_path: str, body: bytes, user_agent: str = "ESP8266HTTPClient") -> bytes:
    """Make the POST of a JSON body, request line to last byte."""
    head = [
        f"POST {default_path if to.path is None else to.path} HTTP/1.1",
        f"Host: {to.authority}",
        f"User-Agent: {user_agent}",
        "Connection: keep-alive",
        "Accept-Encoding: identity;q=1,chunked;q=0.1,*;q=0",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def chip_id(place: Place) -> int:
    """Give the device's 24-bit chip id, different for every number of one seed and never 0."""
    return 1 + (place.seed * _SEED_STEP + place.number * _NUMBER_STEP) % _CHIP_IDS


def one_value_messages(name: str, values: dict[str, str], root: str = "ispindel") -> tuple[Message, ...]:
    """Make one message per value below `<root>/<name>/`, in the order given."""
    return tuple(Message(f"{root}/{name}/{key}", text.encode()) for key, text in values.items())
