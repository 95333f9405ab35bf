"""Logins: they die with their key, survive a restart, are bounded, and keep what the viewer chose."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.audit import FIRST_LOGIN, WRONG_KEY, acting, page_actor
from gateway.errors import Forbidden, InvalidInput, NotFound, RateLimited, StoreUnavailable, Unauthorized
from gateway.network import Peer
from gateway.services import logins as module
from gateway.services.access import INGEST_ONLY, Access
from gateway.services.logins import DAY_S, LIFE_S, LOGINS_PER_KEY, WRONG_BURST, Logins
from gateway.store.sqlite.store import SqliteStore
from tests.cases import each
from tests.clock import FakeClock

PHONE = Peer("192.168.1.5")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path)
    await store.open()
    yield store
    await store.close()


class Bench:
    """The services on one store; `restart` makes them anew, as a crash does."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.clock = FakeClock()

    async def restart(self) -> None:
        self.access = Access(self.store, self.clock)
        await self.access.start()
        self.logins = Logins(self.store, self.access, self.clock)
        await self.logins.start()

    def stored(self) -> list[tuple[object, ...]]:
        with sqlite3.connect(self.store._database.path) as connection:
            return connection.execute("SELECT sha256, seen_at, agent, preferences FROM logins").fetchall()


@pytest.fixture
async def bench(store: SqliteStore) -> Bench:
    bench = Bench(store)
    await bench.restart()
    return bench


async def test_a_login_survives_a_restart_and_its_secret_is_stored_nowhere(bench: Bench) -> None:
    key = await bench.access.add("phone")
    secret, login = await bench.logins.log_in(f" {key}\n", PHONE, "Firefox\0 \ud800on\x1b a phone")
    assert login.key.name == "phone"
    assert len(secret) >= 43, "256 bits"
    assert bench.logins.find(secret) == login
    assert bench.logins.find("") is bench.logins.find(secret[:-1]) is bench.logins.find("\udcff") is None
    await bench.restart()
    again = bench.logins.find(secret)
    assert again is not None
    assert (again.id, again.agent) == (login.id, "Firefox on a phone")
    (row,) = bench.stored()
    assert secret.encode() not in repr(row).encode()
    assert key not in repr(row)


async def test_a_login_dies_with_its_key(bench: Bench) -> None:
    revoked, _ = await bench.logins.log_in(await bench.access.add("lost"), PHONE, "")
    rotated, _ = await bench.logins.log_in(await bench.access.add("old"), PHONE, "")
    soon = int(bench.clock.now()) + 60
    expiring, _ = await bench.logins.log_in(await bench.access.add("guest", expires_at=soon), PHONE, "")
    await bench.access.revoke("lost")
    await bench.access.rotate("old", DAY_S)
    assert bench.logins.find(revoked) is None
    assert bench.logins.find(rotated) is not None, "the old key is valid for a day"
    bench.clock.advance(60)
    assert bench.logins.find(expiring) is None
    bench.clock.advance(DAY_S)
    assert bench.logins.find(rotated) is None
    assert bench.logins.all(1) == []
    await bench.restart()
    assert [bench.logins.find(secret) for secret in (revoked, rotated, expiring)] == [None] * 3


async def test_ninety_days_without_a_visit_end_a_login_and_a_visit_is_written_once_a_day(
    bench: Bench,
) -> None:
    secret, login = await bench.logins.log_in(await bench.access.add("phone"), PHONE, "")
    writes: list[object] = []
    note_visits = bench.store.logins.note_visits

    async def counted(visits: dict[int, int]) -> None:
        writes.append(visits)
        await note_visits(visits)

    bench.store.logins.note_visits = counted  # type: ignore[method-assign, assignment]
    for _ in range(48):
        bench.clock.advance(DAY_S / 24)
        assert bench.logins.find(secret) is not None
        await bench.logins.note()
    assert len(writes) == 2
    for _ in range(3):
        bench.clock.advance(LIFE_S - DAY_S)
        assert bench.logins.find(secret) is not None
        await bench.logins.note()
        await bench.restart()
    bench.clock.jump(-LIFE_S * 9)  # a Raspberry Pi before it has asked for the time
    assert bench.logins.find(secret) is not None
    bench.clock.jump(LIFE_S * 9)
    assert bench.logins.find(secret) is not None, "a wrong clock has ended it"
    bench.clock.advance(LIFE_S + 1)
    assert bench.logins.find(secret) is None
    await bench.logins.log_in(await bench.access.add("other"), PHONE, "")
    assert [row[0] for row in bench.stored()] != [login.sha256]
    assert len(bench.stored()) == 1, "logins that are over stay for ever"


@each(
    "rights, why",
    [({"scopes": INGEST_ONLY}, "for devices"), ({"scopes": INGEST_ONLY, "device": "red"}, "for one device")],
)
async def test_a_key_for_devices_opens_no_page(bench: Bench, rights: dict[str, object], why: str) -> None:
    key = await bench.access.add(why, **rights)  # type: ignore[arg-type]
    for _ in range(20):  # a right key: no limit
        with pytest.raises(Forbidden, match=why):
            await bench.logins.log_in(key, PHONE, "")


@each("peer", [PHONE, Peer("127.0.0.1"), Peer("2001:db8::1"), Peer("10.0.0.1", forwarded=True)])
async def test_wrong_keys_are_limited_and_a_right_one_always_passes(bench: Bench, peer: Peer) -> None:
    key = await bench.access.add(f"key of {peer}")
    waits = []
    for _ in range(7):
        try:
            await bench.logins.log_in("hg_wrong", peer, "")
        except RateLimited as error:
            waits.append(error.retry_after_s)
        except Unauthorized:
            waits.append(0)
    assert [wait > 0 for wait in waits] == [False] * int(WRONG_BURST) + [True] * 2
    assert 11 < waits[-1] <= 12
    await bench.logins.log_in(key, peer, "")
    bench.clock.advance(12)
    with pytest.raises(Unauthorized):
        await bench.logins.log_in("hg_wrong", peer, "")
    await bench.access.note()
    assert WRONG_KEY in {row.verb for row in await bench.store.audit.page(limit=50)}


async def test_a_key_has_a_hundred_logins_at_most(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LOGINS_PER_KEY == 100
    monkeypatch.setattr(module, "LOGINS_PER_KEY", 3)
    key, other = await bench.access.add("phone"), await bench.access.add("other")
    secrets = [(await bench.logins.log_in(key, PHONE, str(number)))[0] for number in range(3)]
    kept, _ = await bench.logins.log_in(other, PHONE, "")
    bench.clock.advance(5)
    bench.logins.find(secrets[0])
    secrets.append((await bench.logins.log_in(key, PHONE, "3"))[0])
    for _ in range(2):
        alive = [bench.logins.find(secret) is not None for secret in (*secrets, kept)]
        assert alive == [True, False, True, True, True], "not the one that was quiet longest"
        await bench.restart()


async def test_choices_go_from_login_to_login_of_a_key(bench: Bench) -> None:
    key = await bench.access.add("phone")
    secret, login = await bench.logins.log_in(key, PHONE, "", zone="Europe/Oslo")
    await bench.logins.prefer(login.id, language="de", gravity_unit="P")
    await bench.logins.prefer(login.id, gravity_unit="")
    chosen = {"language": "de", "zone": "Europe/Oslo"}
    _, second = await bench.logins.log_in(key, PHONE, "", zone="Asia/Tokyo")
    assert second.preferences == chosen, "a browser's zone goes before a chosen one"
    await bench.logins.log_out_all(1)
    assert bench.logins.find(secret) is None
    await bench.restart()
    assert bench.logins.all(1) == []
    rotated = await bench.access.rotate("phone", 0)
    _, third = await bench.logins.log_in(rotated, PHONE, "")
    assert third.preferences == chosen, "logging out has lost what was chosen"
    _, other = await bench.logins.log_in(await bench.access.add("other"), PHONE, "")
    assert other.preferences == {}
    for wrong in ({"colour": "red"}, {"zone": "x" * 65}, {"zone": "\0"}):
        with pytest.raises(InvalidInput):
            await bench.logins.prefer(third.id, **wrong)
    with pytest.raises(NotFound):
        await bench.logins.prefer(4711, language="de")


async def test_who_logged_in_and_out_stands_in_the_audit_log(bench: Bench) -> None:
    anna = await bench.access.add_account("anna")
    key = await bench.access.add("phone")
    hers, _ = await bench.logins.log_in(await bench.access.add("phone", account="anna"), PHONE, "")
    _, login = await bench.logins.log_in(key, PHONE, "Firefox")
    await bench.logins.log_in(key, PHONE, "")
    with acting(page_actor("phone", 1, PHONE.source)):
        await bench.logins.log_out(login.id)
        await bench.logins.log_out(login.id)
        await bench.logins.log_out_all(1)
    await bench.access.note()
    rows = [
        (row.actor, row.source, row.verb, row.object, row.detail)
        for row in await bench.store.audit.page(limit=50)
        if row.verb in {FIRST_LOGIN, "log out"}
    ]
    assert rows == [
        (f"page:phone of account {anna.id}", PHONE.address, FIRST_LOGIN, "key:phone", "from 192.168.1.5"),
        ("page:phone", PHONE.address, FIRST_LOGIN, "key:phone", "from 192.168.1.5"),
        ("page:phone", PHONE.address, "log out", f"login:{login.id}", "Firefox"),
        ("page:phone", PHONE.address, "log out", "login:3", "all 1 of account 1"),
    ]
    assert bench.logins.find(hers) is not None
    assert [login.key.account_id for login in bench.logins.all(anna.id)] == [anna.id]


async def test_without_a_commit_nobody_is_in_and_nobody_is_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await bench.access.add("phone")
    secret, login = await bench.logins.log_in(key, PHONE, "")

    async def full(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(bench.store._writer, "run", full)
    for attempt in (
        bench.logins.log_in(key, PHONE, ""),
        bench.logins.log_out(login.id),
        bench.logins.prefer(login.id, language="de"),
    ):
        with pytest.raises(StoreUnavailable):
            await attempt
    assert [found.id for found in bench.logins.all(1)] == [login.id]
    found = bench.logins.find(secret)
    assert found is not None
    assert found.preferences == {}


async def test_a_damaged_row_does_not_stop_the_start(bench: Bench) -> None:
    key = await bench.access.add("phone")
    await bench.logins.log_in(key, PHONE, "")
    for text in ("not JSON", "[1]", '{"language": 7}'):
        with sqlite3.connect(bench.store._database.path) as connection:
            connection.execute("UPDATE logins SET preferences = ?", (text,))
        await bench.restart()
        assert [login.preferences for login in bench.logins.all(1)] == [{}]
    _, login = await bench.logins.log_in(key, PHONE, "")
    assert login.preferences == {}
