"""How each kind of shape is drawn: colour, width, dashes; and the colours of each scheme."""

from typing import NamedTuple


class Look(NamedTuple):
    """A colour by its token, a width in pixels, lengths of dashes, and how much of the colour is seen."""

    colour: str
    width: float = 1.0
    dash: tuple[int, ...] = ()
    opacity: float = 1.0


LOOKS = {
    "grid": Look("line"),
    "tick": Look("quiet"),
    "hair": Look("quiet", dash=(1, 3)),
    "final": Look("quiet", 1.5, (6, 4)),
    "original": Look("quiet", 2.0),
    "out": Look("quiet", 2.0),
    "out dot": Look("quiet", 4.0),
    "band": Look("beer", opacity=0.15),
    "gravity": Look("beer", 2.0),
    "gravity second": Look("beer", 2.0, (7, 4)),
    "gravity third": Look("beer", 2.0, (2, 4)),
    "before": Look("quiet", 1.5, (2, 4)),
    "temp": Look("temp", 1.5),
    "temp second": Look("temp", 1.5, (7, 4)),
    "temp third": Look("temp", 1.5, (2, 4)),
    "gravity dot": Look("beer", 7.0),
    "temp dot": Look("temp", 5.0),
    "hand": Look("beer", 2.0),
    "badge": Look("quiet", 1.0),
    **{
        f"brew{number}": Look(colour, 2.0, dash)
        for number, (colour, dash) in enumerate(
            (
                ("beer", ()),
                ("temp", ()),
                ("ink", (7, 4)),
                ("good", (2, 4)),
                ("beer", (9, 4, 2, 4)),
                ("temp", (4, 4)),
            ),
            1,
        )
    },
}
"""Looks by kind. Lines differ in their dashes where colours could be mistaken for each other."""


def text_colour(kind: str) -> str:
    """Return the colour of a text; a name has that of its line."""
    first, _, line = kind.partition(" ")
    return LOOKS[line].colour if line else TEXT_COLOURS.get(first, "quiet")


TEXT_COLOURS = {"temp": "temp", "right": "temp", "letter": "ink", "heading": "ink"}
"""Colours of texts by their kind; all others are `quiet`."""

ON_LINES = frozenset({"note", "name", "temp"})
"""Kinds of texts that may lie on a line: some ground around them keeps them legible."""

PALETTES = {
    "light": {
        "ground": "#fdfcf9",
        "surface": "#ffffff",
        "ink": "#22201b",
        "quiet": "#6b6557",
        "line": "#e4dccb",
        "beer": "#9a5b00",
        "temp": "#1f6f8b",
        "good": "#2f7d3b",
    },
    "dark": {
        "ground": "#1b1a17",
        "surface": "#26241f",
        "ink": "#ece7dc",
        "quiet": "#aaa290",
        "line": "#3f3a30",
        "beer": "#e5ab45",
        "temp": "#6fb9d4",
        "good": "#7cc489",
    },
    # Sixteen greys of electronic paper. Temperature is dashed there, because greys alone are mistaken.
    "mono": {
        "ground": "#ffffff",
        "surface": "#ffffff",
        "ink": "#000000",
        "quiet": "#444444",
        "line": "#bbbbbb",
        "beer": "#000000",
        "temp": "#555555",
        "good": "#333333",
    },
}
"""Colours by scheme and token: those of page.css, for pictures that stand alone."""
