"""The words, numbers, units and times of a page, in the viewer's language and units."""

import json
from datetime import UTC, datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gateway.domain.texts import did_you_mean
from gateway.domain.times import iso
from gateway.domain.units import celsius_to_fahrenheit, sg_to_plato
from gateway.ui.i18n.plurals import PLURALS

LANGUAGES = {"en": "English", "de": "Deutsch"}
"""Languages by their code, each by its own name."""

CATALOGUES = Path(__file__).parent / "i18n"

NO_BREAK = "\u00a0"
MINUS = "\u2212"
NOTHING = "\u2013"
"""A dash, for a value that is not known."""

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400

GRAVITY_DECIMALS = {"SG": 3, "P": 1}
GRAVITY_UNITS = {"SG": "SG", "P": "°P"}
TEMP_UNITS = {"C": "°C", "F": "°F"}
RATE_DECIMALS = {"SG": 3, "P": 1}


class Quantity(NamedTuple):
    """A number as text, and its unit, which may be empty."""

    number: str
    unit: str

    def __str__(self) -> str:
        """Join both, so that no line breaks between them."""
        return f"{self.number}{NO_BREAK}{self.unit}" if self.unit else self.number


class Ago(NamedTuple):
    """A time, as ISO 8601 for the browser and as its age in words; `at` is its date and time in words."""

    iso: str
    text: str
    at: str


@cache
def catalogue(language: str) -> dict[str, Any]:
    """Return the words of a language by their keys."""
    words: dict[str, Any] = json.loads((CATALOGUES / f"{language}.json").read_text("utf-8"))
    return words


class Words:
    """The words of one language, with the units and the time zone of one viewer. `now` is Unix seconds."""

    def __init__(
        self, language: str, gravity_unit: str, temp_unit: str, zone: tzinfo = UTC, now: float = 0.0
    ) -> None:
        self.language = language
        self.gravity_unit = gravity_unit
        self.temp_unit = temp_unit
        self.zone = zone
        self.now = now
        self._words = catalogue(language)

    def t(self, key: str, **members: Any) -> str:
        """Return the text of a key with its members filled in; `n` chooses between singular and plural."""
        text = self._words.get(key)
        if text is None:
            raise KeyError(f"{self.language}.json has no {key}{did_you_mean(key, self._words)}")
        if isinstance(text, dict):
            text = text[PLURALS[self.language](members["n"])]
        shown = {
            name: self.count(value) if isinstance(value, int) else value for name, value in members.items()
        }
        return str(text).format(**shown) if members else str(text)

    def has(self, key: str) -> bool:
        """Return whether the catalogue has a text for this key."""
        return key in self._words

    def number(self, value: float, decimals: int) -> str:
        """Write a number with exactly so many decimals."""
        text = f"{value:.{decimals}f}"
        if float(text) == 0:
            text = text.lstrip("-")
        return text.replace("-", MINUS).replace(".", self._words["number.decimal"])

    def count(self, number: int) -> str:
        """Write a whole number, with a mark at each thousand."""
        text = f"{number:,}" if abs(number) >= 10_000 else str(number)
        return text.replace("-", MINUS).replace(",", self._words["number.thousands"])

    def gravity(self, sg: float | None) -> Quantity:
        """Write a specific gravity in the viewer's unit."""
        if sg is None:
            return Quantity(NOTHING, "")
        value = sg if self.gravity_unit == "SG" else sg_to_plato(sg)
        return Quantity(
            self.number(value, GRAVITY_DECIMALS[self.gravity_unit]), GRAVITY_UNITS[self.gravity_unit]
        )

    def temp(self, celsius: float | None) -> Quantity:
        """Write a temperature in the viewer's unit."""
        if celsius is None:
            return Quantity(NOTHING, "")
        value = celsius if self.temp_unit == "C" else celsius_to_fahrenheit(celsius)
        return Quantity(self.number(value, 1), TEMP_UNITS[self.temp_unit])

    def percent(self, value: float | None, decimals: int = 0) -> Quantity:
        """Write a percentage."""
        return Quantity(NOTHING, "") if value is None else Quantity(self.number(value, decimals), "%")

    def rate(self, sg_per_day: float | None) -> Quantity:
        """Write a change of gravity in a day in the viewer's unit."""
        if sg_per_day is None:
            return Quantity(NOTHING, "")
        # The slope of degrees Plato near 1.030: close enough over the range of beer.
        value = (
            sg_per_day
            if self.gravity_unit == "SG"
            else (sg_to_plato(1.03 + sg_per_day / 2) - sg_to_plato(1.03 - sg_per_day / 2))
        )
        return Quantity(self.number(value, RATE_DECIMALS[self.gravity_unit]), self.t("unit.per_day"))

    def local(self, at: float) -> datetime:
        """Return the local time of Unix seconds."""
        return datetime.fromtimestamp(at, self.zone)

    def clock(self, at: float) -> str:
        """Write the time of day."""
        return f"{self.local(at):%H:%M}"

    def day(self, at: float) -> str:
        """Write the day and the month."""
        when = self.local(at)
        return self.t("date.day", day=str(when.day), month=self._words["date.months"][when.month - 1])

    def weekday(self, number: int) -> str:
        """Return the short name of a day of the week; 0 is Monday."""
        return str(self._words["date.weekdays"][number])

    def date(self, at: float) -> str:
        """Write the day, the month and the year."""
        return f"{self.day(at)}{NO_BREAK}{self.local(at).year}"

    def month(self, at: float) -> str:
        """Write the month and the year."""
        when = self.local(at)
        return f"{self._words['date.months'][when.month - 1]}{NO_BREAK}{when.year}"

    def moment(self, at: float) -> str:
        """Write the day and the time of day, with the year if it is not the present one."""
        year = self.local(at).year == self.local(self.now).year
        return f"{self.day(at) if year else self.date(at)} {self.clock(at)}"

    def ago(self, at: float) -> Ago:
        """Return a time with its age."""
        age = max(0.0, self.now - at)
        if age < MINUTE_S:
            text = self.t("age.now")
        elif age < 2 * HOUR_S:
            text = self.t("age.minutes", n=int(age / MINUTE_S))
        elif age < 2 * DAY_S:
            text = self.t("age.hours", n=int(age / HOUR_S))
        else:
            text = self.t("age.days", n=int(age / DAY_S))
        return Ago(iso(int(at)), text, f"{self.date(at)} {self.clock(at)}")

    def span(self, seconds: float) -> str:
        """Write a length of time: `2 days 4 hours`."""
        days, rest = divmod(int(seconds), DAY_S)
        hours, rest = divmod(rest, HOUR_S)
        minutes = rest // MINUTE_S
        pairs = (("span.days", days), ("span.hours", hours), ("span.minutes", minutes if not days else 0))
        parts = [self.t(key, n=n) for key, n in pairs if n]
        return " ".join(parts[:2]) or self.t("span.minutes", n=0)
