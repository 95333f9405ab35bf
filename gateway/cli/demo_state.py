"""What the demo's screen shows at one moment: plain values, so that a picture of it is a pure function."""

from dataclasses import dataclass
from typing import Literal

LAPSE_DAYS = 7.0
"""Days of fermentation that pass at fast-forward, up to the present."""

SPEED = 7200.0
"""Seconds of the demo's clock for each real second: two hours."""

State = Literal["waits", "pitched", "ferments", "slows down", "finished", "stuck", "cold crash"]
Mood = Literal["plain", "good", "bad"]


@dataclass(frozen=True, slots=True)
class Named:
    """A device with a row of its own: its simulated kind, its family, its name and its beer."""

    kind: str
    family: str
    name: str
    beer: str


NAMED = (
    Named("ispindel-http", "ispindel", "Fermenter 1, iSpindel", "Pale Ale"),
    Named("ispindel-mqtt", "ispindel", "Fermenter 2, iSpindel", "Helles"),
    Named("gravitymon-http", "gravitymon", "Fermenter 3, GravityMon", "Porter"),
    Named("gravitymon-mqtt", "ispindel", "Fermenter 4, GravityMon", "Wheat Beer"),
    Named("tiltpi-http", "tilt", "Tilt RED", "Irish Stout"),
    Named("tilt-pico", "tilt", "Tilt GREEN, Pico", "Saison"),
    Named("tiltbridge-stream", "stream", "Tilt BLACK, TiltBridge", "Dubbel"),
    Named("rapt-webhook", "rapt", "Yellow Pill, RAPT portal", "Kölsch"),
    Named("rapt-meadtools", "rapt", "Blue Pill, Bluetooth", "Mead"),
    Named("plaato", "plaato", "Plaato Airlock", "Cider"),
    Named("brewpiless-http", "brewpiless", "Fridge, BrewPiLess", "Bock"),
    Named("torpedo", "torpedo", "Keg 2, Torpedo", "IPA"),
)


@dataclass(frozen=True, slots=True)
class BrewRow:
    """A named device and its beer. The curve has days since the first reading, and SG."""

    name: str
    beer: str
    sg: float | None = None
    celsius: float | None = None
    curve: tuple[tuple[float, float], ...] = ()
    state: State = "waits"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, so many seconds after the demo's start."""

    at_s: float
    text: str
    mood: Mood = "plain"


@dataclass(frozen=True, slots=True)
class Moment:
    """All that the screen shows. `others` are the devices without a row of their own."""

    rows: tuple[BrewRow, ...]
    page: str
    others: int = 0
    stored: int = 0
    waiting: int = 0
    network_is_gone: bool = False
    events: tuple[Event, ...] = ()
    selected: int = 0
