"""API keys and accounts. Keys are in memory: a check needs no query, a change takes effect at once."""

from collections.abc import Sequence
from dataclasses import dataclass

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
from gateway.errors import InvalidInput, NotFound, Unauthorized
from gateway.store.protocol import Store


@dataclass(frozen=True, slots=True)
class FirstStart:
    """The result of the very first start: the owner's key, which is shown only once."""

    key_text: str


class Access:
    """Keys of all accounts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._keys: list[ApiKey] = []
        self.owner_id = 0

    async def start(self, *, first_key: str | None = None) -> FirstStart | None:
        """Load the keys. On the first start, make the owner's account, and a key named `first_key`."""
        self.owner_id, keyless = await self._store.keys.owner(int(self._clock.now()))
        self._keys = await self._store.keys.active()
        if not keyless or first_key is None:
            return None
        return FirstStart(await self.add(first_key))

    async def load(self) -> None:
        """Load the keys for reading only, where the store takes no writes."""
        self.owner_id, self._keys = OWNER_ID, await self._store.keys.active()

    def check(self, presented: str, scope: Scope) -> ApiKey:
        """Return the key if it has the scope; `Unauthorized` if it is missing, unknown or too narrow."""
        key = find_key(self._keys, presented)
        if key is None or not key.allows(scope):
            raise Unauthorized
        return key

    async def add_account(self, name: str) -> Account:
        """Add an account, without a key."""
        if not name.strip() or len(name) > NAME_CHARACTERS or NOT_TEXT.search(name):
            raise InvalidInput(f"an account's name has 1 to {NAME_CHARACTERS} characters")
        return await self._store.accounts.add(name.strip(), int(self._clock.now()))

    async def add(self, name: str, scopes: frozenset[Scope] = ALL_SCOPES, account: str | None = None) -> str:
        """Add a key to the named account, else the owner's; return its text, which is never stored."""
        if not name.strip():
            raise InvalidInput("the key's name is empty")
        text = new_key_text()
        shown, now = text[:SHOWN_CHARACTERS], int(self._clock.now())
        account_id = await self.account_id(account)
        key = ApiKey(name, account_id, shown, digest(text), scopes, now)
        await self._store.keys.add(key)
        self._keys = [*self._keys, key]
        return text

    async def account_id(self, name: str | None) -> int:
        """Return the id of the named account, the owner's for None."""
        if name is None:
            return self.owner_id
        return account_named(await self._store.accounts.all(), name).id

    async def revoke(self, name: str, account: str | None = None) -> None:
        """Revoke a key of the named account, else the owner's; the next request with it fails."""
        account_id = await self.account_id(account)
        if not await self._store.keys.revoke(account_id, name, int(self._clock.now())):
            raise NotFound(f"no active key named {name!r}")
        self._keys = [key for key in self._keys if (key.account_id, key.name) != (account_id, name)]

    def all(self) -> list[ApiKey]:
        """Return the active keys, oldest first."""
        return list(self._keys)

    def bound(self) -> list[ApiKey]:
        """Return the keys that are bound to one device. A key that has ended binds until it is revoked."""
        return [key for key in self._keys if key.device]


def account_named(accounts: Sequence[Account], name: str) -> Account:
    """Return the account with that name; `NotFound` suggests a similar name."""
    known = {account.name: account for account in accounts}
    if name not in known:
        raise NotFound(f"no account named {name!r}{did_you_mean(name, known)}; `accounts list` shows them")
    return known[name]
