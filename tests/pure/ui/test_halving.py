"""A series with half as many buckets is the one that the readings themselves would give."""

import random
from statistics import fmean

from gateway.services.series import Line, Series
from gateway.ui.charts.halving import halved

Reading = tuple[int, float | None, float | None, bool]
"""Time, gravity, temperature, and whether it is left out."""


def series(readings: list[Reading], width: int, start: int, end: int) -> Series:
    """The buckets of readings, made one by one."""
    line = Line(1, "x", [], [], [], [], [], [], [], [], [])
    for begin in range(start - start % width, end + 1, width):
        inside = [each for each in readings if begin <= each[0] < begin + width]
        if not inside:
            continue
        sgs = [sg for _, sg, _, left_out in inside if sg is not None and not left_out]
        temps = [temp for _, _, temp, _ in inside if temp is not None]
        middle = min(max(begin + width // 2, start), end)
        line.t.append(inside[0][0] if len(inside) == 1 else middle)
        line.n.append(len(inside))
        line.left_out.append(sum(left_out for *_, left_out in inside))
        for columns, values in (
            ((line.sg_min, line.sg_max, line.sg), sgs),
            ((line.temp_min, line.temp_max, line.temp), temps),
        ):
            found = (min(values), max(values), fmean(values)) if values else (None, None, None)
            for column, value in zip(columns, found, strict=True):
                column.append(value)
    return Series(start, end, width, 900, [line], [], [], None, None)


def rounded(made: Series) -> list[object]:
    (line,) = made.lines
    columns = (line.sg_min, line.sg_max, line.sg, line.temp_min, line.temp_max, line.temp)
    numbers = [[value if value is None else round(value, 9) for value in column] for column in columns]
    return [made.width_s, line.t, line.n, line.left_out, *numbers]


def test_pairs_of_buckets_are_the_buckets_of_double_width() -> None:
    chance = random.Random(3)  # noqa: S311 chance is no secret here
    for start, count in ((0, 0), (0, 1), (7, 40), (123_456, 400)):
        at, readings = start, list[Reading]()
        for _ in range(count):
            at += chance.choice((5, 60, 60, 900, 20_000))
            readings.append((at, chance.uniform(1, 1.1), chance.uniform(1, 30), chance.random() < 0.1))
        end = max(at, start)
        assert rounded(halved(series(readings, 600, start, end))) == rounded(
            series(readings, 1200, start, end)
        )
