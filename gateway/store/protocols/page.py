"""The protocols of a store's part that pages need: events, figures, curves, logins, links, settings.

The rules of `gateway.store.protocol` hold here, too.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from gateway.domain.brew_event import BrewEvent
from gateway.domain.brewsession import BrewSession
from gateway.domain.login import StoredLogin
from gateway.domain.reading import Reading
from gateway.domain.view_link import ViewLink
from gateway.store.queries import SeriesQuery
from gateway.store.records import (
    BrewActivity,
    BrewFacts,
    Bucket,
    EventMark,
    Expected,
    HandReading,
    LeftOutReading,
    NewSample,
    StoredSample,
    VitalSigns,
)


class EventStore(Protocol):
    """Events of brews. The events of the gateway are written by the calls that make the changes."""

    async def of_session(self, session_id: int) -> list[BrewEvent]:
        """Return the events of a brew, newest first."""

    async def get(self, session_id: int, event_id: int) -> BrewEvent | None:
        """Return an event of a brew, None if there is none with this id."""

    async def add(self, session: BrewSession, event: BrewEvent, reading: Reading | None = None) -> BrewEvent:
        """Insert an event and import its reading, if it has one. Both or neither.

        `InvalidInput` if the brew has as many events as it may have.
        """

    async def change(
        self,
        session: BrewSession,
        event: BrewEvent,
        reading: Reading | None = None,
        *,
        send_again: bool | None = None,
    ) -> BrewEvent:
        """Write an event over the stored one, and its reading under the same id; return it as stored.

        If the reading was sent already, `send_again` says whether it goes to the end of the queue or is
        corrected here only; with None it is `AlreadySent`. `NotFound` if the brew has no such event.
        """

    async def remove(self, session_id: int, event_id: int) -> BrewEvent:
        """Delete an event and its reading; return it as it was. `NotFound` if the brew has no such event."""


class FigureStore(Protocol):
    """What the figures of brews are made of; as fast for many readings as for few."""

    async def activity(self, account_id: int) -> list[BrewActivity]:
        """Return what tells whether a brew runs, of every brew of an account, by id."""

    async def tags(self, session_ids: Sequence[int]) -> dict[int, str]:
        """Return a text for each brew that differs after every change of its facts.

        Ask before the facts are read. Empty if another process may change them.
        """

    async def facts(self, session_ids: Sequence[int]) -> dict[int, BrewFacts]:
        """Return what the figures of each brew show beside its insight."""

    async def expected(self, session_id: int) -> Expected:
        """Return what the recipe of a brew expects; nothing of a brew without a recipe."""

    async def samples(
        self, session_id: int, place: tuple[int, bytes], until: int, *, arrived_by: int | None = None
    ) -> list[StoredSample]:
        """Return the next readings of a brew behind a place (Unix seconds, id), by time and id, a page full.

        They are the readings of devices and imports until then, not the ones by hand. Without numbers are
        those whose time is in doubt, those that are left out by the user, and tests. `arrived_by` (Unix
        seconds) are those that were there by then.
        """

    async def arrivals(self, after: tuple[int, bytes]) -> list[NewSample]:
        """Return the readings that came behind one (place in the queue, id), as `samples`; a page full.

        If that one is at its place no longer, begin well before it: some may come a second time.
        """

    async def newest(self) -> tuple[int, bytes]:
        """Return place and id of the reading that came last; (0, b"") without any."""


class LoginStore(Protocol):
    """Logins of browsers. A login that ended keeps the viewer's choices for the next one of its key."""

    async def active(self, since: int) -> list[StoredLogin]:
        """Return the logins seen since then (Unix seconds), of keys that are not revoked, oldest first."""

    async def add(
        self, login: StoredLogin, source: str, since: int, ending: Collection[int] = ()
    ) -> StoredLogin:
        """Store a new login in place of the `ending` ones; return it with its id.

        It takes over the choices of the last login by a key of that name. Logins not seen since `since` go.
        Write a row of the audit log if the key never came from `source` before.
        """

    async def note_visits(self, visits: Mapping[int, int]) -> None:
        """Note when logins were seen last: Unix seconds by id."""

    async def prefer(self, login_id: int, preferences: Mapping[str, str]) -> None:
        """Replace the choices of a login."""

    async def end(self, login_ids: Collection[int], detail: str = "") -> None:
        """End logins for ever. Write one row of the audit log, with this detail."""


class ViewLinkStore(Protocol):
    """Links that need no login."""

    async def all(self) -> list[ViewLink]:
        """Return the links of all accounts, oldest first."""

    async def add(self, link: ViewLink) -> ViewLink:
        """Store a new link; return it with its id."""

    async def remove(self, link_id: int, account_id: int) -> None:
        """Delete a link of an account; `NotFound` if there is none."""


class PageSettingStore(Protocol):
    """Settings that the owner makes on the page."""

    async def all(self) -> dict[str, str]:
        """Return all settings by name."""

    async def set(self, name: str, value: str) -> None:
        """Set one of them."""


class SeriesStore(Protocol):
    """Readings over time, for charts."""

    async def span(
        self, *, session_id: int | None = None, device_id: int | None = None
    ) -> tuple[int, int] | None:
        """Return the times of the first and the last reading (Unix seconds), None if there is none."""

    async def buckets(self, query: SeriesQuery) -> tuple[int, list[Bucket]]:
        """Return the width of a bucket in seconds, 0 if each reading is one, and the buckets that have any.

        Buckets of one device follow each other by time. Hand readings of a brew session are in none.
        """

    async def latest(self, session_ids: Sequence[int], seconds: int, points: int) -> dict[int, list[Bucket]]:
        """Return the buckets of the last seconds of brew sessions, each up to its own last reading."""

    async def vital_signs(self, query: SeriesQuery) -> list[VitalSigns]:
        """Return battery, signal and tilt of one reading of each bucket of a device."""

    async def left_out(self, query: SeriesQuery) -> list[LeftOutReading]:
        """Return readings that are left out of curves, the oldest first, at most `points`."""

    async def by_hand(self, query: SeriesQuery) -> list[HandReading]:
        """Return the hand readings of a brew session, at most `points`."""

    async def marks(self, query: SeriesQuery) -> list[EventMark]:
        """Return the other events of a brew session, at most `points`."""
