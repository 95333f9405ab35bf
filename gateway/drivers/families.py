"""The families of devices and what to type into each one, as `settings.toml` says.

The page, `/manage/families` and the tables of the manual are made of this. It is read at its first use.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

SETTINGS = Path(__file__).with_name("settings.toml")

PLACEHOLDERS = frozenset({"host", "http_port", "mqtt_port", "tcp_port", "key"})
"""Words in braces that are filled in; anything else in braces is the device's own."""

NEEDS = frozenset({"mqtt", "tcp", "dns", "outside", "own broker", "topic"})
"""Needs of a way, beside `port N`: the port that the firmware has built in."""

_NEEDED_PORT = re.compile(r"port (\d{1,5})")
_IN_BRACES = re.compile(r"\{([a-z_]+)\}")
_ID = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_SEPARATORS = re.compile(r"[\W_]+")

_FAMILY_MEMBERS = frozenset({"about", "prepare", "hurry", "way"})
_FAMILY_ABOUT = frozenset({"title", "aliases", "drivers", "typical_s", "known_by"})
_WAY_MEMBERS = frozenset({"about", "options", "fields", "notes", "simulate"})
_WAY_ABOUT = frozenset({"id", "title", "best", "needs", "host"})


class Field(NamedTuple):
    """A field of the device's own page, and what to type there."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Way:
    """A way of a family to report.

    `options` are options of `serve` without which the gateway does not hear it. `host` is the built-in host
    that a name server has to answer for. `simulate` is the simulated device that reports that way.
    """

    id: str
    title: str
    best: bool
    needs: tuple[str, ...]
    host: str
    options: tuple[str, ...]
    fields: tuple[Field, ...]
    notes: tuple[str, ...]
    simulate: str

    @property
    def port(self) -> int | None:
        """Return the port that the firmware has built in, if it has one."""
        found = (_NEEDED_PORT.fullmatch(need) for need in self.needs)
        return next((int(match[1]) for match in found if match), None)

    @property
    def asks_for_key(self) -> bool:
        """Return whether a key of the gateway is to be typed somewhere."""
        return any("{key}" in field.text for field in self.fields)


@dataclass(frozen=True, slots=True)
class Family:
    """A family of devices, with its ways to report, the best first.

    `drivers` are the names of the drivers that read it. `typical_s` are the seconds between two reports.
    """

    id: str
    title: str
    aliases: tuple[str, ...]
    drivers: tuple[str, ...]
    typical_s: int
    known_by: str
    prepare: tuple[str, ...]
    hurry: str
    ways: tuple[Way, ...]

    def way(self, way_id: str) -> Way | None:
        """Return the way of this id."""
        return next((way for way in self.ways if way.id == way_id), None)


@lru_cache(maxsize=1)
def families() -> Mapping[str, Family]:
    """Return all families by id, in the order of the file."""
    return read_families(SETTINGS.read_text("utf-8"))


def read_families(text: str) -> Mapping[str, Family]:
    """Read families from TOML; a `ValueError` names the first mistake."""
    import tomllib  # here, because most visits to the page ask for no family

    return {family_id: _family(family_id, table) for family_id, table in tomllib.loads(text).items()}


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill in the words in braces that have a value; the others stay."""
    return _IN_BRACES.sub(lambda found: values.get(found[1], found[0]), text)


def find_families(words: str, among: Iterable[Family]) -> list[Family]:
    """Return the families that these words name: names that begin so first, then names that hold them.

    Case, blanks and hyphens make no difference. No words find all.
    """
    wanted = _folded(words)
    begins, contains = [], []
    for family in among:
        names = [_folded(name) for name in (family.title, family.id, *family.aliases)]
        if any(name.startswith(wanted) for name in names[:2]):
            begins.append(family)
        elif any(wanted in name for name in (*names, *map(_folded, family.drivers))):
            contains.append(family)
    return [*begins, *contains]


def _folded(text: str) -> str:
    return _SEPARATORS.sub("", text.casefold())


def _family(family_id: str, table: Mapping[str, Any]) -> Family:
    about = table.get("about", {})
    _check(family_id, table, _FAMILY_MEMBERS, about, _FAMILY_ABOUT)
    for member in ("title", "drivers", "typical_s", "known_by"):
        _must(bool(about.get(member)), f"{family_id} has no {member}")
    ways = tuple(_way(f"{family_id}.{each['about'].get('id')}", each) for each in table.get("way", ()))
    _must(len(ways) == len({way.id for way in ways}) > 0, f"{family_id} needs ways of different ids")
    _must([way.best for way in ways] == [True, *[False] * (len(ways) - 1)], f"{family_id}: the first is best")
    return Family(
        id=family_id,
        title=about["title"],
        aliases=tuple(about.get("aliases", ())),
        drivers=tuple(about["drivers"]),
        typical_s=int(about["typical_s"]),
        known_by=about["known_by"],
        prepare=tuple(table.get("prepare", ())),
        hurry=table.get("hurry", ""),
        ways=ways,
    )


def _way(name: str, table: Mapping[str, Any]) -> Way:
    about = table["about"]
    _check(name, table, _WAY_MEMBERS, about, _WAY_ABOUT)
    way = Way(
        id=about.get("id", ""),
        title=about.get("title", ""),
        best=about.get("best", False),
        needs=tuple(about.get("needs", ())),
        host=about.get("host", ""),
        options=tuple(table.get("options", ())),
        fields=tuple(Field(label, text.strip("\n")) for label, text in table.get("fields", ())),
        notes=tuple(table.get("notes", ())),
        simulate=table.get("simulate", ""),
    )
    _must(bool(way.title and way.simulate), f"{name} needs a title, and a simulated device")
    for need in way.needs:
        _must(need in NEEDS or _NEEDED_PORT.fullmatch(need) is not None, f"{name}: {need!r} is no need")
    _must(("dns" in way.needs) == bool(way.host), f"{name}: a host goes with the need dns")
    _must(bool(way.options) or not {"topic", "own broker"} & {*way.needs}, f"{name} needs options")
    _check_placeholders(name, [*(field.text for field in way.fields), *way.notes])
    return way


def _check_placeholders(name: str, texts: Sequence[str]) -> None:
    for text in texts:
        for word in _IN_BRACES.findall(text):
            _must(word in PLACEHOLDERS, f"{name}: nobody fills in {{{word}}}")


def _check(
    name: str,
    table: Mapping[str, Any],
    members: frozenset[str],
    about: Mapping[str, Any],
    about_members: frozenset[str],
) -> None:
    odd = [*(table.keys() - members), *(about.keys() - about_members)]
    _must(not odd, f"{name}: nobody reads {', '.join(odd)}")
    _must(_ID.fullmatch(name.rpartition(".")[2]) is not None, f"{name} is no id")


def _must(holds: bool, words: str) -> None:
    if not holds:
        raise ValueError(f"settings.toml: {words}")
