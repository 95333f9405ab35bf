"""What a device that is being added sends, in words: readings with their units, and what went wrong."""

from typing import NamedTuple

from gateway.domain.quarantined import Quarantined
from gateway.domain.reading import Reading
from gateway.domain.units import sg_to_plato
from gateway.services.adding import MS, Heard, HeardDevice
from gateway.services.knocks import Knock
from gateway.services.quarantine import kind_of
from gateway.ui.pages import Visit
from gateway.ui.words import Ago, Quantity

GRAVITY_DECIMALS = {"G": 3, "P": 1}

UNITS = {"G": "SG", "P": "°P"}
"""Units of gravity by their code, as people write them."""

OTHER_UNIT = {"G": "P", "P": "G"}


class HeardLine(NamedTuple):
    """A device that reported. `unit` is the unit its gravity is taken for, `other` the code of the other one.

    Both are empty where it sends no gravity. `why` is the reason for the unit, in English.
    """

    id: int
    name: str
    is_new: bool
    ago: Ago
    words: str
    gravity: Quantity | None
    temp: Quantity | None
    why: str
    unit: str
    other: str
    other_words: str


class Trouble(NamedTuple):
    """A payload that nobody understood, or an attempt that left nothing: what happened, and the remedy."""

    ago: Ago
    text: str
    remedy: str
    url: str


def troubles_of(visit: Visit, came: Heard) -> list[Trouble]:
    """Return what went wrong, the newest first."""
    found = [_payload(visit, item) for item in came.quarantine]
    found += [_knock(visit, knock) for knock in came.knocks]
    return sorted(found, key=lambda trouble: trouble.ago.iso, reverse=True)


def line_of(visit: Visit, each: HeardDevice) -> HeardLine:
    """Return what a device sent, and what its gravity is taken for."""
    device, reading = each.device, each.reading
    chosen = device.settings.gravity_unit
    unit = (chosen or reading.gravity_unit) if reading is not None and reading.gravity else ""
    celsius = reading.celsius if reading is not None else None
    other = OTHER_UNIT.get(unit, "")
    key = "adding.heard_from" if each.address else "adding.heard"
    return HeardLine(
        id=device.id,
        name=each.name,
        is_new=each.is_new,
        ago=visit.words.ago(each.at),
        words=visit.t(key, clock=visit.words.clock(each.at), address=each.address),
        gravity=_gravity(visit, reading),
        temp=visit.words.temp(celsius) if celsius is not None else None,
        why=device.inferred.get("gravity_unit", ("", ""))[1] if unit and not chosen else "",
        unit=UNITS.get(unit, ""),
        other=other,
        other_words=visit.t("adding.no_it_is", unit=UNITS[other]) if other else "",
    )


def _gravity(visit: Visit, reading: Reading | None) -> Quantity | None:
    """Return the gravity in the unit that the gateway takes it for, because that is what is asked."""
    if reading is None or reading.sg is None or reading.gravity_unit not in UNITS:
        return None
    value = sg_to_plato(reading.sg) if reading.gravity_unit == "P" else reading.sg
    return Quantity(
        visit.words.number(value, GRAVITY_DECIMALS[reading.gravity_unit]), UNITS[reading.gravity_unit]
    )


def _payload(visit: Visit, item: Quarantined) -> Trouble:
    kind = kind_of(item)
    return Trouble(
        visit.words.ago(item.received_at / MS),
        visit.t(
            "adding.payload", address=item.source or item.channel, what=visit.t(f"quarantine.{kind}.what")
        ),
        visit.t(f"quarantine.{kind}.remedy"),
        visit.url("quarantine.item", id=item.id),
    )


def _knock(visit: Visit, knock: Knock) -> Trouble:
    members = {"address": knock.address, "path": knock.detail}
    return Trouble(
        visit.words.ago(knock.last_at),
        visit.t(f"adding.knock.{knock.kind}", **members),
        visit.t(f"adding.knock.{knock.kind}.remedy", **members),
        "",
    )
