"""Polynomials of a hydrometer's tilt, as users copy them from its firmware: read, written and evaluated.

A curve is a tuple of coefficients, constant first, of a polynomial in the tilt angle in degrees. Texts are
as in mp-se/gravitymon src/calc.cpp (`%.8f*tilt^2+%.8f*tilt+%.8f`, which also puts out `+-`) and on the
calibration page of ispindel.de (constant first, `tilt*tilt`). Both firmwares read them by tinyexpr, which
takes brackets, so people write `(1.0e-6*(tilt^3))+(0.9)`. They are taken apart by hand, never executed.
"""

import re
from collections.abc import Sequence

from gateway.errors import InvalidInput

MAX_DEGREE = 4
"""The highest degree that GravityMon fits. Beyond it a curve swings between its points."""
MAX_TEXT_CHARACTERS = 200
MAX_COEFFICIENT = 1e6
"""A bound far beyond any real coefficient. It keeps every result finite."""

EXAMPLE = "0.000001*tilt^3 - 0.000131*tilt^2 + 0.0069*tilt + 0.8985"

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_FACTOR = rf"(?:{_NUMBER}|[+-]?(?:tilt|angle|x)(?:\^\d)?)"
_PRODUCT = rf"{_FACTOR}(?:\*{_FACTOR})*"
_TERM = re.compile(rf"(?P<signs>[+-]+)(?P<factors>{_PRODUCT})(?=[+-]|$)", re.ASCII)
_NEEDLESS_BRACKETS = re.compile(
    rf"(?<![\w.)^])(?<!\de[+-])\((?:({_PRODUCT})\)(?![\w.(^])|(tilt|angle|x)\)(?=\^))", re.ASCII
)
"""Brackets around one term without a power of the term, and around the tilt alone."""
_MISSING_OPERATOR = re.compile(r"[\w.]\s+[\w.]")
_AS_PASTED = str.maketrans(
    {
        "\u2212": "-",
        "\u2013": "-",
        "\u00b7": "*",
        "\u00d7": "*",
        "\u00b2": "^2",
        "\u00b3": "^3",
        "\u2074": "^4",
    }
)
"""Minus signs, multiplication signs and raised figures as web pages write them."""

_REMEDIES = (
    (r",", "write decimals with a point instead of a comma"),
    (r"[()]", "multiply the brackets out"),
    (r"/", "divide the numbers beforehand"),
    (r"\btemp", "leave temperature out, it has a correction of its own"),
    (r"=", "leave out everything up to the equals sign"),
    (r"(?<![\w.])(?!(?:tilt|angle|x)\b)[a-z_]", "tilt, x and angle are its only names, a power is tilt^2"),
    (r"\d(?:tilt|angle|x)", "write * between a number and tilt"),
)


def parse_polynomial(text: str) -> tuple[float, ...]:
    """Parse a curve such as EXAMPLE: in tilt, x or angle, powers by `^`, `**` or `tilt*tilt`.

    Brackets that change nothing are allowed. Raise InvalidInput with the part that cannot be read.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise _unreadable(f"it is longer than {MAX_TEXT_CHARACTERS} characters")
    plain = text.translate(_AS_PASTED).strip().lower().replace("**", "^")
    if not plain:
        raise _unreadable("it is empty")
    if _MISSING_OPERATOR.search(plain):
        raise _unreadable("an operator is missing between two of its words")
    compact = _without_needless_brackets("".join(plain.split()))
    rest = compact if compact[0] in "+-" else f"+{compact}"
    coefficients = [0.0] * (MAX_DEGREE + 1)
    while rest:
        term = _TERM.match(rest)
        if term is None:
            raise _unreadable(_remedy(compact, rest))
        power, value = _term(term["signs"], term["factors"])
        coefficients[power] += value
        rest = rest[term.end() :]
    return _trimmed(coefficients)


def _without_needless_brackets(compact: str) -> str:
    """Remove brackets that change nothing, from the inside out; a text holds few, so few rounds do."""
    taken = 1
    while taken:
        compact, taken = _NEEDLESS_BRACKETS.subn(r"\1\2", compact)
    return compact


def _term(signs: str, factors: str) -> tuple[int, float]:
    """Return the power of the tilt and the coefficient of a product."""
    value = -1.0 if signs.count("-") % 2 else 1.0
    power = 0
    for factor in factors.split("*"):
        bare = factor.lstrip("+-")
        if bare[0] not in "tax":
            value *= float(factor)
            continue
        value = -value if factor[0] == "-" else value
        power += int(bare.partition("^")[2] or 1)
    if power > MAX_DEGREE:
        raise _unreadable(f"its degree is {power}, and {MAX_DEGREE} is the highest")
    return power, value


def _trimmed(coefficients: list[float]) -> tuple[float, ...]:
    """Cut the highest powers that do not occur. Raise InvalidInput if no power of the tilt is left."""
    if not all(abs(value) <= MAX_COEFFICIENT for value in coefficients):
        raise _unreadable(f"a coefficient is beyond {MAX_COEFFICIENT:g}")
    while coefficients and not coefficients[-1]:
        coefficients.pop()
    if len(coefficients) < 2:
        raise _unreadable("there is no tilt in it, so every angle would be the same gravity")
    return tuple(coefficients)


def _remedy(compact: str, rest: str) -> str:
    """Return the correction to make, and the place at which reading stopped."""
    where = f"it cannot be read from '{rest.removeprefix('+')[:20] or rest}' on"
    return next((f"{where}: {what}" for pattern, what in _REMEDIES if re.search(pattern, compact)), where)


def _unreadable(why: str) -> InvalidInput:
    return InvalidInput(f"This is no polynomial of the tilt: {why}. Example: {EXAMPLE}")


def polynomial_text(curve: Sequence[float]) -> str:
    """Write the curve as GravityMon takes it, highest power first.

    `parse_polynomial` reads the very same curve from it.
    """
    text = ""
    for power in reversed(range(len(curve))):
        if not curve[power]:
            continue
        sign = "-" if curve[power] < 0 else "+"
        name = f"*tilt^{power}" if power > 1 else "*tilt" * power
        text += (
            f" {sign} {abs(curve[power])!r}{name}"
            if text
            else f"{sign.strip('+')}{abs(curve[power])!r}{name}"
        )
    return text


def evaluate(curve: Sequence[float], angle: float) -> float:
    """Return the gravity at an angle in degrees, in the curve's unit."""
    value = 0.0
    for coefficient in reversed(curve):
        value = value * angle + coefficient
    return value
