"""`/manage/accounts`: the accounts of this gateway; for the owner's keys only."""

from collections import Counter
from typing import Any

from pydantic import Field

from gateway.domain.account import Account
from gateway.domain.times import stamp
from gateway.http.endpoint import AnswerModel, Body, Call, Endpoint, Page, Query
from gateway.http.parameters import Name


class AccountRecord(AnswerModel):
    """An account; its id is the `login_id` of its records."""

    id: str
    name: str
    keys: int = Field(description="How many keys it has in use.")
    created_at: str


class Accounts(Page):
    """Accounts, by id."""

    accounts: list[AccountRecord]


class NewAccount(Body):
    """A new account. `/manage/keys` makes its keys."""

    name: Name


async def list_accounts(call: Call[Query, None]) -> Accounts:
    """List all accounts."""
    return _shown(call, *await call.store.accounts.all())


async def add_account(call: Call[Query, NewAccount]) -> Accounts:
    """Make an account, without a key yet."""
    return _shown(call, await call.services.access.add_account(call.body.name))


def _shown(call: Call[Any, Any], *accounts: Account) -> Accounts:
    keys = Counter(key.account_id for key in call.services.access.all())
    records = [
        AccountRecord(id=str(a.id), name=a.name, keys=keys[a.id], created_at=stamp(a.created_at))
        for a in accounts
    ]
    return Accounts(count=str(len(records)), accounts=records)


ENDPOINTS = (
    Endpoint("GET", "/manage/accounts", list_accounts, "All accounts", Query, Accounts, owner_only=True),
    Endpoint(
        "POST",
        "/manage/accounts",
        add_account,
        "Make an account",
        Query,
        Accounts,
        body=NewAccount,
        refusals=(409,),
        owner_only=True,
    ),
)
"""Accounts."""
