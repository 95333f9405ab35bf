"""QR codes: of half blocks for a terminal, and as one path for a page."""

from dataclasses import dataclass
from io import StringIO

QUIET = 2
"""Light modules around a code. Four are the standard; two are enough for phones, and fit a small terminal."""


@dataclass(frozen=True, slots=True)
class QrCode:
    """A code: its width and height in modules with the light ones around it, and its dark modules as a path.

    The path is for SVG: one line of a run of dark modules after the other.
    """

    size: int
    path: str


def for_terminal(text: str) -> str:
    """Return a code of the text in half blocks, for light letters on a dark ground."""
    import segno

    drawn = StringIO()
    segno.make_qr(text, error="l").terminal(out=drawn, border=QUIET, compact=True)
    return drawn.getvalue().rstrip("\n")


def as_path(text: str) -> QrCode:
    """Return a code of the text as a path."""
    import segno

    rows = [bytes(row) for row in segno.make_qr(text, error="l").matrix_iter(border=QUIET)]
    runs = []
    for down, row in enumerate(rows):
        start = row.find(1)
        while start >= 0:
            end = row.find(0, start)
            end = len(row) if end < 0 else end
            runs.append(f"M{start} {down}h{end - start}v1H{start}z")
            start = row.find(1, end)
    return QrCode(len(rows), "".join(runs))
