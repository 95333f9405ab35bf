"""Links that need no login: a picture of a brew, and the page for a screen on the wall.

They are in memory, as keys are: a check needs no query, and a revoked link fails at once.
"""

import hashlib
import secrets
from collections.abc import Mapping

from gateway.clock import Clock
from gateway.domain.brewsession import BrewSession
from gateway.domain.login import PREFERENCE_CHARACTERS
from gateway.domain.texts import label_of
from gateway.domain.view_link import VIEW_LINK_KINDS, VIEW_LINK_OPTIONS, ViewLink, ViewLinkKind
from gateway.errors import InvalidInput, NotFound
from gateway.services.figures import FigureService
from gateway.store.protocol import Store

TOKEN_BYTES = 24
"""Random bytes of a link's token: nobody guesses it, and it can still be typed into a small screen."""

PATHS: dict[ViewLinkKind, str] = {"tv": "/ui/tv/{token}", "picture": "/ui/picture/{token}.png"}
"""The address of each kind of link, below the gateway's own. A picture ends in `.svg` as well."""

LINKS_PER_ACCOUNT = 50
"""Links of one account at most."""

BREWS_ON_A_SCREEN = 6
"""Brews that a screen on the wall shows at most: figures of more could not be read from afar."""


class LinkService:
    """All links of all accounts."""

    def __init__(self, store: Store, figures: FigureService, clock: Clock) -> None:
        self._store = store
        self._figures = figures
        self._clock = clock
        self._links: dict[bytes, ViewLink] = {}

    async def start(self) -> None:
        """Load the links."""
        self._links = {link.sha256: link for link in await self._store.view_links.all()}

    async def make(
        self,
        account_id: int,
        kind: ViewLinkKind,
        name: str,
        session: BrewSession | None = None,
        options: Mapping[str, str] | None = None,
    ) -> tuple[str, ViewLink]:
        """Make a link to a brew of the account, or to the running ones; return its token, and the link.

        The token is stored nowhere. `options` are the language and the units of what the link shows.
        """
        label = label_of(name.strip())
        if not label:
            raise InvalidInput("the link's name is empty")
        if kind not in VIEW_LINK_KINDS:
            raise InvalidInput(f"there is no kind of link {kind}")
        if session is not None and session.account_id != account_id:
            raise NotFound(f"no brew session {session.id}")
        for option, text in (options or {}).items():
            if option not in VIEW_LINK_OPTIONS or len(text) > PREFERENCE_CHARACTERS:
                raise InvalidInput(f"there is no choice {option} {text[:PREFERENCE_CHARACTERS]}")
        if len(self.all(account_id)) >= LINKS_PER_ACCOUNT:
            raise InvalidInput(f"an account has at most {LINKS_PER_ACCOUNT} links; revoke one first")
        token, now = secrets.token_urlsafe(TOKEN_BYTES), int(self._clock.now())
        session_id = None if session is None else session.id
        link = await self._store.view_links.add(
            ViewLink(0, _hashed(token), account_id, kind, session_id, label, now, dict(options or {}))
        )
        self._links[link.sha256] = link
        return token, link

    def all(self, account_id: int) -> list[ViewLink]:
        """Return the links of an account, oldest first."""
        return [link for link in self._links.values() if link.account_id == account_id]

    def find(self, token: str, kind: ViewLinkKind) -> ViewLink | None:
        """Return the link of that kind with this token; None if it was revoked or never was."""
        link = self._links.get(_hashed(token))
        return link if link is not None and link.kind == kind else None

    async def revoke(self, account_id: int, link_id: int) -> None:
        """Revoke a link of an account; the next request with it fails."""
        await self._store.view_links.remove(link_id, account_id)
        self._links = {sha256: link for sha256, link in self._links.items() if link.id != link_id}

    async def brews(self, link: ViewLink) -> list[BrewSession]:
        """Return the brews that a link shows: its own, or those that run.

        A picture shows the first one. A brew that was deleted leaves none.
        """
        if link.session_id is None:
            return await self.running(link.account_id, 1 if link.kind == "picture" else BREWS_ON_A_SCREEN)
        session = await self._store.sessions.get(link.session_id)
        # Not a brew that is younger than the link: it has the number of one that was deleted.
        if session is None or session.account_id != link.account_id or session.created_at > link.created_at:
            return []
        return [session]

    async def running(self, account_id: int, most: int = BREWS_ON_A_SCREEN) -> list[BrewSession]:
        """Return the account's brews that run: those with a device first, then the newest ones."""
        ids = (await self._figures.running(account_id))[:most]
        found = [await self._store.sessions.get(session_id) for session_id in ids]
        return [session for session in found if session is not None]


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
