"""What to type into each device, in `gateway/drivers/README.md`, made of `gateway/drivers/settings.toml`.

`python -m tests.pure.drivers.settings` prints it, `--write` puts it into the README between its marks.
"""

import re
import sys
import textwrap
from collections.abc import Iterator

from gateway.drivers.families import Family, Field, Way, families, fill
from tests.pure.drivers.support import README

BEGIN = re.compile(r"<!-- settings of (\w+): python -m tests\.pure\.drivers\.settings --write -->")
END = "<!-- end of settings -->"

WRITTEN = {"host": "GATEWAY", "http_port": "8080", "mqtt_port": "1883", "tcp_port": "9501", "key": "hg_..."}
"""What the README writes for the words in braces."""

CELL_CHARACTERS = 70
"""The longest text in a table; a longer one, or one of several lines, stands below it."""

LINE_CHARACTERS = 120

SHOWN_BELOW = "the text below"


def begin(family_id: str) -> str:
    return f"<!-- settings of {family_id}: python -m tests.pure.drivers.settings --write -->"


def block(family: Family) -> str:
    """All that the data say about a family, as Markdown."""
    known_by = f"*Known by {family.known_by.replace('`', '')}.*"
    texts = [wrapped(" ".join([known_by, *family.prepare, family.hurry]).strip())]
    if any(way.fields for way in family.ways):
        rows = [row for way in family.ways if (row := row_of(way))]
        texts.append("\n".join(["| way | what to type |", "| --- | --- |", *rows]))
    texts += [below(field) for way in family.ways for field in way.fields if is_long(field.text)]
    notes = [
        wrapped(f"- **{way.title}:** {' '.join(said)}") for way in family.ways if (said := [*remarks(way)])
    ]
    if notes:
        texts.append("\n".join(notes))
    return "\n\n".join(dict.fromkeys(texts))


def row_of(way: Way) -> str:
    """The row of a way in the table; nothing where nothing can be typed."""
    typed = [
        f"{field.name} {SHOWN_BELOW if is_long(field.text) else f'`{fill(field.text, WRITTEN)}`'}"
        for field in way.fields
    ]
    cell = ", ".join(typed).replace("|", "\\|")
    return f"| {way.title}{', the one to take' if way.best else ''} | {cell} |" if cell else ""


def is_long(text: str) -> bool:
    return "\n" in text or len(text) > CELL_CHARACTERS


def below(field: Field) -> str:
    language = "json" if field.text.startswith("{") else "yaml"
    return f"{field.name}:\n\n```{language}\n{fill(field.text, WRITTEN)}\n```"


def remarks(way: Way) -> Iterator[str]:
    """What a way needs, and what else to know of it."""
    if "dns" in way.needs:
        yield f"The host `{way.host}` is built in: let your name server answer with the gateway."
    if way.options:
        yield " and ".join(f"`serve {option}`" for option in way.options) + "."
    elif way.port is not None and "mqtt" not in way.needs:
        yield f"`serve --also-listen {way.port}`."
    if "outside" in way.needs:
        yield "The Internet must reach the gateway, see above."
    for note in way.notes:
        yield fill(note, WRITTEN)


def wrapped(text: str) -> str:
    return textwrap.fill(
        text, LINE_CHARACTERS, subsequent_indent="  " if text.startswith("- ") else "",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def with_settings(readme: str) -> str:
    """The README with the settings of today."""
    made, at = "", 0
    for found in BEGIN.finditer(readme):
        end = readme.index(END, found.end())
        made += f"{readme[at : found.end()]}\n\n{block(families()[found[1]])}\n\n"
        at = end
    return made + readme[at:]


def placed(readme: str) -> list[str]:
    """The families whose settings have a place in the README."""
    return BEGIN.findall(readme)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        README.write_text(with_settings(README.read_text("utf-8")), "utf-8")
    else:
        print("\n\n".join(f"### {each.title}\n\n{block(each)}" for each in families().values()))
