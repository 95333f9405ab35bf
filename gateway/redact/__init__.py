"""Takes out of what devices send whatever tells whose it is; figures and punctuation stay byte for byte.

Works on the text as it came, because spacing, order, trailing commas and the writing of numbers are what a
captured payload is kept for. What has a name that nobody knows is taken out as well, unless it is a figure or
a unit; e-mail, MAC and IP addresses and GUIDs are wherever they stand.

The formats are those of devices sections 5 to 11: JSON, forms and queries, FHEM's command, InfluxDB's line
protocol, Prometheus' text format.
"""

import re
from collections.abc import Callable, Sequence

from gateway.redact.kinds import MEASUREMENTS, STRUCTURE, Kind, kind_of
from gateway.redact.pseudonyms import Pseudonyms
from gateway.redact.units import Unit, form_units, json_units, text_of, written

_JSON = re.compile(
    r'"(?P<string>(?:[^"\\]|\\.)*)"(?P<colon>\s*:(?P<object>\s*\{)?)?|(?P<bare>[^\s"{}\[\],:]+)', re.DOTALL
)
_LETTERED = re.compile(r"(?:\s*[A-Z]:\s*(?:[+-]?[0-9.,]+|null|nan)\s*)+\Z")
"""TCONTROL: `T: 20.5 D: 45.1`."""
_IS_METRIC = re.compile(
    r"# (?:TYPE|HELP) |[A-Za-z_:][\w:.-]*(?:\{[^}\n]*\}\s*|[ \t]+)[+-]?(?:[0-9.]|NaN|Inf)"
)
_IS_LINE = re.compile(r"(?:\\.|[^\s,={}\[\]&#\\])+(?:,(?:\\.|[^\s\\])*)? [^\s=&]+=")
_LINE = re.compile(r"(?P<head>(?:\\.|[^\\ ])*)(?P<gap> +)(?P<fields>.*)\Z", re.DOTALL)
_PAIR = re.compile(r'(?P<key>[^\s,="]+)=(?P<quote>"?)(?P<value>(?<=")(?:\\.|[^"\\])*|[^,\s"]*)(?P=quote)')
_LABEL = re.compile(r'(?P<key>[A-Za-z_]\w*)="(?P<value>(?:\\.|[^"\\])*)"')
_HELP = re.compile(r"# TYPE \S+ \S+\s*\Z|# HELP \S+ The approximate value of \S+\s*\Z")
"""Comments that are firmware's own."""
_BLANK = re.compile(r"(%20|\+| )")

_NAME_PLACE, _UNIT_PLACE = 2, 8
_ID_PLACE, _ID_PLACE_WITHOUT_UNIT = 14, 12
"""In FHEM's command, counted with the blanks between its words."""


class Redactor:
    """One run: the same text is the same pseudonym in every payload, topic and path."""

    def __init__(self) -> None:
        self._pseudonyms = Pseudonyms()
        self.word = self._pseudonyms.word

    def body(self, text: str) -> str:
        """A body or a query of any format."""
        start = text.strip("\ufeff \t\r\n\x00")
        if start.startswith(("{", "[")):
            return self._json(text)
        if start.startswith("?") and "\n" in start:  # parameters that came beside the body
            parameters, _, body = text.partition("\n")
            return f"{self._form(parameters)}\n{self.body(body)}"
        if _LETTERED.match(start):
            return text
        if _IS_METRIC.match(start):
            return "\n".join(map(self._metric, text.split("\n")))
        if _IS_LINE.match(start):
            return "\n".join(map(self._line, text.split("\n")))
        return self._form(text)

    def _json(self, text: str) -> str:
        key = ""

        def replaced(match: re.Match[str]) -> str:
            nonlocal key
            if match["bare"] is not None:
                return self._pseudonyms.value(key, match["bare"])
            units = json_units(match["string"])
            if match["colon"] is None:
                inner = text_of(units).lstrip().startswith(("{", "["))
                return f'"{_changed(units, self._json) if inner else self._under(key, units)}"'
            key = text_of(units)
            is_name = match["object"] is not None and _is_name(key)
            change = self.word if is_name else self._pseudonyms.anywhere
            return f'"{_changed(units, change)}"{match["colon"]}'

        return _JSON.sub(replaced, text)

    def _form(self, text: str) -> str:
        """`&` and `=` may be in what a person wrote: its value goes on until a name that is known."""
        pieces = re.split(r"([&?])", text)
        key = ""
        for place in range(0, len(pieces), 2):
            name, equals, value = pieces[place].partition("=")
            plain = text_of(form_units(name))
            known = kind_of(plain) is not Kind.UNKNOWN
            if not known and (kind_of(key) is Kind.FREE or not equals):
                pieces[place] = self._under(key, form_units(pieces[place]))
            elif equals:
                key = plain
                new = self._command(value) if key.startswith("cmd") else self._under(key, form_units(value))
                pieces[place] = f"{name}={new}"
        return "".join(pieces)

    def _command(self, text: str) -> str:
        """FHEM: `set <name> <angle> <temperature> <unit>? <battery> <gravity> <ID>`, by position."""
        words = _BLANK.split(text)
        has_unit = len(words) > _UNIT_PLACE and words[_UNIT_PLACE].isalpha()
        identities = {_NAME_PLACE, _ID_PLACE if has_unit else _ID_PLACE_WITHOUT_UNIT}
        for place in range(_NAME_PLACE, len(words), 2):
            words[place] = self._under("name" if place in identities else "", form_units(words[place]))
        return "".join(words)

    def _line(self, text: str) -> str:
        line = _LINE.match(text)
        if line is None or text.startswith("#"):
            return self._pseudonyms.value("", text)
        return self._tags(line["head"]) + line["gap"] + self._pairs(line["fields"])

    def _tags(self, head: str) -> str:
        """iSpindel does not escape the name, which may hold commas and `=`."""
        measurement, comma, rest = head.partition(",")
        first = measurement if measurement in MEASUREMENTS else self._pseudonyms.identity(measurement)
        if measurement == "measurements" and rest.startswith("source="):
            return f"{first},source={self._pseudonyms.identity(rest.removeprefix('source='))}"
        pieces = re.split(r"(?<!\\),", rest) if comma else []
        return ",".join([first, *map(self._tag, pieces)])

    def _tag(self, piece: str) -> str:
        key, equals, value = piece.partition("=")
        if kind_of(key) is Kind.UNKNOWN:
            return self._pseudonyms.identity(piece)
        return key + equals + self._pseudonyms.value(key, value)

    def _pairs(self, text: str) -> str:
        """What is between the pairs, and behind them, is a time, or somebody's words."""
        parts, place = [], 0
        for match in _PAIR.finditer(text):
            value = self._under(match["key"], json_units(match["value"]))
            parts.append(self._pseudonyms.value("", text[place : match.start()]))
            parts.append(f"{match['key']}={match['quote']}{value}{match['quote']}")
            place = match.end()
        return "".join([*parts, self._pseudonyms.value("", text[place:])])

    def _metric(self, line: str) -> str:
        def replaced(match: re.Match[str]) -> str:
            # Any label may be a name, but the colour of a Tilt is nobody's.
            is_color = kind_of(match["key"]) is Kind.COLOR
            change = self._pseudonyms.word if is_color else self._pseudonyms.identity
            return f'{match["key"]}="{_changed(json_units(match["value"]), change)}"'

        if line.startswith("#") and not _HELP.match(line):
            return line[:1] + self._pseudonyms.value("comment", line[1:])
        return self._pseudonyms.anywhere(_LABEL.sub(replaced, line))

    def _under(self, key: str, units: Sequence[Unit]) -> str:
        return _changed(units, lambda plain: self._pseudonyms.value(key, plain))


def _is_name(key: str) -> bool:
    """Whether an object in an object is called so after a device (brewblox-tilt)."""
    return key not in STRUCTURE and kind_of(key) is Kind.UNKNOWN


def _changed(units: Sequence[Unit], change: Callable[[str], str]) -> str:
    return written(units, change(text_of(units)))
