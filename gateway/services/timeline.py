"""What happened in a brew: notes, dry hops, additions, readings by hand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway.clock import Clock
from gateway.domain.brew_event import GATEWAY_KINDS as GATEWAY_KINDS
from gateway.domain.brew_event import HAND_KINDS as HAND_KINDS
from gateway.domain.brew_event import HAND_READING, INSTRUMENT, RISE, SOURCE, SUGAR, BrewEvent
from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import Reading
from gateway.domain.texts import LABEL_CHARACTERS, NOT_TEXT
from gateway.domain.times import LAST_S, iso
from gateway.domain.units import PLAUSIBLE_SG
from gateway.errors import InvalidInput, NotFound, StoreUnavailable
from gateway.events import StoredNotices
from gateway.formats.readings.rows import ImportContext, reading_of
from gateway.insight.records import Rise
from gateway.stats import Stats
from gateway.store.protocol import Store

EVENT_CHARACTERS = 2_000
"""Characters of an event's text at most."""

FUTURE_S = 600
"""Seconds that an event may lie in the future: clocks of phones differ."""

PLAUSIBLE_C = (-30.0, 130.0)
"""Temperatures in °C that a person can have measured in a brewery."""

SUGAR_TEXT, NO_SUGAR_TEXT = "Sugar", "No sugar was added"
"""Texts of the answers whether sugar was added; the author may change them."""

WITH_AMOUNT = frozenset({"dry_hop", "addition"})
"""Kinds of events that have an amount."""

TYPED_KINDS = tuple(kind for kind in HAND_KINDS if kind != "photo")
"""Kinds of events that people type; a photo makes its event by itself."""


@dataclass(frozen=True, slots=True)
class EventContent:
    """An event as a person types it; `at` is Unix seconds, None for now.

    The members behind `amount` belong to a hand reading. Gravity and temperature are texts, empty for none.
    """

    kind: str
    at: float | None = None
    text: str = ""
    amount: str = ""
    gravity: str = ""
    gravity_unit: str = "G"
    temp: str = ""
    temp_unit: str = "C"
    instrument: str = INSTRUMENT


MEASURED = ("gravity", "gravity_unit", "temp", "temp_unit", "instrument")
"""Members of an event that only a hand reading has; they are its facts."""


class Timeline:
    """A service for the events of brews. An event and its reading are stored together, or neither is."""

    def __init__(
        self,
        store: Store,
        notices: StoredNotices,
        stats: Stats,
        clock: Clock,
        held_back: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`held_back` returns why our clock gives no reading its time for now, or None."""
        self._store = store
        self._notices = notices
        self._stats = stats
        self._clock = clock
        self._held_back = held_back

    async def events(self, session: BrewSession) -> list[BrewEvent]:
        """Return the events of a brew, newest first."""
        return await self._store.events.of_session(session.id)

    async def event(self, session: BrewSession, event_id: int) -> BrewEvent:
        """Return an event of a brew; `NotFound` if the brew has none with this id."""
        found = await self._store.events.get(session.id, event_id)
        if found is None:
            raise NotFound(f"brew session {session.id} has no event {event_id}")
        return found

    async def add(self, session: BrewSession, content: EventContent, author: str, ip: str) -> BrewEvent:
        """Add an event; `ip` is the address of the person's browser, `author` the name of the key.

        A hand reading is a reading, and so is a note in a brew whose notes are sent on.
        """
        event = self._checked(session, content, author)
        reading = None
        if event.kind == HAND_READING or (event.kind == "note" and session.send_notes):
            reading = await self._reading(session, event, ip)
            event = replace(event, oid=reading.oid)
        added = await self._store.events.add(session, event, reading)
        self._stats.imported += reading is not None
        self._notices.notify("brew", brew=session.id)
        return added

    async def add_photo(self, session: BrewSession, uuid: str, caption: str, author: str) -> BrewEvent:
        """Add the event of a photo that was taken of the brew."""
        now = int(self._clock.now())
        facts = {"uuid": uuid}
        text = caption[:EVENT_CHARACTERS]
        event = BrewEvent(0, session.id, now, "photo", text, author, now, now, facts)
        added = await self._store.events.add(session, event)
        self._notices.notify("brew", brew=session.id)
        return added

    async def answer_rise(self, session: BrewSession, rise: Rise, *, sugar: bool, author: str) -> BrewEvent:
        """Add the event that says whether a rise of gravity was sugar.

        It tells how much, for the alcohol that comes of it; who deletes it takes the answer back.
        """
        now = int(self._clock.now())
        facts: dict[str, Any] = {RISE: rise.since}
        if sugar:
            facts[SUGAR] = round(rise.sg, 5)
        kind, text = ("addition", SUGAR_TEXT) if sugar else ("note", NO_SUGAR_TEXT)
        event = BrewEvent(0, session.id, rise.since, kind, text, author, now, now, facts)
        added = await self._store.events.add(session, event)
        self._notices.notify("brew", brew=session.id)
        return added

    async def change(
        self,
        session: BrewSession,
        event_id: int,
        given: Mapping[str, Any],
        *,
        send_again: bool | None = None,
    ) -> BrewEvent:
        """Change members of an event, by the names of `EventContent`, and its reading under the same id.

        If the reading was sent already, `send_again` says whether it is sent once more or corrected here
        only; with None it is `AlreadySent`.
        """
        was = await self._own(session, event_id)
        event = self._checked(session, replace(content_of(was), **given), was.author)
        event = replace(event, id=was.id, oid=was.oid, created_at=was.created_at)
        if was.kind == "photo":
            event = replace(event, facts=was.facts)
        answer = {name: was.facts[name] for name in (RISE, SUGAR) if name in was.facts}
        event = replace(event, facts={**event.facts, **answer})
        reading = None
        if was.oid is not None:
            reading = (await self._reading(session, event, ""))._replace(oid=was.oid)
        changed = await self._store.events.change(session, event, reading, send_again=send_again)
        self._notices.notify("brew", brew=session.id)
        return changed

    async def remove(self, session: BrewSession, event_id: int) -> BrewEvent:
        """Delete an event and its reading here; where the reading was sent, it stays."""
        await self._own(session, event_id)
        removed = await self._store.events.remove(session.id, event_id)
        self._notices.notify("brew", brew=session.id)
        return removed

    async def _own(self, session: BrewSession, event_id: int) -> BrewEvent:
        """Return an event that a person wrote; `InvalidInput` for an event of the gateway."""
        event = await self.event(session, event_id)
        if not event.is_by_hand:
            raise InvalidInput(f"event {event_id} is the gateway's own: it tells what was done, and stays")
        return event

    def _checked(self, session: BrewSession, content: EventContent, author: str) -> BrewEvent:
        now = int(self._clock.now())
        facts = _facts(content)
        text = content.text.strip()
        if len(text) > EVENT_CHARACTERS:
            raise InvalidInput(f"text is longer than {EVENT_CHARACTERS:,} characters")
        if content.kind == "note" and not text:
            raise InvalidInput("a note needs a text")
        if any(NOT_TEXT.search(each) for each in (text, content.amount, content.instrument)):
            raise InvalidInput("NUL and halves of surrogate pairs are no text")
        doubt = self._held_back()
        if content.at is None and doubt is not None:
            raise StoreUnavailable(f"say when it was, or try again later: the gateway {doubt}")
        at = now if content.at is None else int(content.at)
        if not 0 <= at <= LAST_S or (doubt is None and at > now + FUTURE_S):
            raise InvalidInput(f"{iso(at)} lies in the future" if at > now else "at must be after 1970")
        return BrewEvent(0, session.id, at, content.kind, text, author, now, now, facts)

    async def _reading(self, session: BrewSession, event: BrewEvent, ip: str) -> Reading:
        """Return the reading of an event, in the specification's shape, as an import of one row makes it."""
        recipe = await self._store.recipes.get(session.recipe_id) if session.recipe_id else None
        facts = event.facts
        item = {
            "created_at": iso(event.at),
            "comment": event.text,
            "beer": "" if recipe is None else recipe.content.title,
            "source": SOURCE,
            **{name: facts[name] for name in MEASURED if name in facts and name != "instrument"},
            "name": facts.get("instrument", ""),
        }
        reading = reading_of(item, ImportContext(self._clock.now(), ip))
        if reading.gravity and (reading.sg is None or not PLAUSIBLE_SG[0] <= reading.sg <= PLAUSIBLE_SG[1]):
            raise InvalidInput(
                f"gravity {reading.gravity} {'°P' if reading.gravity_unit == 'P' else 'SG'} is none of a beer"
            )
        if reading.temp and (
            reading.celsius is None or not PLAUSIBLE_C[0] <= reading.celsius <= PLAUSIBLE_C[1]
        ):
            raise InvalidInput(f"temp {reading.temp} °{reading.temp_unit} is none of a brewery")
        return reading


def content_of(event: BrewEvent) -> EventContent:
    """Return an event as a person would type it."""
    facts = event.facts
    typed = {name: str(facts[name]) for name in ("amount", *MEASURED) if name in facts}
    return EventContent(event.kind, event.at, event.text, **typed)


def _facts(content: EventContent) -> dict[str, str]:
    """Return the facts of an event of this kind; `InvalidInput` for values of another kind."""
    if content.kind not in HAND_KINDS:
        raise InvalidInput(f"kind must be one of {', '.join(TYPED_KINDS)}")
    is_reading = content.kind == HAND_READING
    for name in ("gravity", "temp"):
        if getattr(content, name) and not is_reading:
            raise InvalidInput(f"{name} is for a hand reading only")
    if content.amount and content.kind not in WITH_AMOUNT:
        raise InvalidInput("amount is for a dry hop or an addition only")
    if len(content.amount) > LABEL_CHARACTERS or len(content.instrument) > LABEL_CHARACTERS:
        raise InvalidInput(f"longer than {LABEL_CHARACTERS} characters")
    if content.kind in WITH_AMOUNT and not (content.amount.strip() or content.text.strip()):
        raise InvalidInput("say what was added")
    if is_reading:
        if not content.gravity.strip() and not content.temp.strip():
            raise InvalidInput("a hand reading needs a gravity or a temperature")
        return {name: getattr(content, name).strip() for name in MEASURED}
    return {"amount": content.amount.strip()} if content.amount.strip() else {}
