"""Thirteen kinds of fermentation."""

import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.backtest.beer import Later, Recipe

Ending = Literal["ends", "stalls", "never starts", "hop creep", "diastatic"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind, and what becomes of its beer."""

    name: str
    ending: Ending
    recipe: Callable[[random.Random], Recipe]


def _ale(dice: random.Random) -> Recipe:
    celsius = dice.uniform(17.5, 21.0)
    return Recipe(
        og=dice.uniform(40, 62),
        attenuation=dice.uniform(0.70, 0.82),
        shares=_shares(dice),
        speed=dice.uniform(0.7, 1.4),
        triose_speed=dice.uniform(0.35, 0.8),
        usual_c=19.0,
        lag_h=dice.uniform(7, 20),
        settles=dice.uniform(0.005, 0.025),
        room_c=((0.0, celsius),),
        hours_after_end=dice.uniform(150, 260),
        crash=(dice.uniform(60, 140), dice.uniform(1, 6)) if dice.random() < 0.5 else None,
    )


def _shares(dice: random.Random) -> tuple[float, float, float]:
    glucose, triose = dice.uniform(0.12, 0.22), dice.uniform(0.13, 0.2)
    return glucose, 1 - glucose - triose, triose


def _step(dice: random.Random) -> Recipe:
    """An ale that is warmed for its last sugars."""
    ale = _ale(dice)
    begin = ale.room_c[0][1]
    return dataclasses.replace(
        ale, room_c=((0.0, begin), (dice.uniform(60, 110), begin + dice.uniform(2, 4)))
    )


def _kveik(dice: random.Random) -> Recipe:
    celsius = dice.uniform(30, 38)
    return dataclasses.replace(
        _ale(dice),
        speed=dice.uniform(1.6, 3.0),
        usual_c=34.0,
        lag_h=dice.uniform(4, 9),
        room_c=((0.0, celsius),),
        attenuation=dice.uniform(0.73, 0.83),
    )


def _lager(dice: random.Random) -> Recipe:
    cold = dice.uniform(9.0, 12.5)
    return dataclasses.replace(
        _ale(dice),
        og=dice.uniform(44, 56),
        speed=dice.uniform(0.5, 0.85),
        usual_c=12.0,
        lag_h=dice.uniform(18, 36),
        room_c=((0.0, cold), (dice.uniform(150, 220), cold + dice.uniform(3, 5))),
    )


def _strong(dice: random.Random) -> Recipe:
    return dataclasses.replace(
        _ale(dice),
        og=dice.uniform(78, 105),
        attenuation=dice.uniform(0.68, 0.78),
        speed=dice.uniform(0.65, 1.2),
    )


def _saison(dice: random.Random) -> Recipe:
    """A yeast that stays afloat, and takes up nearly everything while it is warmed."""
    return dataclasses.replace(
        _ale(dice),
        attenuation=dice.uniform(0.85, 0.93),
        speed=dice.uniform(0.65, 1.2),
        settles=0.002,
        usual_c=23.0,
        room_c=((0.0, dice.uniform(19, 21)), (48.0, dice.uniform(22, 24)), (96.0, dice.uniform(25, 28))),
    )


def _flocculent(dice: random.Random) -> Recipe:
    """An English ale whose yeast falls out early."""
    return dataclasses.replace(
        _ale(dice), attenuation=dice.uniform(0.67, 0.74), settles=dice.uniform(0.02, 0.045)
    )


def _slow(dice: random.Random) -> Recipe:
    """Mead, sour beer, old yeast."""
    return dataclasses.replace(
        _ale(dice),
        og=dice.uniform(60, 90),
        attenuation=dice.uniform(0.72, 0.86),
        speed=dice.uniform(0.25, 0.45),
        lag_h=dice.uniform(20, 50),
        settles=dice.uniform(0.0, 0.003),
    )


def _stalled(dice: random.Random) -> Recipe:
    return dataclasses.replace(_ale(dice), stalls_at=dice.uniform(0.35, 0.62), crash=None)


def _stalled_cold(dice: random.Random) -> Recipe:
    """The chamber cools down by 2 to 3 K, and the yeast goes to sleep."""
    ale = _stalled(dice)
    begin = ale.room_c[0][1]
    return dataclasses.replace(ale, room_c=((0.0, begin), (dice.uniform(40, 60), begin - dice.uniform(2, 3))))


def _never(dice: random.Random) -> Recipe:
    return dataclasses.replace(_ale(dice), starts=False, crash=None)


def _hop_creep(dice: random.Random) -> Recipe:
    later = Later(dice.uniform(48, 96), dice.uniform(2.5, 5), dice.uniform(0.012, 0.03))
    return dataclasses.replace(_ale(dice), later=later, hours_after_end=dice.uniform(260, 360), crash=None)


def _diastatic(dice: random.Random) -> Recipe:
    later = Later(dice.uniform(100, 200), dice.uniform(5, 10), dice.uniform(0.004, 0.012))
    return dataclasses.replace(_ale(dice), later=later, hours_after_end=dice.uniform(450, 600), crash=None)


KINDS = (
    Kind("ale", "ends", _ale),
    Kind("temperature step", "ends", _step),
    Kind("kveik", "ends", _kveik),
    Kind("lager", "ends", _lager),
    Kind("strong", "ends", _strong),
    Kind("saison", "ends", _saison),
    Kind("flocculent", "ends", _flocculent),
    Kind("slow", "ends", _slow),
    Kind("stalled", "stalls", _stalled),
    Kind("stalled, cooled", "stalls", _stalled_cold),
    Kind("never started", "never starts", _never),
    Kind("hop creep", "hop creep", _hop_creep),
    Kind("diastatic", "diastatic", _diastatic),
)
