"""Curves made of characters: a sparkline in one line, and a large curve in several."""

import math
from collections.abc import Sequence

Curve = Sequence[tuple[float, float]]
"""Days since the first reading, and SG; oldest first."""

BLOCKS = "▁▂▃▄▅▆▇"
ASCII_LEVELS = "_.-=*#"
"""The levels of a sparkline, the lowest first. A full block would touch the line above."""

BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The dots of a braille character, by line and column."""

LOWEST_SG = 1.0
"""The lower end of a scale: so the scale stays while the curve falls."""

STEP_SG = 0.01


def highest_sg(curve: Curve) -> float:
    """Return the upper end of a curve's scale: a whole step above its highest value."""
    steps = math.ceil(round((max((sg for _, sg in curve), default=1.05) - LOWEST_SG) / STEP_SG, 3))
    return LOWEST_SG + STEP_SG * max(steps, 1)


def sampled(curve: Curve, columns: int, days: float) -> list[float | None]:
    """Return the SG of each column, None after the last reading; straight lines join the readings."""
    found: list[float | None] = []
    place = 0
    for column in range(columns):
        day = (column + 0.5) * days / columns
        while place < len(curve) and curve[place][0] < day:
            place += 1
        if place == len(curve):
            # The column of the last reading shows it, although its middle lies behind.
            last = curve and curve[-1][0] >= column * days / columns
            found.append(curve[-1][1] if last else None)
        elif place == 0:
            found.append(curve[0][1])
        else:
            (before, high), (after, low) = curve[place - 1], curve[place]
            found.append(high + (low - high) * (day - before) / (after - before))
    return found


def sparkline(curve: Curve, columns: int, days: float, *, plain: bool) -> str:
    """Draw a curve in one line. With `plain`, use ASCII alone."""
    levels = ASCII_LEVELS if plain else BLOCKS
    top = highest_sg(curve)
    return "".join(
        " " if sg is None else levels[_level(sg, top, len(levels))] for sg in sampled(curve, columns, days)
    )


def _level(sg: float, top: float, levels: int) -> int:
    """Return which of so many levels shows an SG, from 0."""
    share = (sg - LOWEST_SG) / (top - LOWEST_SG)
    return min(max(int(share * levels), 0), levels - 1)


def large_curve(curve: Curve, columns: int, lines: int, days: float, *, plain: bool) -> list[str]:
    """Draw a curve in several lines, the first one on top. With `plain`, use ASCII alone."""
    across, down = (1, 1) if plain else (2, 4)
    levels, top = lines * down, highest_sg(curve)
    cells = [[0] * columns for _ in range(lines)]
    before: int | None = None
    for x, sg in enumerate(sampled(curve, columns * across, days)):
        if sg is None:
            before = None
            continue
        level = _level(sg, top, levels)
        # A steep fall leaves no gap: the column reaches up to the one before. The line is two dots thick.
        thick = min(level + (1 if plain else 2), levels)
        for each in range(level, max(thick, before if before is not None else 0)):
            y = levels - 1 - each
            cells[y // down][x // across] |= 1 if plain else DOTS[y % down][x % across]
        before = level
    if plain:
        return ["".join("*" if cell else " " for cell in line) for line in cells]
    return ["".join(chr(BRAILLE + cell) if cell else " " for cell in line) for line in cells]
