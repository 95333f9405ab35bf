"""The demo's screen: drawn from a moment, shown by a terminal of some size, compared with a stored picture.

`python -m tests.pure.cli.test_demo_screen` writes the pictures anew. Look at the change before you keep it.
"""

import io
from dataclasses import replace
from pathlib import Path

import pyte
import pytest
from rich.console import Console

from gateway.cli.demo_curves import large_curve, sampled, sparkline
from gateway.cli.demo_screen import MIN_COLUMNS, MIN_LINES, screen
from gateway.cli.demo_state import NAMED, BrewRow, Event, Moment
from tests.demo_moment import moment

GOLDEN = Path(__file__).parent / "demo_screens"
SEED = 4

PICTURES = {
    "40x100": (40, 100, 5.2, False),
    "24x80": (24, 80, 2.5, False),
    "24x80-c": (24, 80, 2.5, True),
    "22x60": (22, 60, 2.5, False),
    "24x80-begin": (24, 80, 0.4, False),
}
"""Lines, columns, the day, and whether the locale is C."""

FALL = ((0.0, 1.05), (1.0, 1.05), (2.0, 1.03), (3.0, 1.01))


def shown(drawn: Moment, columns: int, lines: int, *, plain: bool = False) -> list[str]:
    """What a terminal of that size shows: a line that is too wide or one line too many would scroll it."""
    out = io.StringIO()
    console = Console(file=out, width=columns, height=lines, force_terminal=True, color_system="256")
    drawing = screen(drawn, columns, lines, plain=plain)
    for number, line in enumerate(drawing):
        console.print(line, end="\r\n" if number < len(drawing) - 1 else "", no_wrap=True, crop=False)
    terminal = pyte.Screen(columns, lines)
    pyte.Stream(terminal).feed(out.getvalue())
    return [line.rstrip() for line in terminal.display]


def picture(name: str) -> str:
    """The picture of that name, as it is today."""
    lines, columns, day, plain = PICTURES[name]
    return "\n".join(shown(moment(SEED, day), columns, lines, plain=plain)) + "\n"


@pytest.mark.parametrize("name", PICTURES)
def test_a_moment_looks_as_it_did(name: str) -> None:
    assert picture(name) == (GOLDEN / f"{name}.txt").read_text("utf-8")


def test_a_c_locale_gets_ascii_alone() -> None:
    assert picture("24x80-c").replace("Kölsch", "").isascii()


@pytest.mark.parametrize("lines", [MIN_LINES, 24, 30, 40, 60])
@pytest.mark.parametrize("columns", [MIN_COLUMNS, 80, 100, 200])
def test_the_screen_fills_the_terminal_and_every_row_keeps_its_line(lines: int, columns: int) -> None:
    early, late = (shown(moment(SEED, day), columns, lines) for day in (0.1, 6.0))
    for number, named in enumerate(NAMED):
        first = named.name[:20]
        places = {next(i for i, line in enumerate(each) if first in line) for each in (early, late)}
        assert places in ({number + 1}, {number + 2}), named.name
    for each in (early, late):
        assert "demo   http://127.0.0.1:40123/ui/ " in each[0]
        assert each[-1] == "↑ ↓ another brew   o open the page   q end"
        assert "and 100 more of every kind" in "\n".join(each)


def test_the_chosen_brew_has_the_curve() -> None:
    one, other = (shown(moment(SEED, 3, selected=number), 80, 24) for number in (0, 7))
    assert "Pale Ale in Fermenter 1, iSpindel" in "\n".join(one)
    assert "Kölsch in Yellow Pill, RAPT portal" in "\n".join(other)
    assert [line[0] for line in other].index("▸") == [line[0] for line in one].index("▸") + 7


def test_the_newest_events_stay_in_sight_and_wide_characters_break_nothing() -> None:
    events = tuple(Event(float(number), f"event {number} of ビール", "good") for number in range(30))
    rows = (BrewRow("発酵槽" * 12, "ビール" * 12), *moment(SEED, 3).rows[1:])
    drawn = replace(moment(SEED, 3), events=events, rows=rows, network_is_gone=True)
    found = shown(drawn, 80, 24)
    assert "event 29 of" in "\n".join(found)
    assert "event 3 of" not in "\n".join(found)
    assert found[0].endswith("network gone")
    assert len(found) == 24
    assert found[-1].startswith("↑ ↓")


def test_a_sparkline_begins_at_the_left_and_ends_where_the_readings_end() -> None:
    line = sparkline(FALL, 12, 6.0, plain=False)
    assert len(line) == 12
    assert line[0] == line[1] > line[4] > line[5]
    assert line[7:] == "     "
    assert sparkline((), 5, 6.0, plain=False) == "     "
    assert sparkline(FALL, 12, 6.0, plain=True).isascii()


def test_columns_between_readings_lie_on_a_straight_line() -> None:
    assert sampled(FALL, 6, 6.0) == [
        pytest.approx(1.05),
        pytest.approx(1.04),
        pytest.approx(1.02),
        pytest.approx(1.01),
        None,
        None,
    ]


def test_a_large_curve_falls_without_a_gap() -> None:
    lines = large_curve(((0.0, 1.05), (1.0, 1.05), (1.01, 1.0), (2.0, 1.0)), 8, 5, 2.0, plain=True)
    assert len(lines) == 5
    assert all(len(line) == 8 for line in lines)
    assert all("*" in line for line in lines), "each line has a part of the fall"


if __name__ == "__main__":
    for name in PICTURES:
        (GOLDEN / f"{name}.txt").write_text(picture(name), "utf-8")
