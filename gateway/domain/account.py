"""An account: the owner of records, keys and devices. Its id is the `login_id` of the API."""

from dataclasses import dataclass

OWNER_ID = 1
"""The account that the first start makes. Only this account may make others. Readings in no brew
session belong to it."""


@dataclass(frozen=True, slots=True)
class Account:
    """A person or a brewery; `created_at` in Unix seconds."""

    id: int
    name: str
    created_at: int
