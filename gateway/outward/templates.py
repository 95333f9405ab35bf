"""Templates: `{{name}}` from a fixed list, escaped for their content type; no expressions."""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote_plus

from gateway.domain.texts import did_you_mean
from gateway.errors import ConfigError

JSON, FORM, TEXT = "application/json", "application/x-www-form-urlencoded", "text/plain"

CONTENT_TYPES = (JSON, FORM, TEXT)
"""Types that a template may have: each has its own way to escape a value."""

TEMPLATE_CHARACTERS = 16_384
"""Characters of a template at most."""

PLACE = re.compile(r"\{\{ *([a-z][a-z0-9_]*) *\}\}")
"""The place of a value."""

_QUOTE_OR_PLACE = re.compile(rf'\\.|"|{PLACE.pattern}', re.DOTALL)
"""In JSON: an escaped character, the begin or end of a text, the place of a value."""


class _Piece(NamedTuple):
    """Text as it is, or the name of a value; `quoted`: it stands inside a text of JSON."""

    text: str
    name: str = ""
    quoted: bool = False


def check_template(template: str, names: Collection[str], content_type: str) -> str:
    """Return the template; `ConfigError` for a name that is not in the list, or text not of its type."""
    if len(template) > TEMPLATE_CHARACTERS:
        raise ConfigError(f"the template has more than {TEMPLATE_CHARACTERS} characters")
    if content_type not in CONTENT_TYPES:
        raise ConfigError(f"a template is of the type {', '.join(CONTENT_TYPES)}")
    for name in PLACE.findall(template):
        if name not in names:
            raise ConfigError(
                f"a template has no {{{{{name}}}}}{did_you_mean(name, names)}; there are {', '.join(names)}"
            )
    if "{{" in PLACE.sub("", template):
        raise ConfigError("the template has {{ without a name and }} behind it")
    if content_type == JSON:
        try:
            json.loads(fill(template, dict.fromkeys(names, 1), JSON))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"the template is not JSON: {error}") from error
    elif content_type == FORM and not PLACE.sub("", template).isascii():
        raise ConfigError(
            "a form has letters without accents, digits and signs only; the rest is written %XX"
        )
    return template


def fill(template: str, values: Mapping[str, object], content_type: str) -> bytes:
    """Return the body: each `{{name}}` is replaced by its value, escaped for its content type.

    In JSON a place inside quotes becomes text, and a place outside becomes a JSON value. In a form it is
    percent-encoded, in plain text it is one line. A value that is missing, or None, is null or an empty text.
    """
    filled = []
    for piece in _pieces(template, content_type):
        if not piece.name:
            filled.append(piece.text)
            continue
        value = values.get(piece.name)
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        if content_type == JSON:
            filled.append(
                json.dumps(_text(value))[1:-1] if piece.quoted else json.dumps(value, allow_nan=False)
            )
        elif content_type == FORM:
            filled.append(quote_plus(_text(value)))
        else:
            filled.append(" ".join(_text(value).split()))
    return "".join(filled).encode()


def _pieces(template: str, content_type: str) -> Iterator[_Piece]:
    quoted, end = False, 0
    for match in (_QUOTE_OR_PLACE if content_type == JSON else PLACE).finditer(template):
        if match[1] is None:
            quoted ^= match[0] == '"'
            continue
        yield _Piece(template[end : match.start()])
        yield _Piece("", match[1], quoted)
        end = match.end()
    yield _Piece(template[end:])


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
