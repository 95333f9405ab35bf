"""FHEM, as the iSpindel calls it: a command in the query of a GET.

`/fhem?cmd.Test=set%20<name>%20<angle>%20<temperature>%20<temp_units>%20<battery>%20<gravity>%20<ID>&XHR=1`
(universam1/iSpindel pio/src/iSpindel.cpp and pio/lib/Sender/Sender.cpp, 7.3.3), with blanks between the
values, sometimes written as `+`. Firmware before 5.9 has no `temp_units`, the first ones end at the battery
(docs/upload-FHEM.md). The name is not escaped, so that `&` may be in it, and may be empty; `ID` is the chip
id.
"""

from dataclasses import replace

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import spindle, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError

COMMAND = "set "

OTHERS = ("XHR", "fwcsrf")
"""Parameters that FHEM takes beside a command."""

WITH_UNIT = ("angle", "temperature", "temp_units", "battery", "gravity", "ID")
WITHOUT_UNIT = ("angle", "temperature", "battery", "gravity", "ID")
"""The meaning of the words after the name, in a command without a unit."""

LEAST_WORDS = 3


def parse(payload: Payload) -> list[Report]:
    """Return one report per command."""
    text = (wire.stripped(payload) or payload.query.encode()).decode("utf-8", "replace")
    command = next((value for key, value in wire.form(text, OTHERS).items() if key.startswith("cmd")), "")
    command = command if " " in command else command.replace("+", " ")
    if not command.startswith(COMMAND):
        raise DriverError("no command `set <name> <values>`")
    name, _, rest = command.removeprefix(COMMAND).partition(" ")
    words = rest.split()
    if len(words) < LEAST_WORDS:
        raise DriverError("a command without the values of an iSpindel")
    has_unit = wire.temp_unit_letter(words[2]) is not None
    source = dict(zip(WITH_UNIT if has_unit else WITHOUT_UNIT, words, strict=False))
    # The address holds no name: when history is read again, its label is the chip id.
    bare = replace(payload, label="")
    return [spindle.parse(bare, {**source, "name": name}, gravity="gravity" in source)]


DRIVER = Driver("fhem", "FHEM", parse, paths=("/fhem",))
