"""The forecast: two sigmoids through the fall of gravity, and the time when one point is left."""

import math
from collections.abc import Callable, Iterable, Sequence
from operator import mul

from gateway.insight.records import Finish, Unknown
from gateway.insight.series import DAY_S, HOUR_S, Point, bucket_medians

MOST_POINTS = 56
LEAST_POINTS = 12
LEAST_AGE_S = 24 * HOUR_S
LEAST_ATTENUATION = 35.0
LEAST_FALL_SG = 0.003
RATES_PER_H = (0.004, 1.0)
FARTHEST_S = 21 * DAY_S

STEPS = 45
ENOUGH = 1e-4
"""Difference of the corners, as a share of the loss, at which the search ends."""

START_PER_H = 0.08
NOISE_SG = 0.0015
BEND = 1.5
"""Noises from which on the loss grows straight."""

HALF_WEIGHT_H = 48.0
OG_NOISE_SG = 0.0015
FG_NOISE_SG = 0.002
USUAL_LEFT = 0.24
USUAL_LEFT_NOISE = 0.05
"""Share of the original gravity that stays without a recipe, and its deviation."""

LEFT_SG = 0.001
"""Fall that is left at the finish."""

LEAST_REST_S = 6 * HOUR_S
EARLY, EARLY_S = 0.4, -3 * HOUR_S
LATE, LATE_S = 2.5, 6 * HOUR_S
DIFFER, DIFFER_S = 2.0, 12 * HOUR_S

SHARPER = 3 / 4
"""Weight of the sharper model. With equal ones the forecast at 90 % of the fall was late by 6 to 8 h."""

MOVED_S = 3 * HOUR_S
"""The forecast that is shown changes when it has moved by this."""

MOST_Z = 60.0
"""Bound of the exponent."""


def _logistic(numbers: Iterable[float]) -> list[float]:
    return [1 / (1 + math.exp(z)) for z in numbers]


def _sharp(numbers: Iterable[float]) -> list[float]:
    return [4 / root**2 for root in [2 + math.exp(z) for z in numbers]]


def _logistic_end(share: float) -> float:
    """Return z where the logistic curve is `share`."""
    return math.log(1 / share - 1)


def _sharp_end(share: float) -> float:
    return math.log(2 * (share**-0.5 - 1))


Curve = Callable[[Iterable[float]], list[float]]
Inverse = Callable[[float], float]
MODELS: tuple[tuple[Curve, Inverse], ...] = ((_logistic, _logistic_end), (_sharp, _sharp_end))
"""Falling curves from 1 to 0, and their inverses."""


def forecast(
    at: Sequence[int],
    values: Sequence[float],
    now: int,
    since: int,
    og: float,
    recipe_fg: float | None,
) -> Finish | Unknown:
    """Return the finish as the readings from `since` to `now` show it, or why it is not yet known."""
    bucket_s = max(HOUR_S, (now - since) / MOST_POINTS)
    points = bucket_medians(at, values, now, bucket_s, MOST_POINTS + 1, since)
    if len(points) < LEAST_POINTS:
        return "few_points"
    ends = []
    for curve, inverse in MODELS:
        a, b, k, m = _fit(curve, points, og, recipe_fg)
        if b < LEAST_FALL_SG:
            return "flat"
        low, high = RATES_PER_H
        if not low <= k <= high:
            return "rate_constant"
        ends.append((m + inverse(LEFT_SG / b) / k, a))
    (first, first_fg), (second, second_fg) = ends
    finish = (1 - SHARPER) * first + SHARPER * second
    if finish * HOUR_S > FARTHEST_S:
        return "far_away"
    rest = max(finish * HOUR_S, LEAST_REST_S)
    if abs(first - second) * HOUR_S > DIFFER * rest + DIFFER_S:
        return "models_differ"
    return Finish(
        at=max(now + round(finish * HOUR_S), now),
        early=max(now + round(EARLY * rest + EARLY_S), now),
        late=now + round(LATE * rest + LATE_S),
        fg=(first_fg + second_fg) / 2,
    )


def _fit(
    curve: Curve, points: Sequence[Point], og: float, recipe_fg: float | None
) -> tuple[float, float, float, float]:
    """Return a, b, k, m of `a + b * curve(k * (t - m))`; t in hours, 0 is now."""
    fg = 1 + (og - 1) * USUAL_LEFT if recipe_fg is None else recipe_fg
    fg_noise = (og - 1) * USUAL_LEFT_NOISE if recipe_fg is None else FG_NOISE_SG
    times = [time for time, _ in points]
    # Heights above the expected end keep the sums small.
    heights = [sg - fg for _, sg in points]
    weights = [0.5 ** (-time / HALF_WEIGHT_H) for time in times]
    start = og - fg
    of_og, of_fg = (NOISE_SG / OG_NOISE_SG) ** 2, (NOISE_SG / fg_noise) ** 2
    sum_w = sum(weights) + of_og + of_fg
    weighted = list(map(mul, weights, heights))
    sum_y = sum(weighted) + of_og * start
    bend = BEND * NOISE_SG

    def solve(log_k: float, m: float) -> tuple[float, float, float]:
        """Return the loss, and a and b that are best with these k and m."""
        k = math.exp(log_k)
        # Times are in order, so that the first and the last tell whether the exponent stays in its bounds.
        numbers = [k * (time - m) for time in times]
        if numbers[0] < -MOST_Z or numbers[-1] > MOST_Z:
            numbers = [max(min(z, MOST_Z), -MOST_Z) for z in numbers]
        falls = curve(numbers)
        of_falls = list(map(mul, weights, falls))
        sum_g = sum(of_falls) + of_og
        sum_gg = sum(map(mul, of_falls, falls)) + of_og
        sum_gy = sum(map(mul, of_falls, heights)) + of_og * start
        below = sum_w * sum_gg - sum_g * sum_g
        if below <= 0:
            return math.inf, 0.0, 0.0
        b = (sum_w * sum_gy - sum_g * sum_y) / below
        a = (sum_y - b * sum_g) / sum_w
        offs = [height - a - b * fall for height, fall in zip(heights, falls, strict=True)]
        losses = [off * off if -bend <= off <= bend else bend * (2 * abs(off) - bend) for off in offs]
        loss = of_og * (a + b - start) ** 2 + of_fg * a * a + sum(map(mul, weights, losses))
        return loss, a, b

    half = start / 2
    middle = next((time for time, height in zip(times, heights, strict=True) if height <= half), 0.0)
    log_k, m = _nelder_mead(lambda x, y: solve(x, y)[0], (math.log(START_PER_H), middle), (0.5, 12.0))
    _, a, b = solve(log_k, m)
    return fg + a, b, math.exp(log_k), m


Corner = tuple[float, float, float]


def _nelder_mead(
    loss: Callable[[float, float], float], start: tuple[float, float], steps: tuple[float, float]
) -> tuple[float, float]:
    """Return where the loss of two numbers is least, after `STEPS` steps at most."""

    def corner(x: float, y: float) -> Corner:
        return loss(x, y), x, y

    x, y = start
    simplex = sorted([corner(x, y), corner(x + steps[0], y), corner(x, y + steps[1])])
    for _ in range(STEPS):
        best, good, worst = simplex
        centre_x, centre_y = (best[1] + good[1]) / 2, (best[2] + good[2]) / 2
        out_x, out_y = centre_x - worst[1], centre_y - worst[2]
        tried = corner(centre_x + out_x, centre_y + out_y)
        if tried < best:
            farther = corner(centre_x + 2 * out_x, centre_y + 2 * out_y)
            simplex[2] = min(tried, farther)
        elif tried < good:
            simplex[2] = tried
        else:
            sign = 0.5 if tried < worst else -0.5
            inside = corner(centre_x + sign * out_x, centre_y + sign * out_y)
            if inside < min(tried, worst):
                simplex[2] = inside
            else:
                simplex[1:] = [corner((x + best[1]) / 2, (y + best[2]) / 2) for _, x, y in (good, worst)]
        simplex.sort()
        if simplex[2][0] - simplex[0][0] <= ENOUGH * simplex[0][0]:
            break
    return simplex[0][1], simplex[0][2]
