"""API keys and accounts. Keys are in memory: a check needs no query, a change takes effect at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gateway.clock import Clock
from gateway.domain.account import OWNER_ID, Account
from gateway.domain.key import (
    ALL_SCOPES,
    SHOWN_CHARACTERS,
    ApiKey,
    Scope,
    digest,
    find_key,
    new_key_text,
)
from gateway.domain.texts import NAME_CHARACTERS, NOT_TEXT, did_you_mean
from gateway.errors import InvalidInput, NotFound, RateLimited, Unauthorized
from gateway.network import Peer
from gateway.services.wrong_keys import WrongKeys
from gateway.stats import Stats
from gateway.store.protocol import Store

READ_ONLY: frozenset[Scope] = frozenset({"read"})
INGEST_ONLY: frozenset[Scope] = frozenset({"ingest"})

USES_IN_MEMORY = 100
"""Addresses of one key that are remembered until the next note."""


@dataclass(frozen=True, slots=True)
class FirstStart:
    """The result of the very first start: the owner's key, which is shown only once."""

    key_text: str


class Access:
    """Keys of all accounts, and where they were used."""

    def __init__(self, store: Store, clock: Clock, stats: Stats | None = None) -> None:
        self.wrong_keys = WrongKeys(clock, stats or Stats())
        self._store = store
        self._clock = clock
        self._keys: list[ApiKey] = []
        self._last_uses: dict[bytes, tuple[int, str]] = {}
        self._uses: dict[bytes, dict[str, int]] = {}
        self.owner_id = 0

    async def start(
        self, *, first_key: str | None = None, keep: Callable[[str], None] = lambda _: None
    ) -> FirstStart | None:
        """Load the keys. On the first start, make the owner's account, and a key named `first_key`.

        `keep` gets the text of that key before the key is stored, so that no crash can lose it.
        """
        self.owner_id, keyless = await self._store.keys.owner(int(self._clock.now()))
        self._keys = await self._store.keys.active()
        if not keyless or first_key is None:
            return None
        text = new_key_text()
        keep(text)
        await self._store_key(self._key(text, first_key, self.owner_id, ALL_SCOPES))
        return FirstStart(text)

    async def load(self) -> None:
        """Load the keys for reading only, where the store takes no writes."""
        self.owner_id, self._keys = OWNER_ID, await self._store.keys.active()

    def check(self, presented: str, scope: Scope, source: str = "", *, devices: bool = True) -> ApiKey:
        """Return the key if it has the scope; `Unauthorized` if it is missing, unknown, ended or too narrow.

        `source` is the caller's, for the last use of the key. Without `devices`, a key that is bound to one
        device is too narrow.
        """
        now = int(self._clock.now())
        key = find_key(self._keys, presented)
        if key is None or not key.allows(scope) or key.has_ended(now) or (key.device and not devices):
            raise Unauthorized
        # Only in memory: `note` writes it, because a request of a device must not wait for a commit of ours.
        self._last_uses[key.sha256] = now, source
        uses = self._uses.setdefault(key.sha256, {})
        uses.pop(source, None)
        uses[source] = now
        if len(uses) > USES_IN_MEMORY:
            del uses[next(iter(uses))]
        return key

    def find(self, presented: str) -> ApiKey | None:
        """Return the presented key if it is in use, whatever its scopes; else None."""
        return self._in_use(find_key(self._keys, presented))

    def live(self, sha256: bytes) -> ApiKey | None:
        """Return the key of that hash if it is in use; None once it was revoked or has ended."""
        return self._in_use(next((key for key in self._keys if key.sha256 == sha256), None))

    def _in_use(self, key: ApiKey | None) -> ApiKey | None:
        return None if key is None or key.has_ended(self._clock.now()) else key

    def admit(self, presented: str, scope: Scope, peer: Peer, *, devices: bool = True) -> ApiKey:
        """Do the same as `check` for a request of this peer; count a request without a key that fits.

        After many of those, `RateLimited`. A key that fits passes before any limit, so that wrong keys never
        lock its owner out.
        """
        try:
            return self.check(presented, scope, peer.source, devices=devices)
        except Unauthorized:
            if wait := self.wrong_keys.take(peer, shown=bool(presented.strip())):
                raise RateLimited(wait) from None
            raise

    async def note(self) -> None:
        """Write the last uses of keys and the wrong keys since the last call; nothing if there were none."""
        uses, self._uses = self._uses, {}
        wrong = self.wrong_keys.counts()
        try:
            if uses:
                await self._store.keys.note_uses(uses)
                uses = {}
            if wrong:
                await self._store.audit.count_wrong_keys(wrong)
        except BaseException:
            for sha256, sources in uses.items():
                # Uses since then are later, so they go last and stay.
                both = {**sources, **self._uses.get(sha256, {})}
                self._uses[sha256] = dict([*both.items()][-USES_IN_MEMORY:])
            self.wrong_keys.put_back(wrong)
            raise

    async def add_account(self, name: str) -> Account:
        """Add an account, without a key."""
        if not name.strip() or len(name) > NAME_CHARACTERS or NOT_TEXT.search(name):
            raise InvalidInput(f"an account's name has 1 to {NAME_CHARACTERS} characters")
        return await self._store.accounts.add(name.strip(), int(self._clock.now()))

    async def add(
        self,
        name: str,
        scopes: frozenset[Scope] = READ_ONLY,
        account: str | None = None,
        *,
        device: str = "",
        expires_at: int | None = None,
    ) -> str:
        """Add a key to the named account, else the owner's; return its text, which is never stored.

        With `device`, the key only reports for the device of that name. `expires_at` is Unix seconds.
        """
        if not name.strip():
            raise InvalidInput("the key's name is empty")
        if device and scopes != INGEST_ONLY:
            raise InvalidInput("a key for one device has the scope ingest and no other")
        if expires_at is not None and expires_at <= self._clock.now():
            raise InvalidInput("the key would have ended already")
        text = new_key_text()
        key = self._key(text, name, await self.account_id(account), scopes)
        await self._store_key(replace(key, device=device, expires_at=expires_at))
        return text

    async def rotate(self, name: str, overlap_s: int, account: str | None = None) -> str:
        """Make a new key in place of the named one, and return its text.

        The old key stays valid for `overlap_s` seconds. The new one has its rights, device and life span.
        """
        account_id, now = await self.account_id(account), int(self._clock.now())
        current = {(key.account_id, key.name): key for key in self._keys if not key.replaced}
        old = current.get((account_id, name))
        if old is None:
            raise NotFound(f"no active key named {name!r}; `keys list` shows them")
        text = new_key_text()
        ends = None if old.expires_at is None else now + old.expires_at - old.created_at
        new = replace(self._key(text, name, account_id, old.scopes), device=old.device, expires_at=ends)
        until = now + overlap_s
        until = until if old.expires_at is None else min(until, old.expires_at)
        replaced = replace(old, expires_at=until, replaced=True)
        await self._store.keys.rotate(replaced, new)
        self._keys = [*(replaced if key.sha256 == old.sha256 else key for key in self._keys), new]
        return text

    def _key(self, text: str, name: str, account_id: int, scopes: frozenset[Scope]) -> ApiKey:
        shown, now = text[:SHOWN_CHARACTERS], int(self._clock.now())
        return ApiKey(name, account_id, shown, digest(text), scopes, now)

    async def _store_key(self, key: ApiKey) -> None:
        await self._store.keys.add(key)
        self._keys = [*self._keys, key]

    async def account_id(self, name: str | None) -> int:
        """Return the id of the named account, the owner's for None."""
        if name is None:
            return self.owner_id
        return account_named(await self._store.accounts.all(), name).id

    async def revoke(self, name: str, account: str | None = None) -> None:
        """Revoke a key of the named account, else the owner's; the next request with it fails."""
        account_id = await self.account_id(account)
        if not await self._store.keys.revoke(account_id, name, int(self._clock.now())):
            raise NotFound(f"no active key named {name!r}; `keys list` shows them")
        self._keys = [key for key in self._keys if (key.account_id, key.name) != (account_id, name)]

    def all(self) -> list[ApiKey]:
        """Return the keys in use with their last uses, oldest first.

        A key that has ended is in the list until it is revoked, unless it was replaced.
        """
        now = self._clock.now()
        return [
            replace(key, last_used_at=used[0], last_source=used[1])
            if (used := self._last_uses.get(key.sha256))
            else key
            for key in self._keys
            if not (key.replaced and key.has_ended(now))
        ]

    def bound(self) -> list[ApiKey]:
        """Return the keys that are bound to one device. A key that has ended binds until it is revoked."""
        return [key for key in self._keys if key.device]


def account_named(accounts: Sequence[Account], name: str) -> Account:
    """Return the account with that name; `NotFound` suggests a similar name."""
    known = {account.name: account for account in accounts}
    if name not in known:
        raise NotFound(f"no account named {name!r}{did_you_mean(name, known)}; `accounts list` shows them")
    return known[name]
