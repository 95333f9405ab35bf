"""The protocols of a store's part for accounts, keys and the audit log.

The rules of `gateway.store.protocol` hold here, too.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gateway.domain.account import Account
from gateway.domain.audit import AuditEntry, AuditRow
from gateway.domain.key import ApiKey


class AccountStore(Protocol):
    """Accounts."""

    async def add(self, name: str, now: int) -> Account:
        """Add an account (`now` is Unix seconds); `NameTaken` if there is one of that name."""

    async def all(self) -> list[Account]:
        """Return every account, by id."""


class KeyStore(Protocol):
    """API keys, and the account of the owner."""

    async def owner(self, now: int) -> tuple[int, bool]:
        """Return the owner account's id, and whether no key was ever made; make the account if needed."""

    async def active(self) -> list[ApiKey]:
        """Return the keys that are not revoked, oldest first."""

    async def add(self, key: ApiKey) -> None:
        """Store a key; `NameTaken` if an active key of its account has that name."""

    async def rotate(self, old: ApiKey, new: ApiKey) -> None:
        """Store a new key of the same name, and the new end of the old one, which is replaced by it.

        Both or neither.
        """

    async def note_uses(self, uses: Mapping[bytes, Mapping[str, int]]) -> None:
        """Note the last use of keys: Unix seconds by address, the latest last, by the SHA-256 of the key.

        Write a row of the audit log for each address that a key did not come from before.
        """

    async def revoke(self, account_id: int, name: str, now: int) -> bool:
        """Revoke a key (Unix seconds); return whether the account had an active one of that name."""


class AuditStore(Protocol):
    """The audit log. Every call that changes something writes its row itself, in its own transaction."""

    async def add(self, entry: AuditEntry) -> None:
        """Write a row for a change that is none of the store's, such as a backup."""

    async def page(self, *, since: int = 0, about: str = "", limit: int) -> list[AuditRow]:
        """Return the latest rows since then (Unix seconds), in the order in which they were written.

        With `about`, only rows of this object, `device:3`, or of this kind of object, `device`.
        """

    async def count_wrong_keys(self, counts: Sequence[tuple[str, int, int]]) -> None:
        """Count wrong keys: source, time of the first (Unix seconds) and number. A row a source and hour."""

    async def note_options(self, options: Mapping[str, str]) -> None:
        """Remember the options of this start, and write a row with those that differ from the last start."""

    async def prune(self, now: int) -> None:
        """Delete the rows that are too old; `now` is Unix seconds."""
