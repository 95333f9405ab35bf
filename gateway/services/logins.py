"""Logins: browsers that have shown a key and carry a cookie since.

They are in memory, as keys are: a check needs no query, and the end of a key takes effect at once.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateway.clock import Clock
from gateway.domain.key import ApiKey
from gateway.domain.login import PREFERENCE_CHARACTERS, PREFERENCES, StoredLogin
from gateway.domain.texts import NOT_TEXT
from gateway.errors import Forbidden, InvalidInput, NotFound, RateLimited, Unauthorized
from gateway.network import Peer, TokenBuckets
from gateway.services.access import Access
from gateway.store.protocol import Store

COOKIE = "hg_login"
SECURE_COOKIE = "__Secure-hg_login"
"""The names of the cookie: over plain http, and over https.

Two, because a browser lets no page over http replace a cookie that came over https.
"""

SECRET_BYTES = 32
"""Random bytes of a login's secret: high entropy, so SHA-256 without salt or stretching is enough."""

DAY_S = 86_400

LIFE_S = 90 * DAY_S
"""Seconds after the last visit in which a login ends."""

NOTED_S = DAY_S
"""Seconds by which the stored time of the last visit may be behind: a card does not write each visit."""

LOGINS_PER_KEY = 100
"""Logins of one key at most; the one that was not seen for longest ends first."""

AGENT_CHARACTERS = 200
"""Characters of a browser's name for itself that are kept."""

WRONG_RATE, WRONG_BURST = 1 / 12, 5.0
"""Wrong keys of one address on the login page: each second in the long run, and at once. Loopback, too."""


@dataclass(frozen=True, slots=True)
class Login:
    """A browser that is logged in; times are Unix seconds. `key` is the key that it showed.

    `preferences` are what the viewer chose: language, gravity_unit, temp_unit, scheme, zone. `agent` is the
    browser's name for itself.
    """

    id: int
    sha256: bytes
    key: ApiKey
    created_at: int
    seen_at: int
    agent: str
    preferences: Mapping[str, str] = field(default_factory=dict)


class Logins:
    """All logins, and the bound for wrong keys on the login page."""

    def __init__(self, store: Store, access: Access, clock: Clock) -> None:
        self._store = store
        self._access = access
        self._clock = clock
        self._wrong = TokenBuckets(WRONG_RATE, WRONG_BURST)
        self._logins: dict[bytes, StoredLogin] = {}
        self._noted: dict[int, int] = {}

    async def start(self) -> None:
        """Load the logins."""
        logins = await self._store.logins.active(self._since())
        self._logins = {login.sha256: login for login in logins}
        self._noted = {login.id: login.seen_at for login in logins}

    async def log_in(self, key_text: str, peer: Peer, agent: str, **preferences: str) -> tuple[str, Login]:
        """Log a browser in that shows a key; return the secret of its cookie, and the login.

        The choices of the key's last login go before `preferences`. `Unauthorized` if the key is unknown,
        `Forbidden` if it may not look at anything, `RateLimited` after many wrong keys. A right key passes
        before any limit.
        """
        key = self._access.find(key_text)
        if key is None:
            wait = self._wrong.take(peer.source, self._clock.monotonic())
            # There, too, for the log and the audit log, and so that both doors together allow no more.
            wait = max(wait, self._access.wrong_keys.take(peer, shown=bool(key_text.strip())))
            raise RateLimited(wait) if wait else Unauthorized
        if key.device:
            raise Forbidden("the key is for one device, which reports with it; it opens no page")
        if not key.allows("read"):
            raise Forbidden("the key is for devices, which report with it; it opens no page")
        self._access.check(key_text, "read", peer.source)  # notes the last use
        secret, now = secrets.token_urlsafe(SECRET_BYTES), int(self._clock.now())
        new = StoredLogin(0, _hashed(secret), key.sha256, now, now, _plain(agent), _checked(preferences))
        of_key = sorted(
            (login for login in self._logins.values() if login.key_sha256 == key.sha256),
            key=lambda login: login.seen_at,
        )
        pushed_out = [login.id for login in of_key[: max(0, len(of_key) - LOGINS_PER_KEY + 1)]]
        try:
            stored = await self._store.logins.add(new, peer.source, self._since(), pushed_out)
        except NotFound:
            raise Unauthorized from None  # the key was revoked meanwhile
        self._drop(pushed_out)
        for dead in [login for login in self._logins.values() if self._alive(login) is None]:
            del self._logins[dead.sha256]
            self._noted.pop(dead.id, None)
        self._logins[stored.sha256] = stored
        self._noted[stored.id] = now
        return secret, _login(stored, key)

    def find(self, secret: str) -> Login | None:
        """Return the login of a cookie's secret, and note the visit; None if it ended or never was."""
        stored = self._logins.get(_hashed(secret))
        login = None if stored is None else self._alive(stored)
        if stored is None or login is None:
            return None
        # Never back, because a machine without a battery for its clock may begin in the past.
        now = max(stored.seen_at, int(self._clock.now()))
        self._logins[stored.sha256] = replace(stored, seen_at=now)
        return replace(login, seen_at=now)

    def get(self, login_id: int) -> Login | None:
        """Return the login of that id; None if it ended or never was."""
        stored = next((login for login in self._logins.values() if login.id == login_id), None)
        return None if stored is None else self._alive(stored)

    def all(self, account_id: int) -> list[Login]:
        """Return the logins by keys of an account, the one that was seen last first."""
        alive = filter(None, map(self._alive, self._logins.values()))
        found = [login for login in alive if login.key.account_id == account_id]
        return sorted(found, key=lambda login: (login.seen_at, login.id), reverse=True)

    async def prefer(self, login_id: int, **preferences: str) -> None:
        """Keep choices of the viewer; an empty text takes a choice back."""
        stored = next((login for login in self._logins.values() if login.id == login_id), None)
        if stored is None:
            raise NotFound(f"no login {login_id}")
        chosen = {**stored.preferences, **_checked(preferences)}
        chosen = {name: text for name, text in chosen.items() if text}
        if chosen == dict(stored.preferences):
            return
        await self._store.logins.prefer(login_id, chosen)
        if (current := self._logins.get(stored.sha256)) is not None:
            self._logins[stored.sha256] = replace(current, preferences=chosen)

    async def log_out(self, login_id: int) -> None:
        """End a login. Its choices are those of the key's next one."""
        if (login := self.get(login_id)) is not None:
            await self._end([login], login.agent)

    async def log_out_all(self, account_id: int) -> None:
        """End all logins by keys of an account."""
        if logins := self.all(account_id):
            await self._end(logins, f"all {len(logins)} of account {account_id}")

    async def note(self) -> None:
        """Write the last visits that are a day ahead of the stored ones; nothing if there are none."""
        visits = {
            login.id: login.seen_at
            for login in self._logins.values()
            if login.seen_at - self._noted.get(login.id, 0) >= NOTED_S
        }
        if visits:
            await self._store.logins.note_visits(visits)
            self._noted.update(visits)

    async def _end(self, logins: list[Login], detail: str) -> None:
        ids = [login.id for login in logins]
        await self._store.logins.end(ids, detail)
        self._drop(ids)

    def _drop(self, login_ids: list[int]) -> None:
        gone = frozenset(login_ids)
        self._logins = {sha256: login for sha256, login in self._logins.items() if login.id not in gone}
        for login_id in gone:
            self._noted.pop(login_id, None)

    def _alive(self, stored: StoredLogin) -> Login | None:
        key = self._access.live(stored.key_sha256)
        return None if key is None or stored.seen_at < self._since() else _login(stored, key)

    def _since(self) -> int:
        return int(self._clock.now()) - LIFE_S


def _login(stored: StoredLogin, key: ApiKey) -> Login:
    return Login(
        stored.id, stored.sha256, key, stored.created_at, stored.seen_at, stored.agent, stored.preferences
    )


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _plain(agent: str) -> str:
    return "".join(filter(str.isprintable, NOT_TEXT.sub("", agent)))[:AGENT_CHARACTERS]


def _checked(preferences: Mapping[str, str]) -> dict[str, str]:
    for name, text in preferences.items():
        if name not in PREFERENCES:
            raise InvalidInput(f"there is no choice {name}")
        if len(text) > PREFERENCE_CHARACTERS or NOT_TEXT.search(text):
            raise InvalidInput(f"{name} has at most {PREFERENCE_CHARACTERS} characters")
    return dict(preferences)
