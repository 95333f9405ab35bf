"""What a simulated device says, as a reading has it: one rule for drivers alone and for the whole gateway."""

from typing import NamedTuple

UNIT_WITHOUT_WORD = "C"
"""What those simulated devices measure in that do not say it."""

NAMES = {
    "ispindel-prometheus": "ispindel/{}",
    "tiltbridge-grainfather": "",
    "tilt-pitch-grainfather": "",
}
"""What a device is called whose name stands in a path: job and instance; nothing where it is its id alone."""


class Values(NamedTuple):
    """The texts of a reading; empty for what the device did not say."""

    name: str
    gravity: str
    gravity_unit: str
    temp: str
    temp_unit: str


def values_said(
    kind: str,
    name: str,
    gravity: str | None,
    gravity_unit: str | None,
    temp: str | None,
    temp_unit: str | None,
) -> Values:
    """As a reading has them: SG without a gravity, Celsius where the wire has no unit."""
    return Values(
        NAMES.get(kind, "{}").format(name),
        *(gravity or "", gravity_unit or "G"),
        *(temp or "", temp_unit or UNIT_WITHOUT_WORD),
    )
