"""The audit log: a row and its change are one transaction, noise pushes out no fact, and all is bounded."""

import sqlite3
from dataclasses import replace
from functools import partial

import pytest

from gateway.domain.audit import FIRST_LOGIN, WRONG_KEY, Actor, AuditEntry, acting
from gateway.domain.device import Device, DeviceSettings
from gateway.domain.key import ALL_SCOPES, ApiKey
from gateway.errors import NameTaken
from gateway.store.protocol import Store
from gateway.store.sqlite import audit
from gateway.store.sqlite import keys as sqlite_keys
from gateway.store.sqlite.store import SqliteStore
from tests.system.store.conftest import SECOND, report
from tests.system.store.test_together import refuse

KEY = ApiKey("phone", 1, "hg_phone", b"1" * 32, frozenset({"read"}), SECOND)
HOUR = SECOND // 3600 * 3600


async def verbs(store: Store, about: str = "") -> list[str]:
    return [f"{row.verb} {row.object}" for row in await store.audit.page(about=about, limit=100)]


async def test_a_change_and_its_row_are_one_transaction(store: SqliteStore) -> None:
    with acting(Actor("key:phone", "192.168.1.5")):
        await store.keys.add(KEY)
    await store.accounts.add("anna", SECOND)
    first, second = await store.audit.page(limit=10)
    assert (first.actor, first.source, first.verb, first.object) == (
        "key:phone", "192.168.1.5", "add", "key:phone",
    )  # fmt: skip
    assert (second.actor, second.source, second.object) == ("system", "", "account:anna")
    with pytest.raises(NameTaken):
        await store.keys.add(replace(KEY, sha256=b"2" * 32))
    assert not await store.keys.revoke(1, "nobody", SECOND)
    assert len(await store.audit.page(limit=10)) == 2, "a change that was refused has a row"
    await refuse(store, "audit")
    with pytest.raises(sqlite3.IntegrityError):
        await store.keys.revoke(1, "phone", SECOND)
    assert [key.name for key in await store.keys.active()] == ["phone"], "a change without its row"


async def test_the_verb_follows_from_the_settings_that_differ(store: Store) -> None:
    saved = await store.devices.save(Device.first_seen(report(), SECOND))
    settings = DeviceSettings(label="vat")
    for changed in (
        settings,
        settings,
        replace(settings, excluded=((1, 2),)),
        settings,
        replace(settings, calibration=replace(settings.calibration, gravity_offset=0.001)),
    ):
        await store.devices.configure(replace(saved, settings=changed))
    assert await verbs(store) == [f"{verb} device:1" for verb in ("set", "exclude", "include", "calibrate")]
    assert (await store.audit.page(limit=9))[0].detail == 'label: none -> "vat"'


async def test_noise_pushes_out_no_fact_and_all_is_bounded(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "ROWS", 5)
    monkeypatch.setattr(audit, "WRONG_KEY_ROWS", 3)
    for number in range(7):
        await store.audit.add(AuditEntry("backup", f"backup:{number}"))
    await store.audit.count_wrong_keys([(f"10.0.0.{number}", SECOND, 2) for number in range(20)])
    kept = await store.audit.page(limit=100)
    assert [row.object for row in kept if row.verb != WRONG_KEY] == [f"backup:{n}" for n in range(2, 7)]
    assert [row.source for row in kept if row.verb == WRONG_KEY] == [f"10.0.0.{n}" for n in (17, 18, 19)]


async def test_wrong_keys_have_one_row_a_source_and_hour(store: Store) -> None:
    for at, times in ((HOUR + 1, 2), (HOUR + 3599, 3), (HOUR + 3600, 5)):
        await store.audit.count_wrong_keys([("10.0.0.9", at, times)])
    await store.audit.count_wrong_keys([("10.0.0.8", HOUR + 3600, 1)])
    found = [(row.source, row.at - HOUR, row.times) for row in await store.audit.page(limit=9)]
    assert found == [("10.0.0.9", 1, 5), ("10.0.0.9", 3600, 5), ("10.0.0.8", 3600, 1)]


async def test_rows_of_an_object_or_a_kind_or_a_time(store: Store) -> None:
    for named in ("device:1", "device:12", "devices:1", "key:1"):
        await store.audit.add(AuditEntry("set", named))
    assert await verbs(store, "device:1") == ["set device:1"]
    assert await verbs(store, "device") == ["set device:1", "set device:12"]
    [row] = await store.audit.page(limit=1)
    assert row.object == "key:1", "the newest is kept"
    assert await store.audit.page(since=row.at + 60, limit=9) == []
    await store.audit.prune(row.at + (audit.KEPT_DAYS - 1) * audit.DAY_S)
    assert len(await store.audit.page(limit=9)) == 4
    await store.audit.prune(row.at + audit.KEPT_DAYS * audit.DAY_S + 1)
    assert await store.audit.page(limit=9) == []


async def test_options_that_differ_from_the_last_start(store: Store) -> None:
    await store.audit.note_options({"port": "8080", "host": ""})
    await store.audit.note_options({"port": "8080", "host": ""})
    assert await store.audit.page(limit=9) == [], "the first start differs from nothing"
    await store.audit.note_options({"port": "8081", "tcp_port": "9501"})
    [row] = await store.audit.page(limit=9)
    assert row.detail == "host:  -> default; port: 8080 -> 8081; tcp-port: default -> 9501"


async def test_last_uses_and_first_logins(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_keys, "SOURCES_PER_KEY", 2)
    await store.keys.add(KEY)
    await store.keys.note_uses({KEY.sha256: {"10.0.0.1": SECOND + 1, "10.0.0.2": SECOND + 2}})
    await store.keys.note_uses({KEY.sha256: {"10.0.0.1": SECOND + 60}, b"gone": {"10.0.0.1": SECOND}})
    [key] = await store.keys.active()
    assert (key.last_used_at, key.last_source) == (SECOND + 60, "10.0.0.1")
    logins = [row for row in await store.audit.page(limit=9) if row.verb == FIRST_LOGIN]
    assert [(row.actor, row.source, row.at) for row in logins] == [
        ("key:phone", "10.0.0.1", SECOND + 1),
        ("key:phone", "10.0.0.2", SECOND + 2),
    ]
    await store.keys.note_uses({KEY.sha256: {"10.0.0.3": SECOND + 61}})
    await store.keys.note_uses({KEY.sha256: {"10.0.0.2": SECOND + 62}})  # forgotten: 10.0.0.1 was later
    assert len(await verbs(store, "key")) == 1 + 2 + 2


async def test_a_damaged_list_of_addresses_costs_the_list_alone(store: SqliteStore) -> None:
    await store.keys.add(KEY)

    def damage(text: str, connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE keys SET sources = ?", (text,))

    for damaged in ('["10.0.', "5", ""):
        await store._writer.run(partial(damage, damaged))
        assert (await store.keys.active())[0].last_source == ""
        await store.keys.note_uses({KEY.sha256: {"10.0.0.1": SECOND}})
        assert (await store.keys.active())[0].last_source == "10.0.0.1"


async def test_a_rotated_key_and_the_new_one_are_stored_together(store: SqliteStore) -> None:
    await store.keys.add(KEY)
    new = replace(KEY, sha256=b"2" * 32, scopes=ALL_SCOPES)
    await refuse(store, "keys")
    with pytest.raises(NameTaken):
        await store.keys.rotate(replace(KEY, expires_at=SECOND + 60, replaced=True), new)
    assert await store.keys.active() == [KEY]
    await store._writer.run(lambda connection: connection.execute("DROP TRIGGER no") and None)
    old = replace(KEY, expires_at=SECOND + 60, replaced=True)
    await store.keys.rotate(old, new)
    assert await store.keys.active() == [old, new]
    assert await store.keys.revoke(1, "phone", SECOND)
    assert await store.keys.active() == [], "the replaced key goes with the name"
