"""A chart in words: what a person who does not see the lines must know."""

from gateway.services.figures import Figures
from gateway.services.series import Series
from gateway.ui.words import Words


def finding(series: Series, figures: Figures | None, words: Words) -> str:
    """Return what the chart shows in sentences: gravity, temperature, events."""
    points = gravities(series)
    temps = [each for line in series.lines for each in (*line.temp_min, *line.temp_max, *line.temp)]
    degrees = [each for each in (*temps, *(hand.temp for hand in series.hand)) if each is not None]
    if not points and not degrees:
        return words.t("chart.finding.none")
    sentences = [_gravity(points, series, figures, words)] if points else []
    if degrees:
        sentences.append(_temperature(min(degrees), max(degrees), words))
    happened = len({mark.event_id for mark in series.events} | {hand.event_id for hand in series.hand})
    happened += len(series.alarms)
    if happened:
        sentences.append(words.t("chart.finding.events", n=happened))
    return " ".join(sentences)


def gravities(series: Series) -> list[tuple[int, float]]:
    """Return all average gravities with their times, oldest first, of devices and by hand."""
    pairs = (pair for line in series.lines for pair in zip(line.t, line.sg, strict=True))
    points = [(at, sg) for at, sg in pairs if sg is not None]
    points += [(hand.at, hand.sg) for hand in series.hand if hand.sg is not None]
    return sorted(points)


def _gravity(points: list[tuple[int, float]], series: Series, figures: Figures | None, words: Words) -> str:
    (first_at, first), (last_at, last) = points[0], points[-1]
    if figures is not None:
        # The figures say the same as the page's figures above: a median, not the very first reading.
        begins = figures.began_at is None or series.start <= figures.began_at
        if figures.original is not None and begins:
            first = figures.original.sg
        if figures.gravity is not None and last_at <= figures.gravity.at <= series.end:
            last = figures.gravity.value
    begin, end = words.gravity(first), words.gravity(last)
    if last_at == first_at:
        return words.t("chart.finding.one", gravity=str(end), when=words.moment(last_at))
    span = words.span(_rounded(last_at - first_at))
    if begin.number == end.number:
        return words.t("chart.finding.same", gravity=str(end), span=span)
    key, now = "fell" if last < first else "rose", figures.gravity if figures is not None else None
    if figures is not None and figures.still_since and now is not None and now.at <= series.end:
        still = words.span(_rounded(now.at - figures.still_since))
        return words.t(f"chart.finding.{key}_still", begin=begin.number, end=str(end), span=span, still=still)
    return words.t(f"chart.finding.{key}", begin=begin.number, end=str(end), span=span)


def _rounded(seconds: float) -> float:
    """Return the seconds in full hours where they are more than a day: minutes would only look exact."""
    return round(seconds / 3600) * 3600 if seconds > 86_400 else seconds


def _temperature(low: float, high: float, words: Words) -> str:
    begin, end = words.temp(low), words.temp(high)
    if begin.number == end.number:
        return words.t("chart.finding.temp_same", temp=str(end))
    return words.t("chart.finding.temp", low=begin.number, high=str(end))
