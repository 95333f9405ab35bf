"""Help: words explained, how to read the chart, what each flag means, screens on the wall, the licence."""

from functools import cache
from pathlib import Path

from gateway.ui.pages import Answer, Page, Row, Visit

TERMS = ("og", "now", "fg", "attenuation", "abv", "change", "plato", "tilt", "alarm", "api")
CHART = ("gravity", "band", "temp", "gap", "marks", "hand", "left_out", "read")
FLAGS = (
    "gravity_spike",
    "gravity_rate",
    "krausen_bump",
    "gravity_out_of_range",
    "gravity_missing",
    "gravity_zero",
    "gravity_stale",
    "angle_zero",
    "angle_may_be_gravity",
    "calibration_out_of_range",
    "temp_sensor_fault",
    "temp_out_of_range",
    "test_send",
    "excluded",
    "clock_suspect",
    "clock_corrected",
    "clock_estimated",
    "comment_repeated",
)
"""All flags of readings, those of gravity first."""

SCREENS = ("keep_on", "link", "sleep", "old")
KEYS = ("look", "change", "report", "lost")

DISTRIBUTION = "hydrometer-gateway"
LICENCE = "LICENSE"


async def show(visit: Visit) -> Answer:
    """Show the help."""
    t = visit.t
    values = {
        "terms": [(t(f"help.term.{each}"), t(f"help.term.{each}.what")) for each in TERMS],
        "chart": [t(f"help.chart.{each}") for each in CHART],
        "flags": [(_flag(visit, each), each, t(f"help.flag.{each}")) for each in FLAGS],
        "screens": [t(f"help.screen.{each}") for each in SCREENS],
        "keys": [t(f"help.key.{each}") for each in KEYS],
    }
    return Page("help.html", t("help.title"), values, menu="help")


def _flag(visit: Visit, name: str) -> str:
    """Return a flag in the words of the tables of readings."""
    key = f"device.flag.{name}"
    return visit.t(key) if visit.words.has(key) else name


async def show_licence(visit: Visit) -> Answer:
    """Show the licence as it came with the program."""
    return Page("licence.html", visit.t("help.licence"), {"text": licence()}, menu="help")


@cache
def licence() -> str:
    """Return the text of the licence: of the installed program, or of the checkout that runs."""
    beside = Path(__file__).parents[3] / LICENCE
    if beside.exists():
        return beside.read_text("utf-8")
    from importlib import metadata  # here, because it takes 0.5 MB for one rare page

    try:
        found = metadata.distribution(DISTRIBUTION).read_text(f"licenses/{LICENCE}")
    except metadata.PackageNotFoundError:
        found = None
    return found or "MIT"


ROWS = (
    Row("GET", "/help", show, "help", "Words, the chart, flags, screens, keys"),
    Row("GET", "/help/licence", show_licence, "licence", "The licence"),
)
