"""The values under the crosshair, as texts that the page's script only shows."""

from typing import Any

from gateway.services.series import Series
from gateway.ui.words import Words


def crosshair(series: Series, words: Words) -> dict[str, list[Any]]:
    """Return the points, oldest first, in columns: `t` (Unix seconds), `text`, `local` and `n`.

    `text` is as in `7 Nov 14:15, 1.023 SG`: texts are made here, so the script knows neither units nor
    languages. `local` is the time as a form's field takes it. `n` counts the readings of a point.
    """
    found: list[tuple[int, str, int]] = []
    named = len(series.lines) > 1
    for line in series.lines:
        for at, sg, temp, count in zip(line.t, line.sg, line.temp, line.n, strict=True):
            values = _values(sg, temp, words)
            if values:
                parts = [words.moment(at), *values, *([line.name] if named else [])]
                found.append((at, ", ".join(parts), count))
    for hand in series.hand:
        by_hand = words.t("chart.by_hand", values=", ".join(_values(hand.sg, hand.temp, words)))
        found.append((hand.at, f"{words.moment(hand.at)}, {by_hand}", 0))
    found.sort(key=lambda each: each[0])
    return {
        "t": [at for at, _, _ in found],
        "text": [text for _, text, _ in found],
        "local": [f"{words.local(at):%Y-%m-%dT%H:%M}" for at, _, _ in found],
        "n": [count for _, _, count in found],
    }


def _values(sg: float | None, temp: float | None, words: Words) -> list[str]:
    values = [str(words.gravity(sg))] if sg is not None else []
    return values + ([str(words.temp(temp))] if temp is not None else [])
