"""Scales: values to pixels, and an axis whose ticks are round numbers of the viewer's unit. Pure."""

import math
from typing import NamedTuple

TICKS = (4, 6)
"""The least and the most ticks on an axis of values, where there is room for them."""

TICK_PX = 34
"""Pixels of height that one tick needs at least."""

NEARLY = 1e-9
"""Part of a step within which a value counts as a tick: sums of floats are not exact."""


class Scale(NamedTuple):
    """A straight way from values `low` to `high` to pixels `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


class Axis(NamedTuple):
    """A range of values, and its ticks: multiples of a step of 1, 2 or 5 times a power of ten."""

    low: float
    high: float
    ticks: tuple[float, ...]
    decimals: int


def most_ticks(height: float) -> tuple[int, int]:
    """Return the least and the most ticks for a height in pixels."""
    most = min(TICKS[1], max(2, int(height / TICK_PX)))
    return min(TICKS[0], max(1, most // 2)) if most < TICKS[1] else TICKS[0], most


def axis(low: float, high: float, least: int = TICKS[0], most: int = TICKS[1]) -> Axis:
    """Return an axis from `low` to `high` with `least` to `most` ticks; widen it where no step gives so many.

    Of all steps that need widening, take the one that widens least: then the line keeps its height.
    """
    span = high - low
    exponent = math.floor(math.log10(span / most))
    found: list[tuple[float, int, int, int, int]] = []
    for power in range(exponent - 1, exponent + 3):
        for factor in (1, 2, 5):
            step = factor * 10.0**power
            first = math.ceil(low / step - NEARLY)
            last = math.floor(high / step + NEARLY)
            if last - first + 1 > most:
                continue
            while last - first + 1 < least:
                if low - (first - 1) * step <= (last + 1) * step - high:
                    first -= 1
                else:
                    last += 1
            widened = max(0.0, low - first * step) + max(0.0, last * step - high)
            found.append((widened if widened > NEARLY * step else 0.0, power, factor, first, last))
    _, power, factor, first, last = min(found)
    # Divided, not multiplied, below 1: 3 * 0.1 is 0.30000000000000004.
    ticks = tuple(
        number * factor * 10**power if power >= 0 else number * factor / 10**-power
        for number in range(first, last + 1)
    )
    return Axis(min(low, ticks[0]), max(high, ticks[-1]), ticks, max(0, -power))


def at_least(low: float, high: float, height: float, below: float = 0.5) -> tuple[float, float]:
    """Return the range, widened to `height` where it is smaller; `below` is the part that goes below."""
    missing = max(0.0, height - (high - low))
    return low - missing * below, high + missing * (1 - below)
