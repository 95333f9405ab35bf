"""Names and ids of simulated devices: no two alike for the places of one seed."""

import uuid

from sample_devices.wire.report import Place

_NUMBERS_PER_SEED = 1000
_GUIDS = uuid.UUID("6f1b1c9e-8a55-4c0e-9a0d-3f2d7c51b0aa")  # namespace of our own


def serial(place: Place) -> int:
    """Give a number that no other device of the fleet has."""
    return place.seed * _NUMBERS_PER_SEED + place.number


def named(place: Place, prefix: str) -> str:
    """Give the chosen name, else the prefix and the device's number."""
    return f"{prefix}{serial(place)}" if place.name is None else place.name


def guid(place: Place) -> str:
    """Give a GUID that follows from seed and number."""
    return str(uuid.uuid5(_GUIDS, f"{place.seed}|{place.number}"))
