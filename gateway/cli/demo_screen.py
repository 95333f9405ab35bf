"""The demo's screen as a pure function of a moment: lines of text for a size of terminal."""

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from gateway.cli.demo_curves import LOWEST_SG, highest_sg, large_curve, sparkline
from gateway.cli.demo_state import LAPSE_DAYS, BrewRow, Event, Moment

MIN_COLUMNS, MIN_LINES = 60, 22
"""The smallest terminal with a screen; a smaller one gets a list."""

NAME_COLUMNS, GRAVITY_COLUMNS, TEMP_COLUMNS, STATE_COLUMNS = 25, 6, 8, 11
GAP = 2

CURVE_LINES_MAX = 20
AIRY_LINES = 14
"""Lines for the curve from which two of them stay blank."""

CURVE_SHARE = 0.6
"""Share of the width for the large curve; the events stand beside it."""

SCALE_COLUMNS = 6

AMBER, BLUE, GREEN, RED, GREY, BOLD = "dark_orange3", "steel_blue", "green4", "red3", "grey54", "bold"

STATE_STYLES = {
    "waits": GREY,
    "pitched": BLUE,
    "ferments": AMBER,
    "slows down": "gold3",
    "finished": GREEN,
    "stuck": RED,
    "cold crash": BLUE,
}
MOOD_STYLES = {"plain": "", "good": GREEN, "bad": RED}


def screen(moment: Moment, columns: int, lines: int, *, plain: bool = False) -> list[Text]:
    """Draw a moment in exactly so many lines. With `plain`, use ASCII alone."""
    drawn = [_heading(moment, columns), *drawn_rows(moment, columns, plain=plain)]
    # The heading of the curve, its axis, and the legend.
    spare = lines - len(drawn) - 3
    if spare >= AIRY_LINES:
        drawn.insert(1, Text(""))
        drawn.append(Text(""))
        spare -= 2
    tall = min(spare, CURVE_LINES_MAX)
    drawn += _curve_and_events(moment, columns, tall, spare - tall, plain=plain)
    drawn.append(_legend(columns, plain=plain))
    return drawn


def drawn_rows(moment: Moment, columns: int, *, plain: bool = False) -> list[Text]:
    """Draw the named devices, and the line that counts all others."""
    rows = [
        _row(row, columns, selected=number == moment.selected, plain=plain)
        for number, row in enumerate(moment.rows)
    ]
    return [*rows, _others(moment, columns)]


def _fit(text: str, columns: int, *, plain: bool = False) -> str:
    """Cut a text to a width, or fill it up; wide characters count double."""
    if cell_len(text) <= columns:
        return set_cell_size(text, columns)
    mark = "~" if plain else "…"
    return set_cell_size(text, columns - 1) + mark if columns > 0 else ""


def _heading(moment: Moment, columns: int) -> Text:
    network = "network gone" if moment.network_is_gone else "network up"
    title = "hydrometer-gateway demo   "
    if len(title) + len(moment.page) + len(network) >= columns:
        title = "demo   "
    line = Text()
    line.append(title, BOLD)
    line.append(moment.page, f"{BLUE} underline link {moment.page}")
    line.append(" " * max(1, columns - line.cell_len - len(network)))
    line.append(network, RED if moment.network_is_gone else GREEN)
    line.truncate(columns)
    return line


def _row(row: BrewRow, columns: int, *, selected: bool, plain: bool) -> Text:
    spark = columns - 2 - NAME_COLUMNS - GRAVITY_COLUMNS - TEMP_COLUMNS - STATE_COLUMNS - 2 * GAP
    name = NAME_COLUMNS
    if spark < 8:
        name, spark = NAME_COLUMNS + spark - 8, 8
    mark = (">" if plain else "▸") if selected else " "
    line = Text(f"{mark} ", BOLD if selected else "")
    line.append(_fit(row.name, name, plain=plain), BOLD if selected else "")
    line.append(("" if row.sg is None else f"{row.sg:.3f}").rjust(GRAVITY_COLUMNS), BOLD)
    degrees = "C" if plain else "°C"
    temp = "" if row.celsius is None else f"{row.celsius:.1f} {degrees}"
    line.append(temp.rjust(TEMP_COLUMNS), BLUE)
    line.append(" " * GAP)
    line.append(sparkline(row.curve, spark, LAPSE_DAYS, plain=plain), AMBER)
    line.append(" " * GAP)
    line.append(_fit(row.state, STATE_COLUMNS), STATE_STYLES[row.state])
    return line


def _others(moment: Moment, columns: int) -> Text:
    line = Text(f"  and {moment.others} more of every kind" if moment.others else "", GREY)
    counts = f"{moment.stored:,} readings kept, {moment.waiting:,} wait"
    line.append(" " * max(1, columns - line.cell_len - len(counts)))
    line.append(counts, RED if moment.network_is_gone else GREY)
    line.truncate(columns)
    return line


def _curve_and_events(
    moment: Moment, columns: int, tall: int, more_events: int, *, plain: bool
) -> list[Text]:
    row = moment.rows[moment.selected]
    wide = int(columns * CURVE_SHARE)
    left = [Text(_fit(f"{row.beer} in {row.name}", wide - GAP, plain=plain), BOLD)]
    across = wide - SCALE_COLUMNS - GAP
    scale = _scale(row, tall)
    for number, drawn in enumerate(large_curve(row.curve, across, tall, LAPSE_DAYS, plain=plain)):
        line = Text(f"{scale.get(number, ''):>{SCALE_COLUMNS - 1}} ", GREY)
        line.append(drawn, AMBER)
        left.append(line)
    left.append(Text(f"{'day':>{SCALE_COLUMNS - 1}} {_axis(across, plain=plain)}", GREY))
    left += [Text("")] * more_events
    right = _event_lines(moment.events, columns - wide, len(left) - 1, plain=plain)
    both = []
    for line, beside in zip(left, [Text("What happens", BOLD), *right], strict=True):
        line = line.copy()
        line.append(" " * (wide - line.cell_len))
        both.append(line + beside)
    return both


def _scale(row: BrewRow, tall: int) -> dict[int, str]:
    """Return the labels of the lines: the ends of the scale, and its middle if there is room."""
    top = highest_sg(row.curve)
    labels = {0: f"{top:.3f}", tall - 1: f"{LOWEST_SG:.3f}"}
    if tall >= 5:
        middle = (tall - 1) // 2
        labels[middle] = f"{top - (top - LOWEST_SG) * (middle + 0.5) / tall:.3f}"
    return labels


def _axis(columns: int, *, plain: bool) -> str:
    """Return the line below the curve: a number at the beginning of each day."""
    cells = ["-" if plain else "─"] * columns
    for day in range(int(LAPSE_DAYS)):
        cells[int(day * columns / LAPSE_DAYS)] = str(day)
    return "".join(cells)


def _event_lines(events: tuple[Event, ...], columns: int, lines: int, *, plain: bool) -> list[Text]:
    """Return the newest events, the newest last; a long one goes on in the next line."""
    made: list[Text] = []
    for event in reversed(events):
        indent = f"{event.at_s:>4.0f} s  "
        room = columns - len(indent)
        parts = _wrapped(event.text, room)
        if len(made) + len(parts) > lines:
            break
        for number, part in reversed(list(enumerate(parts))):
            line = Text(indent if number == 0 else " " * len(indent), GREY)
            line.append(_fit(part, room, plain=plain).rstrip(), MOOD_STYLES[event.mood])
            made.append(line)
    return made[::-1] + [Text("")] * (lines - len(made))


def _wrapped(text: str, columns: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) > columns:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _legend(columns: int, *, plain: bool) -> Text:
    keys = [("up down" if plain else "↑ ↓", "another brew"), ("o", "open the page"), ("q", "end")]
    line = Text("")
    for key, does in keys:
        line.append(key, BOLD)
        line.append(f" {does}   ", GREY)
    line.rstrip()
    line.truncate(columns)
    return line
