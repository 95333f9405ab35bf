"""A moment of the demo, made from a seed: for the golden screens and for the picture of the README."""

from gateway.cli.demo_state import LAPSE_DAYS, NAMED, SPEED, BrewRow, Event, Moment, State
from sample_devices.fermentation import DAY_S, Fermentation

STEP_S = 7200.0
STILL_S, STILL_SG = 60 * 3600.0, 0.001
"""Seconds for which a gravity stands still until the beer counts as finished, and its fall in them."""

READINGS_A_SECOND = 45
PAGE = "http://127.0.0.1:40123/ui/"

EVENTS = (
    Event(2, "first reading: Fermenter 1, iSpindel"),
    Event(12, "the network is cut", "bad"),
    Event(14, "all 12 report"),
    Event(24, "network gone for 12 s: 514 readings wait", "bad"),
    Event(27, "back: all 514 arrived once", "good"),
    Event(44, "Wheat Beer slows down: 6.0 % alcohol"),
    Event(46, "Cider slows down: 4.8 % alcohol"),
)
"""Events as the demo writes them; the seconds are since its start."""


def moment(seed: int, day: float, *, selected: int = 0) -> Moment:
    """The brewery after so many days: each device began two hours after the one before."""
    rows = tuple(_row(seed, number, named.name, named.beer, day) for number, named in enumerate(NAMED))
    seconds = 2 + day * DAY_S / SPEED
    events = tuple(event for event in EVENTS if event.at_s <= seconds)
    stored = round(seconds * READINGS_A_SECOND)
    return Moment(rows, PAGE, 100, stored, stored % 50, False, events, selected)


def _row(seed: int, number: int, name: str, beer: str, day: float) -> BrewRow:
    ago_s = (min(day, LAPSE_DAYS) - number / 12) * DAY_S
    if ago_s < 0:
        return BrewRow(name, beer)
    curve = Fermentation(f"{seed}|{number}")
    points = [curve.at(step * STEP_S) for step in range(int(ago_s / STEP_S) + 1)]
    last = points[-1]
    done = (curve.original_sg - last.gravity_sg) / (curve.original_sg - curve.final_sg)
    states: list[tuple[float, State]] = [(0.05, "pitched"), (0.9, "ferments")]
    state: State = next((word for share, word in states if done < share), "slows down")
    if curve.gravity_sg(max(ago_s - STILL_S, 0)) - curve.gravity_sg(ago_s) < STILL_SG and done > 0.9:
        state = "finished"
    drawn = tuple((point.elapsed_s / DAY_S, point.gravity_sg) for point in points)
    return BrewRow(name, beer, last.gravity_sg, last.temperature_c, drawn, state)
