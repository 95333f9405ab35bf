"""Takes names, places and keys out of payloads of devices; figures and punctuation stay byte for byte.

Works on the original text, because a captured payload is kept for its spacing, order, trailing commas and
the writing of its numbers. A value under an unknown name is taken out as well, unless it is a figure or a
unit. E-mail, MAC and IP addresses and GUIDs are taken out wherever they stand.

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
"""Comments that the firmware writes itself."""
_BLANK = re.compile(r"(%20|\+| )")

_NAME_PLACE, _UNIT_PLACE = 2, 8
_ID_PLACE, _ID_PLACE_WITHOUT_UNIT = 14, 12
"""Places in FHEM's command, counted with the blanks between its words."""


class Redactor:
    """Redacts the payloads of one run: a text has the same pseudonym in every payload, topic and path."""

    def __init__(self) -> None:
        self._pseudonyms = Pseudonyms()
        self.word = self._pseudonyms.word

    def body(self, text: str) -> str:
        """Redact a body or a query of any format."""
        start = text.strip("\ufeff \t\r\n\x00")
        if start.startswith(("{", "[")):
            return self._json(text)
        if start.startswith("?") and "\n" in start:  # parameters in front of the body
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

        def replace(match: re.Match[str]) -> str:
            nonlocal key
            if match["bare"] is not None:
                return self._pseudonyms.value(key, match["bare"])
            units = json_units(match["string"])
            if match["colon"] is None:
                inner = text_of(units).lstrip().startswith(("{", "["))
                return f'"{_change_units(units, self._json) if inner else self._value(key, units)}"'
            key = text_of(units)
            # An object in an object may be called after a device (brewblox-tilt).
            is_name = match["object"] and key not in STRUCTURE and kind_of(key) is Kind.UNKNOWN
            change = self.word if is_name else self._pseudonyms.anywhere
            return f'"{_change_units(units, change)}"{match["colon"]}'

        return _JSON.sub(replace, text)

    def _form(self, text: str) -> str:
        """Redact a form or a query."""
        # `&` and `=` may stand in text that a person wrote: its value goes on until a known name.
        pieces = re.split(r"([&?])", text)
        key = ""
        for place in range(0, len(pieces), 2):
            name, equals, value = pieces[place].partition("=")
            plain = text_of(form_units(name))
            is_known = kind_of(plain) is not Kind.UNKNOWN
            if not is_known and (kind_of(key) is Kind.FREE or not equals):
                pieces[place] = self._value(key, form_units(pieces[place]))
            elif equals:
                key = plain
                new = self._command(value) if key.startswith("cmd") else self._value(key, form_units(value))
                pieces[place] = f"{name}={new}"
        return "".join(pieces)

    def _command(self, text: str) -> str:
        """Redact FHEM's `set <name> <angle> <temperature> <unit>? <battery> <gravity> <ID>` by position."""
        words = _BLANK.split(text)
        has_unit = len(words) > _UNIT_PLACE and words[_UNIT_PLACE].isalpha()
        identities = {_NAME_PLACE, _ID_PLACE if has_unit else _ID_PLACE_WITHOUT_UNIT}
        for place in range(_NAME_PLACE, len(words), 2):
            words[place] = self._value("name" if place in identities else "", form_units(words[place]))
        return "".join(words)

    def _line(self, text: str) -> str:
        line = _LINE.match(text)
        if line is None or text.startswith("#"):
            return self._pseudonyms.value("", text)
        parts, fields, place = [self._tags(line["head"]), line["gap"]], line["fields"], 0
        for match in _PAIR.finditer(fields):
            value = self._value(match["key"], json_units(match["value"]))
            # Between the fields and behind them is a time, or a person's words.
            parts.append(self._pseudonyms.value("", fields[place : match.start()]))
            parts.append(f"{match['key']}={match['quote']}{value}{match['quote']}")
            place = match.end()
        return "".join([*parts, self._pseudonyms.value("", fields[place:])])

    def _tags(self, head: str) -> str:
        """Redact measurement and tags of a line."""
        measurement, comma, rest = head.partition(",")
        first = measurement if measurement in MEASUREMENTS else self._pseudonyms.identity(measurement)
        if measurement == "measurements" and rest.startswith("source="):
            # All of the rest is the name: iSpindel does not escape commas and `=` in it.
            return f"{first},source={self._pseudonyms.identity(rest.removeprefix('source='))}"
        tags = [first]
        for piece in re.split(r"(?<!\\),", rest) if comma else []:
            key, equals, value = piece.partition("=")
            if kind_of(key) is Kind.UNKNOWN:
                tags.append(self._pseudonyms.identity(piece))
            else:
                tags.append(key + equals + self._pseudonyms.value(key, value))
        return ",".join(tags)

    def _metric(self, line: str) -> str:
        def replace(match: re.Match[str]) -> str:
            # Any label may be a name, but the colour of a Tilt identifies nobody.
            is_color = kind_of(match["key"]) is Kind.COLOR
            change = self._pseudonyms.word if is_color else self._pseudonyms.identity
            return f'{match["key"]}="{_change_units(json_units(match["value"]), change)}"'

        if line.startswith("#") and not _HELP.match(line):
            return line[:1] + self._pseudonyms.value("comment", line[1:])
        return self._pseudonyms.anywhere(_LABEL.sub(replace, line))

    def _value(self, key: str, units: Sequence[Unit]) -> str:
        return _change_units(units, lambda plain: self._pseudonyms.value(key, plain))


def _change_units(units: Sequence[Unit], change: Callable[[str], str]) -> str:
    return written(units, change(text_of(units)))
