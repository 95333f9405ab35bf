"""What a Tilt measures, for all the programs that pass its beacons on: colour, MAC, whole and fine values.

A Tilt sends whole degrees Fahrenheit and SG times 1000; a Tilt Pro or HD tenths and SG times 10000
(devices.md 7.1).
"""

from typing import NamedTuple

from sample_devices.fermentation import Point
from sample_devices.wire.report import Facts, Place
from sample_devices.wire.tilt_pi import BEERS, COLORS, UNNAMED

MAC_PREFIX = bytes([0xF6, 0xBD])


class Beacon(NamedTuple):
    """One beacon of a Tilt in its own units: degrees Fahrenheit and SG, rounded to its resolution."""

    temp_f: float
    gravity_sg: float


def beacon(point: Point, fine: bool = False) -> Beacon:
    """Round a point to what the Tilt sends; `fine` for a Tilt Pro."""
    return Beacon(
        round(point.temperature_c * 9 / 5 + 32, 1 if fine else 0), round(point.gravity_sg, 4 if fine else 3)
    )


def colour(place: Place, first: int = 0) -> str:
    """Give the colour in capitals: the chosen one, or the next in turn from a program's first."""
    return (place.name or COLORS[(first + place.ordinal) % len(COLORS)]).partition(":")[0]


def mac(place: Place, program: int) -> str:
    """Give the Tilt's MAC in capitals: the chosen one behind a colour, else one of program, seed, ordinal."""
    chosen = (place.name or "").partition(":")[2]
    octets = MAC_PREFIX + bytes([program, place.seed % 256]) + place.ordinal.to_bytes(2, "big")
    return chosen or octets.hex(":").upper()


def neighbour_colour(name: str) -> str:
    """Give the colour that follows another in turn: that of a second Tilt nearby."""
    known = COLORS.index(name.upper()) if name.upper() in COLORS else -1
    return COLORS[(known + 1) % len(COLORS)]


def beer(place: Place) -> str:
    """Name the beer, in turn."""
    return BEERS[place.ordinal % len(BEERS)]


def beer_facts(place: Place) -> Facts:
    """Say the beer's name where it is one."""
    return {} if beer(place) == UNNAMED else {"beer": beer(place)}
