"""The banner above each page: the worst alarm, or what keeps readings from being stored or sent on."""

from typing import NamedTuple

from gateway.services.banner import worst_trouble
from gateway.ui.alarm_words import SIGNS, address_of, own_alarms, title_of
from gateway.ui.pages import Part, Row, Visit


class Banner(NamedTuple):
    """A banner: `bad`, `warn` or `good`, its text, and the page that tells more; empty for none.

    `id` is that of the alarm that it tells of, 0 for none; then `title` is in the viewer's language, and
    the text is English. `more` tells of other alarms.
    """

    kind: str
    text: str
    url: str
    id: int = 0
    title: str = ""
    more: str = ""


async def show(visit: Visit) -> Part:
    """Show the banner, or nothing."""
    return Part("parts/banner.html", ("alarm", "gateway"), {"banner": banner_of(visit)})


def banner_of(visit: Visit) -> Banner | None:
    """Return the banner. It asks nobody, so that it can tell of a store that does not answer."""
    alarms = own_alarms(visit)
    worst = worst_trouble(visit.services.stats) if visit.viewer.is_owner else None
    loud = [alarm for alarm in alarms if alarm.severity != "info"]
    if worst is not None and (worst.is_bad or not loud):
        page = "sending" if worst.kind == "sending" else "settings"
        text = visit.t(f"banner.{worst.kind}", words=worst.words, part=worst.part)
        return Banner("bad" if worst.is_bad else "warn", text, visit.url(page) if visit.has(page) else "")
    if not alarms:
        return None
    first, others = alarms[0], len(alarms) - 1
    return Banner(
        SIGNS[first.severity],
        first.text,
        visit.url("alarms") if others else address_of(visit, first),
        first.id,
        title_of(visit, first.rule),
        visit.t("alarms.more", n=others) if others else "",
    )


ROWS = (Row("GET", "/banner", show, "banner", "The worst alarm or trouble"),)
"""The banner."""
