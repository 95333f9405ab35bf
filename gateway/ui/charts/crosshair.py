"""The values under the crosshair, as texts that the page's script only shows."""

from typing import Any

from gateway.services.series import Series
from gateway.ui.words import Words


def crosshair(series: Series, words: Words) -> dict[str, list[Any]]:
    """Return the times (Unix seconds) of all points, ascending, and their texts: `7 Nov 14:15, 1.023 SG`.

    Texts are made here, so the script knows neither units nor languages.
    """
    found: list[tuple[int, str]] = []
    named = len(series.lines) > 1
    for line in series.lines:
        for at, sg, temp in zip(line.t, line.sg, line.temp, strict=True):
            values = [str(words.gravity(sg))] if sg is not None else []
            values += [str(words.temp(temp))] if temp is not None else []
            if values:
                found.append((at, ", ".join([words.moment(at), *values, *([line.name] if named else [])])))
    for hand in series.hand:
        values = [str(words.gravity(hand.sg))] if hand.sg is not None else []
        values += [str(words.temp(hand.temp))] if hand.temp is not None else []
        by_hand = words.t("chart.by_hand", values=", ".join(values))
        found.append((hand.at, f"{words.moment(hand.at)}, {by_hand}"))
    found.sort(key=lambda each: each[0])
    return {"t": [at for at, _ in found], "text": [text for _, text in found]}
