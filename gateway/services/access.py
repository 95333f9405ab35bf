"""Who may do what: the keys in memory, so that a check needs no query and a change takes effect at once."""

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
    """What the very first start made: the owner's key, shown this once."""

    key_text: str


class Access:
    """Keys of all accounts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._keys: list[ApiKey] = []
        self.owner_id = 0

    async def start(self, *, first_key: str | None = None) -> FirstStart | None:
        """Load the keys and see that there is an owner; its first key is made here where one is named."""
        self.owner_id, keyless = await self._store.keys.owner(int(self._clock.now()))
        self._keys = await self._store.keys.active()
        if not keyless or first_key is None:
            return None
        return FirstStart(await self.add(first_key))

    async def load(self) -> None:
        """Load the keys for reading only, where the store takes no writes."""
        self.owner_id, self._keys = OWNER_ID, await self._store.keys.active()

    def check(self, presented: str, scope: Scope) -> ApiKey:
        """The key, where it exists and may do that; missing, unknown, too narrow: all `Unauthorized`."""
        key = find_key(self._keys, presented)
        if key is None or not key.allows(scope):
            raise Unauthorized
        return key

    async def add_account(self, name: str) -> Account:
        """A new account, with no key yet."""
        if not name.strip() or len(name) > NAME_CHARACTERS or NOT_TEXT.search(name):
            raise InvalidInput(f"an account's name has 1 to {NAME_CHARACTERS} characters")
        return await self._store.accounts.add(name.strip(), int(self._clock.now()))

    async def add(self, name: str, scopes: frozenset[Scope] = ALL_SCOPES, account: str | None = None) -> str:
        """A new key for an account, the owner's unless named; the text is returned once and never stored."""
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
        """The id of the account of that name, the owner's where none is named."""
        if name is None:
            return self.owner_id
        return account_named(await self._store.accounts.all(), name).id

    async def revoke(self, name: str, account: str | None = None) -> None:
        """Make a key of an account, the owner's unless named, useless from the next request on."""
        account_id = await self.account_id(account)
        if not await self._store.keys.revoke(account_id, name, int(self._clock.now())):
            raise NotFound(f"no active key named {name!r}")
        self._keys = [key for key in self._keys if (key.account_id, key.name) != (account_id, name)]

    def all(self) -> list[ApiKey]:
        """Active keys, oldest first."""
        return list(self._keys)


def account_named(accounts: Sequence[Account], name: str) -> Account:
    """The account of that name; `NotFound` says which one may have been meant."""
    known = {account.name: account for account in accounts}
    if name not in known:
        raise NotFound(f"no account named {name!r}{did_you_mean(name, known)}; `accounts list` shows them")
    return known[name]
