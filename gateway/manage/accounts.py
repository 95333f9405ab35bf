"""`/manage/accounts`: who has records here; for the owner's keys only."""

from typing import Any

from gateway.domain.account import OWNER_ID, Account
from gateway.domain.times import stamp
from gateway.errors import Forbidden
from gateway.http.endpoint import AnswerModel, Body, Call, Endpoint, Page, Query
from gateway.http.middleware import ACCESS, STORE
from gateway.http.parameters import Name


class AccountRecord(AnswerModel):
    """An account; its id is the `login_id` of its records."""

    id: str
    name: str
    created_at: str


class Accounts(Page):
    """Accounts, by id."""

    accounts: list[AccountRecord]


class NewAccount(Body):
    """An account to be made; it gets its keys from `/manage/keys`."""

    name: Name


async def list_accounts(call: Call[Query, None]) -> Accounts:
    """Every account."""
    owner_only(call)
    return _shown(*await call.app[STORE].accounts.all())


async def add_account(call: Call[Query, NewAccount]) -> Accounts:
    """Make an account, without a key yet."""
    owner_only(call)
    return _shown(await call.app[ACCESS].add_account(call.body.name))


def owner_only(call: Call[Any, Any]) -> None:
    """`Forbidden` for every account but the first."""
    if call.key.account_id != OWNER_ID:
        raise Forbidden("only a key of the owner's account may do that")


def _shown(*accounts: Account) -> Accounts:
    records = [AccountRecord(id=str(a.id), name=a.name, created_at=stamp(a.created_at)) for a in accounts]
    return Accounts(count=str(len(records)), accounts=records)


ENDPOINTS = (
    Endpoint("GET", "/manage/accounts", list_accounts, "All accounts", Query, Accounts, refusals=(403,)),
    Endpoint(
        "POST",
        "/manage/accounts",
        add_account,
        "Make an account",
        Query,
        Accounts,
        body=NewAccount,
        refusals=(403, 409),
    ),
)
"""Accounts."""
