"""`/manage/keys`: an account's API keys; the owner's keys may name another account."""

from typing import Any

from pydantic import Field

from gateway.domain.account import Account
from gateway.domain.key import ALL_SCOPES, ApiKey, Scope
from gateway.domain.times import stamp
from gateway.errors import InvalidInput, NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Page, Query, Single, check_owner
from gateway.http.parameters import Flag, Moment, Name
from gateway.services.access import INGEST_ONLY, READ_ONLY

DAY_S = 86_400
"""Seconds in which a rotated key stays valid if the request does not say."""

OVERLAP_MAX_S = 90 * DAY_S


class KeyRecord(AnswerModel):
    """A key; only its first characters are kept as text."""

    name: str
    account_id: str
    account: str = Field(description="The account's name.")
    shown: str = Field(description="The first characters of the key.")
    scopes: list[Scope]
    device: str = Field(description="The one device that it reports for; empty: it is for no single device.")
    created_at: str
    expires_at: str | None = Field(description="It is refused from then on; null: it has no end.")
    last_used_at: str | None
    last_source: str = Field(description="The address that it was used from last.")
    replaced: bool = Field(description="A newer key has its name; it is valid until its end.")


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
    scopes: list[Scope] | None = Field(
        default=None,
        min_length=1,
        max_length=len(ALL_SCOPES),
        description="What it may do: `read` looks, `ingest` reports, `admin` changes and deletes everything "
        "of the account and makes keys. Without this `read`, with a device `ingest`.",
    )
    device: Name | None = Field(default=None, description="It only reports, and only for this device.")
    expires_at: Moment | None = Field(default=None, description="ISO 8601: refuse the key from then on.")
    account: Name | None = Field(default=None, description="Another account's name; for the owner only.")


class Rotation(Body):
    """A new key in place of another, which stays valid for a while."""

    name: Name = Field(description="The key's name; the new key gets its name, rights, device and life span.")
    overlap_s: int = Field(
        default=DAY_S, ge=0, le=OVERLAP_MAX_S, description="Seconds in which the old key is valid, too."
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
    scopes = frozenset(wanted.scopes or ()) or (INGEST_ONLY if wanted.device else READ_ONLY)
    ends = None if wanted.expires_at is None else int(wanted.expires_at)
    device = wanted.device or ""
    text = await access.add(wanted.name, scopes, account.name, device=device, expires_at=ends)
    return _made(call, account, wanted.name, text)


async def rotate_key(call: Call[Query, Rotation]) -> OneMadeKey:
    """Make a new key in place of another; both are valid until the overlap ends."""
    wanted = call.body
    account = await _account(call, wanted.account)
    if not any(key.name == wanted.name for key in _keys_of(call, account)):
        raise NotFound
    text = await call.services.access.rotate(wanted.name, wanted.overlap_s, account.name)
    return _made(call, account, wanted.name, text)


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


def _made(call: Call[Any, Any], account: Account, name: str, text: str) -> OneMadeKey:
    made = next(key for key in _keys_of(call, account) if key.name == name and not key.replaced)
    return OneMadeKey(keys=[MadeKey.model_validate({**_members(made, account.name), "key": text})])


def _keys_of(call: Call[Any, Any], account: Account) -> list[ApiKey]:
    return [key for key in call.services.access.all() if key.account_id == account.id]


def _members(key: ApiKey, account: str) -> dict[str, Any]:
    return {
        "name": key.name,
        "account_id": str(key.account_id),
        "account": account,
        "shown": key.shown,
        "scopes": sorted(key.scopes),
        "device": key.device,
        "created_at": stamp(key.created_at),
        "expires_at": None if key.expires_at is None else stamp(key.expires_at),
        "last_used_at": None if key.last_used_at is None else stamp(key.last_used_at),
        "last_source": key.last_source,
        "replaced": key.replaced,
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
    Endpoint(
        "POST",
        "/manage/keys/rotate",
        rotate_key,
        "Make a new key in place of another, which stays valid for a while",
        Query,
        OneMadeKey,
        body=Rotation,
        refusals=(403, 404),
    ),
    Endpoint("DELETE", "/manage/keys", revoke_key, "Revoke a key", KeyQuery, Done, refusals=(403, 404)),
)
"""Keys."""
