"""What to type into each device, in `docs/devices.md`, made of `gateway/drivers/settings.toml`.

`python -m tests.pure.drivers.settings` prints it, `--write` puts it into the manual between its marks.
"""

import re
import sys
import textwrap
from collections.abc import Iterator, Sequence

from gateway.drivers.families import Family, Field, Way, families, fill
from tests.pure.drivers.support import MANUAL

BEGIN = re.compile(r"<!-- settings of (\w+): python -m tests\.pure\.drivers\.settings --write -->")
END = "<!-- end of settings -->"

WRITTEN = {"host": "GATEWAY", "http_port": "8080", "mqtt_port": "1883", "tcp_port": "9501", "key": "hg_..."}
"""What the manual writes for the words in braces."""

CELL_CHARACTERS = 70
"""The longest text in a table; a longer one, or one of several lines, stands below it."""

LINE_CHARACTERS = 120
KEPT_BLANK = "\0"

SHOWN_BELOW = "the text below"

BUILT_IN = "[built in](#a-fixed-port-or-a-fixed-host)"
OUTSIDE = "See [a device or a cloud outside your network](#a-device-or-a-cloud-outside-your-network)."


def begin(family_id: str) -> str:
    return f"<!-- settings of {family_id}: python -m tests.pure.drivers.settings --write -->"


def block(family: Family) -> str:
    """All that the data say about a family, as Markdown."""
    from_outside = any("outside" in way.needs for way in family.ways)
    before = [
        *family.prepare,
        *([OUTSIDE] if from_outside else []),
        *([family.hurry] if family.hurry else []),
    ]
    texts = [wrapped(" ".join(before))] if before else []
    if any(way.fields for way in family.ways):
        chosen = family.ways[0] if len(family.ways) > 1 else None
        texts.append("\n".join(["| way | what to type |", "| --- | --- |", *rows_of(family.ways, chosen)]))
    long = [(way, field) for way in family.ways for field in way.fields if is_long(field.text)]
    texts += [below(field, way.title if len(long) > 1 else "") for way, field in long]
    notes = [
        wrapped(f"- **{way.title}:** {' '.join(said)}") for way in family.ways if (said := [*remarks(way)])
    ]
    if notes:
        texts.append("\n".join(notes))
    texts.append(wrapped(f"The gateway knows it by {family.known_by}."))
    return "\n\n".join(dict.fromkeys(texts))


def rows_of(ways: Sequence[Way], chosen: Way | None) -> list[str]:
    """A row for each way; one for several in which the same is typed, none where nothing can be typed."""
    titles: dict[tuple[str, str], list[str]] = {}
    for way in ways:
        typed = [
            f"{field.name} {SHOWN_BELOW if is_long(field.text) else f'`{fill(field.text, WRITTEN)}`'}"
            for field in way.fields
        ]
        cell = ", ".join(typed).replace("|", "\\|")
        # The text below has the title of its way, so such a way has a row of its own.
        own = way.title if SHOWN_BELOW in cell else ""
        titles.setdefault((cell, own), []).append(f"{way.title}{' (take this one)' if way is chosen else ''}")
    return [f"| {'; '.join(same)} | {cell} |" for (cell, _), same in titles.items() if cell]


def is_long(text: str) -> bool:
    return "\n" in text or len(text) > CELL_CHARACTERS


def below(field: Field, way: str) -> str:
    """The text of a field, with the name of its way if several ways have such a text."""
    language = "json" if field.text.startswith("{") else "yaml"
    return f"{field.name}{f' for {way}' if way else ''}:\n\n```{language}\n{fill(field.text, WRITTEN)}\n```"


def remarks(way: Way) -> Iterator[str]:
    """What a way needs, and what else to know of it."""
    if "dns" in way.needs:
        yield f"The host `{way.host}` is {BUILT_IN}."
    for note in way.notes:
        yield fill(note, WRITTEN)
    if way.options:
        yield f"Start the gateway with `serve {' '.join(way.options)}`."
    elif way.port is not None and "mqtt" not in way.needs:
        yield f"Start the gateway with `serve --also-listen {way.port}`."


def wrapped(text: str) -> str:
    """The text in lines; code and the words of a link stay in one line."""
    kept = re.sub(r"`[^`]*`|\[[^\]]*\]", lambda found: found[0].replace(" ", KEPT_BLANK), text)
    lines = textwrap.fill(
        kept, LINE_CHARACTERS, subsequent_indent="  " if text.startswith("- ") else "",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return lines.replace(KEPT_BLANK, " ")


def with_settings(manual: str) -> str:
    """The manual with the settings of today."""
    made, at = "", 0
    for found in BEGIN.finditer(manual):
        end = manual.index(END, found.end())
        made += f"{manual[at : found.end()]}\n\n{block(families()[found[1]])}\n\n"
        at = end
    return made + manual[at:]


def placed(manual: str) -> list[str]:
    """The families whose settings have a place in the manual."""
    return BEGIN.findall(manual)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        MANUAL.write_text(with_settings(MANUAL.read_text("utf-8")), "utf-8")
    else:
        print("\n\n".join(f"### {each.title}\n\n{block(each)}" for each in families().values()))
