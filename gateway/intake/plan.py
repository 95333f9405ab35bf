"""The reading of an ordinary payload: one report of a known device that teaches nothing new about the device.

A device posts the same JSON again and again, with other numbers in it. A plan is kept for each device: where
the numbers stand in its text, and the place in the reading where each number goes. A payload with the same
texts becomes a reading by its plan, without a driver.

A plan holds no rule and no name of a member. It is found by trying: one number at a time is changed, and the
plain way, `decode` and `normalise`, shows the effect. A number with any other effect than to stand in the
reading must stay as it is, or the payload goes the plain way. A number that stands in the reading must stay
between the same two of the figures at which drivers and `normalise` decide otherwise.

A plan belongs to one `Device` object, which is another object after each change of the device, its settings
or its calibration. Pure, but for the memory of plans, which is bounded.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.drivers import wire
from gateway.intake.devices import DeviceRegistry, TrackedDevice
from gateway.intake.normalise import normalise
from gateway.intake.planning import NUMBER, Plan, Values, make_plan, only_report

LONGEST_BYTES = 4 * 1024
"""Bytes of the longest ordinary body; the longest known one of a hydrometer has 1,100."""

MOST_NUMBERS = 24
"""The most numbers in a payload with a plan: each number costs a decoding when the plan is made."""

FORMS = 16
"""The most forms of payloads that are remembered for one driver's addresses."""

PATTERNS = 256
"""The most forms of payloads of one driver's addresses that are counted until they are remembered."""

PLANS = 1_024
"""Plans that are remembered at least, twice as many at most; about 3 kB each."""

LONGEST_WAIT = 1_024
"""The most payloads that pass before a plan is made anew that did not last."""

LASTING_HITS = 16
"""Payloads that a plan must serve to be worth its price, which is a decoding for each of its numbers."""

CREDIT, FORM_PRICE = 1_000, 20
"""Decodings that plans and forms may cost beyond one for each payload on the plain way, and a form's price.

Else a sender with ever new texts could make each payload cost as much as fifty.
"""

TEXT = r'[^"\\\x00-\x1f]*'
"""A text of JSON without escapes."""

_NUMBER, _TEXT = re.compile(NUMBER), re.compile(TEXT)
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|-?[0-9][0-9.eE+-]*', re.DOTALL)


class Understood(NamedTuple):
    """The reading in an ordinary payload, the report that it was made of, and its device.

    `report` serves readings of one device again and again: its `gravity`, `temp` and `facts` may be those of
    an earlier payload. Its `measured_at` is this payload's until the next call. `reading` is always its own.
    """

    report: Report
    tracked: TrackedDevice
    reading: Reading


@dataclass(eq=False, slots=True)
class Form:
    """The form of a JSON text: all but its texts and numbers, and the places of the numbers among the values.

    `key_of` picks the texts, and the numbers that are part of an identity: they tell devices apart.
    """

    match: Callable[[str], re.Match[str] | None]
    numbers: list[int]
    texts: list[int]
    key_of: Callable[[Values], Hashable]

    def add_identity(self, place: int) -> None:
        """Note that the number at this place is part of an identity."""
        self.numbers.remove(place)
        self.texts.append(place)
        self.key_of = itemgetter(*self.texts)


@dataclass(slots=True)
class Forms:
    """The forms of the payloads of one driver's addresses, and how often others came, by their patterns."""

    known: list[Form] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def find(self, text: str) -> tuple[Form, re.Match[str]] | None:
        """Return the form of a text and the match, None if the form is not known."""
        for place, form in enumerate(self.known):
            if (match := form.match(text)) is not None:
                if place:
                    self.known.insert(0, self.known.pop(place))
                return form, match
        return None

    def learn(self, text: str) -> bool:
        """Remember the form of a text, if it has come before; return whether that took a compilation."""
        pattern, numbers, texts = _pattern_of(text)
        count = self.counts[pattern] = self.counts.get(pattern, 0) + 1
        if len(self.counts) > PATTERNS:
            self.counts.clear()
        # At the second, fourth, eighth: forms that push each other out must not cost a compilation each time.
        if count < 2 or count & (count - 1) or len(numbers) > MOST_NUMBERS:
            return False
        key_of = itemgetter(*texts) if texts else _nothing
        self.known.insert(0, Form(re.compile(pattern).fullmatch, numbers, texts, key_of))
        del self.known[FORMS:]
        return True


@dataclass(eq=False, slots=True)
class Entry:
    """The plan for payloads with the same texts, and the number of payloads that it has served.

    A new plan is made once `left` more payloads have gone the plain way; `wait` is the last such number.
    """

    plan: Plan | None = None
    hits: int = 0
    wait: int = 0
    left: int = 1

    def is_due(self) -> bool:
        """Return whether to make a plan now: for the second payload, then the rarer the less it lasts."""
        if self.left:
            self.left -= 1
            return False
        self.wait = 0 if self.hits >= LASTING_HITS else min(2 * self.wait + 1, LONGEST_WAIT)
        self.left, self.hits = self.wait, 0
        return True


class Plans:
    """Decodes and normalises ordinary payloads, by a plan where there is one."""

    def __init__(self, devices: DeviceRegistry) -> None:
        self._devices = devices
        self._credit = CREDIT
        # As many at most as there are addresses of drivers.
        self._forms: dict[tuple[str | None, str | None], Forms] = {}
        self._newer: dict[Hashable, Entry] = {}
        self._older: dict[Hashable, Entry] = {}

    def read(self, payload: Payload) -> Understood | None:
        """Return the reading of an ordinary payload, None for any other; no device has changed.

        Call this function only while the wall clock is trusted.
        """
        if len(payload.body) > LONGEST_BYTES:
            return None
        if payload.fields is not None or not wire.is_object(payload):
            return self._read_plainly(payload)
        try:
            text = payload.body.decode()
        except UnicodeDecodeError:
            return self._read_plainly(payload)
        forms = self._forms.get((payload.driver, payload.hint))
        if forms is None:
            forms = self._forms[payload.driver, payload.hint] = Forms()
        found = forms.find(text)
        if found is None:
            understood = self._read_plainly(payload)
            if understood is not None and self._credit > FORM_PRICE and forms.learn(text):
                self._credit -= FORM_PRICE
            return understood
        form, match = found
        values = match.groups()
        address = payload.channel, payload.label, payload.query, payload.token, payload.source
        key = form, address, form.key_of(values)
        entry = self._newer.get(key) or self._older.get(key)
        if entry is not None and entry.plan is not None:
            plan, tracked = entry.plan, self._devices.get(entry.plan.key)
            if (
                tracked is not None
                and tracked.device is plan.device
                and plan.fits(values)
                and not (plan.unknown and any(self._devices.get(key) for key in plan.unknown))
                and (reading := plan.reading_of(values, payload.received_at)) is not None
            ):
                entry.hits += 1
                return Understood(plan.report, tracked, reading)
        understood = self._read_plainly(payload)
        if understood is None:
            return None
        entry, price = self._entry(key), 2 * len(form.numbers)
        if self._credit > price and entry.is_due():
            self._credit -= price
            made = self._make(payload, match, form.numbers, understood)
            if isinstance(made, Plan):
                entry.plan = made
            else:
                entry.plan = None
                for place in made:  # the texts alone do not tell the devices apart
                    form.add_identity(place)
                if made:
                    self._entry((form, address, form.key_of(values))).left = 0
        return understood

    def _read_plainly(self, payload: Payload) -> Understood | None:
        report = only_report(payload)
        if report is None:
            return None
        self._credit = min(self._credit + 1, CREDIT)
        self._devices.recognise(report)
        tracked = self._devices.get(report.device_key)
        if tracked is None:
            return None
        reading, inferred = normalise(report, tracked.device, payload)
        if tracked.device.learned(report, reading, inferred) is not tracked.device:
            return None
        return Understood(report, tracked, reading)

    def _entry(self, key: Hashable) -> Entry:
        """Return the entry of a key, a new one if there is none, among the newer ones."""
        entry = self._newer.get(key)
        if entry is None:
            entry = self._newer[key] = self._older.get(key) or Entry()
            if len(self._newer) >= PLANS:
                self._newer, self._older = {}, self._newer
        return entry

    def _make(
        self, payload: Payload, match: re.Match[str], numbers: list[int], understood: Understood
    ) -> Plan | list[int]:
        """Make the plan of a device; see `make_plan`."""
        report, tracked = understood.report, understood.tracked
        unknown: list[str] = []
        for key in report.keys:
            if (found := self._devices.get(key)) is not None:
                break
            unknown.append(key)
        made = make_plan(payload, match, numbers, report, tracked.device) if found is tracked else []
        return made._replace(key=key, unknown=tuple(unknown)) if isinstance(made, Plan) else made


def _pattern_of(text: str) -> tuple[str, list[int], list[int]]:
    """Return the pattern of the texts that have the form of this JSON, and the places of numbers and texts.

    A number in quotes is a number. What could be read otherwise elsewhere stands in the pattern as it is.
    """
    pieces: list[str] = []
    places: tuple[list[int], list[int]] = [], []
    end = 0
    for token in _TOKEN.finditer(text):
        pieces.append(re.escape(text[end : token.start()]))
        end = token.end()
        inner, colon = token.groups()
        is_number = _NUMBER.fullmatch(token[0] if inner is None else inner) is not None
        if colon is not None or not (is_number or (inner is not None and _TEXT.fullmatch(inner))):
            pieces.append(re.escape(token[0]))
            continue
        quote = '"' if inner is not None else ""
        pieces.append(f"{quote}({NUMBER if is_number else TEXT}){quote}")
        places[not is_number].append(len(places[0]) + len(places[1]))
    pieces.append(re.escape(text[end:]))
    return "".join(pieces), *places


def _nothing(values: Values) -> Hashable:
    return None
