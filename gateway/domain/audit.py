"""The audit log: actors, and the rows that say who changed what."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from gateway.domain.account import OWNER_ID

WRONG_KEY = "wrong key"
"""The verb of a row that counts the wrong keys of a source in an hour."""

FIRST_LOGIN = "first login"
"""The verb of a row for a key that came from an address for the first time."""

DETAIL_CHARACTERS = 300
"""Characters of a detail at most: one line."""


@dataclass(frozen=True, slots=True)
class Actor:
    """An actor, `cli:uid 1000`, `key:phone`, `page:phone` or `system`, and its address, if it has one.

    `page:phone` is a browser that logged in with the key `phone`, `stranger` the actor of a wrong key.
    """

    name: str
    source: str = ""


def key_actor(name: str, account_id: int, source: str) -> Actor:
    """Return the actor that holds a key; keys of other accounts than the owner's may have the same name."""
    return Actor(f"key:{name}{_of_account(account_id)}", source)


def page_actor(name: str, account_id: int, source: str) -> Actor:
    """Return the actor in a browser that logged in with the key of that name."""
    return Actor(f"page:{name}{_of_account(account_id)}", source)


def _of_account(account_id: int) -> str:
    return "" if account_id == OWNER_ID else f" of account {account_id}"


SYSTEM = Actor("system")
"""The gateway itself."""

_ACTOR: ContextVar[Actor] = ContextVar("actor", default=SYSTEM)


def current_actor() -> Actor:
    """Return the actor of the request that is being answered, else the gateway itself."""
    return _ACTOR.get()


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Let the actor be the one of all changes in the body, and in tasks that begin there."""
    # Put back at the end, because the next request of a connection may be answered by the same task.
    token = _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(token)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A change: a verb, the object as `kind:id`, and a line of detail. Never with a secret in it."""

    verb: str
    object: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the audit log. `at` is Unix seconds; `times` counts events that share the row."""

    at: int
    actor: str
    source: str
    verb: str
    object: str
    detail: str
    times: int = 1
