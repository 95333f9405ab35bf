"""TCONTROL, a line of text by TCP from the iSpindel.

`T: 20.5 D: 45.1 U: 3.9 G: 10.2` and CRLF: temperature, tilt in degree, battery in volt, gravity in the unit
of the user's polynomial (universam1/iSpindel pio/src/iSpindel.cpp and pio/lib/Sender/Sender.cpp up to 6.0;
from 6.1.0 on only an empty line arrives, because the firmware clears its values first). There is no name:
the sender's address is the identity. The line names no unit of the temperature, which is the unit that the
device is set to, Kelvin included.
"""

import re
from dataclasses import replace

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import spindle, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError

CHANNEL = "tcp"
"""The channel on which an empty line is TCONTROL's."""

LINES_LIMIT = 64
"""The most lines in one body; the firmware sends one."""

LETTERS = {"T": "temperature", "D": "angle", "U": "battery", "G": "gravity"}

_PAIR = re.compile(r"([A-Z]):[ \t]*([^\s:]*)(?=\s|\Z)")


def parse(payload: Payload) -> list[Report]:
    """Return one report per line, none for an empty line."""
    text = wire.stripped(payload).decode("utf-8", "replace")
    if not text and payload.channel.startswith(CHANNEL):
        return []
    if text.count("\n") >= LINES_LIMIT:
        raise DriverError(f"more than {LINES_LIMIT} lines")
    named = replace(payload, label=payload.label or payload.source)
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise DriverError("an empty body")
    parsed = [{LETTERS[c]: value for c, value in _PAIR.findall(line) if c in LETTERS} for line in lines]
    if not all(parsed):
        raise DriverError("no values like `T: 20.5 D: 45.1`")
    return [spindle.parse(named, members, temp_unit=None) for members in parsed]


DRIVER = Driver("tcontrol", "TCONTROL", parse)
