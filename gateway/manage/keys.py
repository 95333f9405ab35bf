"""`/manage/keys`: an account's API keys; the owner's keys may name another account."""

from typing import Any

from pydantic import Field

from gateway.domain.account import Account
from gateway.domain.key import ALL_SCOPES, ApiKey, Scope
from gateway.domain.times import stamp
from gateway.errors import InvalidInput, NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Page, Query, Single, check_owner
from gateway.http.parameters import Flag, Name


class KeyRecord(AnswerModel):
    """A key; only its first characters are kept as text."""

    name: str
    account_id: str
    account: str = Field(description="The account's name.")
    shown: str = Field(description="The first characters of the key.")
    scopes: list[Scope]
    created_at: str


class MadeKey(KeyRecord):
    """A key that was just made."""

    key: str = Field(description="The key itself, shown this once.")


class Keys(Page):
    """Keys that are in use, oldest first."""

    keys: list[KeyRecord]


class OneMadeKey(Single):
    """The key that was just made."""

    keys: list[MadeKey] = Field(min_length=1, max_length=1)


class KeysQuery(Query):
    """The account whose keys are meant."""

    account: Name | None = Field(default=None, description="Another account's name; for the owner only.")


class KeysOfQuery(KeysQuery):
    """The account, or all accounts, whose keys are listed."""

    everyone: Flag = Field(default=False, description="Of all accounts; for the owner only.")


class KeyQuery(KeysQuery):
    """The name of a key, and its account."""

    name: Name = Field(description="The key's name.")


class NewKey(Body):
    """A new key; no other key in use of the account may have the name."""

    name: Name
    scopes: list[Scope] = Field(
        default_factory=lambda: sorted(ALL_SCOPES),
        min_length=1,
        max_length=len(ALL_SCOPES),
        description="What it may do; everything without this.",
    )
    account: Name | None = Field(default=None, description="Another account's name; for the owner only.")


async def list_keys(call: Call[KeysOfQuery, None]) -> Keys:
    """List the keys of an account, or of all accounts."""
    if call.query.everyone:
        check_owner(call.caller)
        accounts = await call.store.accounts.all()
    else:
        accounts = [await _account(call, call.query.account)]
    names = {account.id: account.name for account in accounts}
    found = [key for key in call.services.access.all() if key.account_id in names]
    records = [KeyRecord.model_validate(_members(key, names[key.account_id])) for key in found]
    return Keys(count=str(len(found)), keys=records)


async def add_key(call: Call[Query, NewKey]) -> OneMadeKey:
    """Make a key, which works from the next request on."""
    wanted, access = call.body, call.services.access
    account = await _account(call, wanted.account)
    text = await access.add(wanted.name, frozenset(wanted.scopes), account.name)
    made = next(key for key in _keys_of(call, account) if key.name == wanted.name)
    return OneMadeKey(keys=[MadeKey.model_validate({**_members(made, account.name), "key": text})])


async def revoke_key(call: Call[KeyQuery, None]) -> Done:
    """Revoke a key; the next request with it fails."""
    account = await _account(call, call.query.account)
    if not any(key.name == call.query.name for key in _keys_of(call, account)):
        raise NotFound
    if (account.id, call.query.name) == (call.caller.account_id, call.caller.key_name):
        raise InvalidInput("that is the key of this very request; make another and revoke this one with it")
    await call.services.access.revoke(call.query.name, account.name)
    return Done()


async def _account(call: Call[Any, Any], named: str | None) -> Account:
    """Return the account whose keys are meant: the caller's own, or another that the owner names."""
    accounts = await call.store.accounts.all()
    own = next(account for account in accounts if account.id == call.caller.account_id)
    if named is None or named == own.name:
        return own
    check_owner(call.caller)
    found = next((account for account in accounts if account.name == named), None)
    if found is None:
        raise NotFound
    return found


def _keys_of(call: Call[Any, Any], account: Account) -> list[ApiKey]:
    return [key for key in call.services.access.all() if key.account_id == account.id]


def _members(key: ApiKey, account: str) -> dict[str, Any]:
    return {
        "name": key.name,
        "account_id": str(key.account_id),
        "account": account,
        "shown": key.shown,
        "scopes": sorted(key.scopes),
        "created_at": stamp(key.created_at),
    }


ENDPOINTS = (
    Endpoint("GET", "/manage/keys", list_keys, "An account's keys", KeysOfQuery, Keys, refusals=(403, 404)),
    Endpoint(
        "POST",
        "/manage/keys",
        add_key,
        "Make a key",
        Query,
        OneMadeKey,
        body=NewKey,
        refusals=(403, 404, 409),
    ),
    Endpoint("DELETE", "/manage/keys", revoke_key, "Revoke a key", KeyQuery, Done, refusals=(403, 404)),
)
"""Keys."""
