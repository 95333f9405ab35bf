"""Accounts and keys: make, rotate, revoke, log in a phone, and the logins of each key."""

from collections import defaultdict
from typing import Annotated, Literal, NamedTuple

from gateway.domain.account import OWNER_ID, Account
from gateway.domain.key import ApiKey, Scope
from gateway.domain.texts import NAME_CHARACTERS, NOT_TEXT
from gateway.errors import Forbidden, NameTaken, NotFound
from gateway.services.access import INGEST_ONLY, READ_ONLY
from gateway.services.logins import Login
from gateway.services.qr import QrCode, as_path
from gateway.ui.addresses import own_address
from gateway.ui.forms import Filled, Form, among
from gateway.ui.pages import Answer, Moved, Page, Row, Visit
from gateway.ui.views.settings import LoginLine, login_line
from gateway.ui.words import Ago

DAY_S = 86_400

OVERLAP_S = DAY_S
"""Seconds in which a rotated key stays valid, so that no device falls silent."""

Rights = Literal["look", "change", "report"]

SCOPES: dict[Rights, frozenset[Scope]] = {
    "look": READ_ONLY,
    "change": frozenset({"admin"}),
    "report": INGEST_ONLY,
}
"""The scopes of a new key by its purpose. `admin` includes all."""

LIVES = {"": None, "1": 1, "30": 30, "90": 90, "365": 365}
"""Days of a new key's life as they are offered; None is for ever."""

PHONE = "phone"
"""The name of a phone's key; a second phone gets a number behind it."""


def _named(text: str) -> str:
    if len(text) > NAME_CHARACTERS or NOT_TEXT.search(text) or not text.isprintable():
        raise ValueError("form.wrong")
    return text


class NewKey(Form):
    """A new key: its name, its purpose, and its days of life."""

    name: Annotated[str, _named]
    rights: Annotated[str, among(SCOPES)] = "look"
    days: Annotated[str, among(LIVES)] = ""
    account: str = ""


class NewAccount(Form):
    """A new account: its name."""

    account_name: Annotated[str, _named]


class KeyLine(NamedTuple):
    """A key as the page shows it."""

    name: str
    shown: str
    rights: str
    used: Ago | None
    source: str
    ends: str
    has_ended: bool
    is_mine: bool
    logins: tuple[LoginLine, ...]
    rotate_url: str
    revoke_url: str


class AccountCard(NamedTuple):
    """An account with its keys."""

    name: str
    since: str
    keys: tuple[KeyLine, ...]


async def show(visit: Visit) -> Answer:
    """Show the accounts that the viewer may see, with their keys."""
    return await _page(visit)


async def _page(
    visit: Visit, filled: Filled[NewKey] | None = None, account: Filled[NewAccount] | None = None
) -> Page:
    accounts = await _accounts(visit)
    logins = {each.id: visit.services.logins.all(each.id) for each in accounts}
    keys: dict[int, list[ApiKey]] = defaultdict(list)
    for key in visit.services.access.all():
        keys[key.account_id].append(key)
    values = {
        "accounts": [_card(visit, each, keys[each.id], logins[each.id]) for each in accounts],
        "filled": filled,
        "new_account": account,
        "rights": [(each, visit.t(f"keys.rights.{each}")) for each in SCOPES],
        "days": [(code, visit.t(f"keys.days.{code or 'none'}")) for code in LIVES],
        "account_names": [each.name for each in accounts],
        "owns": visit.viewer.is_owner,
    }
    status = 200 if filled is None and account is None else 422
    return Page("keys.html", visit.t("keys.title"), values, menu="more", status=status)


async def _accounts(visit: Visit) -> list[Account]:
    """Return the viewer's account, or all accounts for the owner, whose own comes first."""
    accounts = await visit.store.accounts.all()
    if visit.viewer.is_owner:
        return accounts
    return [each for each in accounts if each.id == visit.viewer.account_id]


def _card(visit: Visit, account: Account, keys: list[ApiKey], logins: list[Login]) -> AccountCard:
    by_key: dict[bytes, list[Login]] = defaultdict(list)
    for login in logins:
        by_key[login.key.sha256].append(login)
    lines = tuple(_line(visit, account, key, by_key[key.sha256]) for key in keys)
    return AccountCard(account.name, visit.words.date(account.created_at), lines)


def _line(visit: Visit, account: Account, key: ApiKey, logins: list[Login]) -> KeyLine:
    words, current = visit.words, visit.viewer.login
    times = [time for time in (key.last_used_at, *(login.seen_at for login in logins)) if time]
    which = {"account": account.name, "name": key.name}
    return KeyLine(
        name=key.name,
        shown=key.shown,
        rights=_rights(visit, key),
        used=words.ago(max(times)) if times else None,
        source=key.last_source,
        ends="" if key.expires_at is None else words.moment(key.expires_at),
        has_ended=key.has_ended(visit.now),
        is_mine=current is not None and current.key.sha256 == key.sha256,
        logins=tuple(login_line(visit, login) for login in logins),
        # Not for a replaced key, because both go by one name, and the new one is revoked with it.
        rotate_url="" if key.replaced else visit.url("keys.rotate.ask", query=which),
        revoke_url="" if key.replaced else visit.url("keys.revoke.ask", query=which),
    )


def _rights(visit: Visit, key: ApiKey) -> str:
    if key.device:
        return visit.t("keys.for_device", device=key.device)
    held: list[Rights] = []
    if key.allows("admin"):
        held = ["change"]
    else:
        held = [each for each in ("look", "report") if SCOPES[each] <= key.scopes]
    return ", ".join(visit.t(f"keys.rights.{each}") for each in held)


async def add(visit: Visit) -> Answer:
    """Make a key, and show it once."""
    filled = visit.read(NewKey)
    if filled.value is None:
        return await _page(visit, filled)
    wanted = filled.value
    account = await _account(visit, wanted.account)
    days = LIVES[wanted.days]
    ends = None if days is None else int(visit.now) + days * DAY_S
    scopes = SCOPES[wanted.rights]  # type: ignore[index]
    try:
        text = await visit.services.access.add(wanted.name, scopes, account.name, expires_at=ends)
    except NameTaken:
        filled.wrong("name", "keys.name_taken")
        return await _page(visit, filled)
    return _made(visit, wanted.name, text, logs_in=wanted.rights != "report")


async def log_phone_in(visit: Visit) -> Answer:
    """Make a key for a phone with a free name, and show it once as a QR code."""
    taken = {key.name for key in visit.services.access.all() if key.account_id == visit.viewer.account_id}
    numbered = (f"{PHONE} {number}" for number in range(2, len(taken) + 3))
    name = PHONE if PHONE not in taken else next(name for name in numbered if name not in taken)
    account = await _account(visit, "")
    rights: Rights = "change" if visit.fields.get("rights") == "change" else "look"
    text = await visit.services.access.add(name, SCOPES[rights], account.name)
    return _made(visit, name, text, logs_in=True)


def _made(visit: Visit, name: str, text: str, *, logs_in: bool) -> Page:
    address = own_address(visit)
    code: QrCode | None = (
        as_path(f"{address}{visit.own_path('login')}#{text}") if logs_in and address else None
    )
    values = {"name": name, "key": text, "code": code, "logs_in": logs_in, "address": address}
    return Page("key_made.html", visit.t("keys.made", name=name), values, menu="more")


async def ask_to_revoke(visit: Visit) -> Answer:
    """Ask before a key is revoked."""
    account, key = await _chosen(visit)
    number = sum(login.key.sha256 == key.sha256 for login in visit.services.logins.all(account.id))
    explain = visit.t("keys.revoke.explain")
    if number:
        explain = f"{explain} {visit.t('keys.revoke.logins', n=number)}"
    if _is_mine(visit, key):
        explain = f"{explain} {visit.t('keys.revoke.mine')}"
    return _asked(visit, "keys.revoke", key, explain)


async def revoke(visit: Visit) -> Answer:
    """Revoke a key, with its logins."""
    account, key = await _chosen(visit)
    mine = _is_mine(visit, key)
    await visit.services.access.revoke(key.name, account.name)
    if mine:
        return Moved(visit.url("login"))
    return Moved(visit.url("keys"), visit.t("keys.revoked", name=key.name))


async def ask_to_rotate(visit: Visit) -> Answer:
    """Ask before a key is replaced by a new one."""
    _, key = await _chosen(visit)
    return _asked(visit, "keys.rotate", key, visit.t("keys.rotate.explain"))


async def rotate(visit: Visit) -> Answer:
    """Make a new key in place of another, which is valid for one more day; show it once."""
    account, key = await _chosen(visit)
    text = await visit.services.access.rotate(key.name, OVERLAP_S, account.name)
    return _made(visit, key.name, text, logs_in=key.allows("read") and not key.device)


def _asked(visit: Visit, name: str, key: ApiKey, explain: str) -> Page:
    title = visit.t(f"{name}.title")
    values = {
        "question": visit.t(f"{name}.ask", name=key.name),
        "explain": explain,
        "action": visit.url(name, query=dict(visit.query)),
        "button": title,
        "back": visit.url("keys"),
    }
    return Page("confirm.html", title, values, menu="more")


async def _chosen(visit: Visit) -> tuple[Account, ApiKey]:
    """Return the account and the key that the address names."""
    account = await _account(visit, visit.query.get("account", ""))
    wanted = (account.id, visit.query.get("name", ""))
    keys = [key for key in visit.services.access.all() if (key.account_id, key.name) == wanted]
    if not keys:
        raise NotFound(visit.t("keys.no_key"))
    return account, min(keys, key=lambda key: key.replaced)


async def _account(visit: Visit, name: str) -> Account:
    """Return the viewer's own account, or the one that the owner names."""
    accounts = await _accounts(visit)
    own = next(each for each in accounts if each.id == visit.viewer.account_id)
    found = own if not name else next((each for each in accounts if each.name == name), None)
    if found is None:
        raise NotFound(visit.t("keys.no_account"))
    return found


def _is_mine(visit: Visit, key: ApiKey) -> bool:
    login = visit.viewer.login
    own = None if login is None else (login.key.account_id, login.key.name)
    return own == (key.account_id, key.name)


async def add_account(visit: Visit) -> Answer:
    """Make an account, without a key yet."""
    if visit.viewer.account_id != OWNER_ID:
        raise Forbidden(visit.t("error.owner"))
    filled = visit.read(NewAccount)
    if filled.value is not None:
        try:
            made = await visit.services.access.add_account(filled.value.account_name)
        except NameTaken:
            filled.wrong("account_name", "keys.account_taken")
        else:
            return Moved(visit.url("keys"), visit.t("keys.account_made", name=made.name))
    return await _page(visit, account=filled)


ROWS = (
    Row("GET", "/keys", show, "keys", "Accounts, keys, logins", "admin"),
    Row("POST", "/keys", add, "keys.add", "Make a key", "admin", no_store=True),
    Row("POST", "/keys/phone", log_phone_in, "keys.phone", "Log in a phone", "admin", no_store=True),
    Row("GET", "/keys/revoke", ask_to_revoke, "keys.revoke.ask", "Ask before a key is revoked", "admin"),
    Row("POST", "/keys/revoke", revoke, "keys.revoke", "Revoke a key", "admin"),
    Row("GET", "/keys/rotate", ask_to_rotate, "keys.rotate.ask", "Ask before a key is replaced", "admin"),
    Row("POST", "/keys/rotate", rotate, "keys.rotate", "Replace a key", "admin", no_store=True),
    Row("POST", "/keys/accounts", add_account, "keys.accounts", "Make an account", "admin", owner_only=True),
)
