"""Checksums of readings: written with every reading, never made anew for damage, seen before forwarding."""

import json
import logging
import sqlite3
from pathlib import Path

import pytest

from gateway.clock import SystemClock
from gateway.domain.device import Device
from gateway.errors import DriverError
from gateway.intake.replay import payload_of
from gateway.services.build import build_services
from gateway.store.sqlite import upkeep
from gateway.store.sqlite.damaged import CHANNEL
from gateway.store.sqlite.engine import checksum, schema
from gateway.store.sqlite.engine.connections import open_writer
from gateway.store.sqlite.engine.schema import migrate, migrations
from gateway.store.sqlite.store import SqliteStore
from tests.system.store.conftest import SECOND, arrival, in_session, new_session, reading, report

TARGET = "http://cloud"
DAMAGED = f"SELECT count(*) FROM readings WHERE NOT {checksum.intact_sql()}"  # noqa: S608


async def damaged(store: SqliteStore) -> int:
    async with store._database.reader() as reader:
        count: int = await reader.run(lambda connection: connection.execute(DAMAGED).fetchone()[0])
    return count


async def behind_the_back(store: SqliteStore, sql: str) -> None:
    """What a flipped bit does: the row changes, its checksum does not."""
    await store._writer.run(lambda connection: connection.execute(sql) and None)


async def forwarded_session(store: SqliteStore, readings: int) -> int:
    session = await new_session(store, upstream_id=7)
    device = await store.devices.save(Device.first_seen(report(), SECOND))
    await store.devices.assign(device.id, session.id, None)
    await store.readings.add(
        [arrival(f"n{number}", at=SECOND + number, raw=b"raw") for number in range(readings)]
    )
    return session.id


async def test_every_way_of_storing_writes_the_checksum(store: SqliteStore) -> None:
    session = await new_session(store, upstream_id=7)
    other = await new_session(store)
    device = await store.devices.save(Device.first_seen(report(), SECOND))
    await store.readings.add([arrival("früh", raw=b"\xff\0"), arrival(at=SECOND + 1)])
    assert await store.devices.assign(device.id, session.id, 0) == 2
    await store.readings.add([arrival(at=SECOND + n) for n in range(2, 70)])
    known = reading("imported", extra='{"ph":"5.1"}')
    await store.readings.import_readings(session, [known, known, reading()], reset=False)
    await store.readings.import_readings(other, [known, reading()], reset=False)  # its id is given anew
    await store.readings.add_mirrored(other, [reading(), known])
    page = await store.payloads.page(device.id, (0, 0), 100)
    assert len(page) == 70
    await store.payloads.rewrite(
        [(sent.seq, sent.reading._replace(gravity="", shown_gravity="1.05ü")) for sent in page]
    )
    await store.payloads.add_flag(page[0].reading.oid, "jump")
    assert await store.payloads.send_again(device.id, SECOND) == 70
    assert await store.readings.count() == 75
    assert await damaged(store) == 0


@pytest.mark.parametrize("name", ["oid", "session_id", "raw", *checksum.MEMBERS])
async def test_a_change_of_any_covered_value_is_seen(store: SqliteStore, name: str) -> None:
    await forwarded_session(store, 2)
    await new_session(store)
    value = {"oid": "randomblob(12)", "session_id": "2", "raw": "X'726177ff'"}.get(
        name, f"coalesce({name}, '')||'7'"
    )
    await behind_the_back(store, f"UPDATE readings SET {name} = {value} WHERE seq = 1")  # noqa: S608
    assert await damaged(store) == 1


async def test_a_damaged_reading_is_not_forwarded_and_its_neighbours_are(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    session_id = await forwarded_session(store, 5)
    await behind_the_back(store, "UPDATE readings SET gravity = '1.0510' WHERE seq IN (2, 5)")
    with caplog.at_level(logging.WARNING):
        batch = await store.outbox.begin(TARGET, session_id, 5)
    assert batch is not None
    assert [json.loads(row)["name"] for row in batch.rows] == ["n0", "n2", "n3"]
    await store.outbox.settle(batch)
    items = await store.quarantine.newest(10)
    assert [json.loads(item.body)["damaged_reading"]["name"] for item in items] == ["n1", "n4"]
    assert {item.channel for item in items} == {CHANNEL}
    assert (await store.upkeep.condition()).damaged == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert await store.outbox.begin(TARGET, session_id, 5) is None
    assert await store.outbox.backlogs(TARGET) == []


async def test_a_batch_of_nothing_but_damage_does_not_stop_the_queue(store: SqliteStore) -> None:
    session_id = await forwarded_session(store, 5)
    await behind_the_back(store, "UPDATE readings SET temp = '0' WHERE seq < 5")
    batch = await store.outbox.begin(TARGET, session_id, 2)
    assert batch is not None
    assert batch.seqs == (5,)


async def test_invalid_utf8_is_damage_like_any_other(store: SqliteStore) -> None:
    session_id = await forwarded_session(store, 3)
    await behind_the_back(store, "UPDATE readings SET name = CAST(X'6eff31' AS TEXT) WHERE seq = 2")
    (session,) = await store.sessions.all()
    assert len(json.loads(b"[" + await in_session(store, session) + b"]")) == 3  # the others stay readable
    batch = await store.outbox.begin(TARGET, session_id, 5)
    assert batch is not None
    assert batch.seqs == (1, 3)
    (item,) = await store.quarantine.newest(1)
    assert json.loads(item.body)["damaged_reading"]["name"] == "6eff31"


async def test_a_damaged_key_is_no_reason_to_give_up_the_file(store: SqliteStore) -> None:
    session_id = await forwarded_session(store, 3)
    await behind_the_back(store, "PRAGMA writable_schema = ON")
    async with store._database.reader() as reader:
        sql = await reader.run(
            lambda c: c.execute("SELECT rowid, sql FROM sqlite_schema WHERE name = 'readings_oid'").fetchone()
        )
    await _without_index(store, sql[1], "UPDATE readings SET oid = randomblob(12) WHERE seq = 2")
    batch = await store.outbox.begin(TARGET, session_id, 5)
    assert batch is not None
    assert batch.seqs == (1, 3)
    assert len(await store.quarantine.newest(5)) == 1
    await store.outbox.settle(batch)
    assert await store.upkeep.scrub(0) is None
    assert len(await store.quarantine.newest(5)) == 1


async def _without_index(store: SqliteStore, index: str, change: str) -> None:
    """Change a row so that an index does not notice, by taking its entry out of the schema for that long."""

    def work(connection: sqlite3.Connection) -> None:
        row = connection.execute("SELECT * FROM sqlite_schema WHERE name = 'readings_oid'").fetchone()
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'readings_oid'")
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        connection.execute(f"PRAGMA schema_version = {version + 1}")
        connection.execute(change)
        connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)
        connection.execute(f"PRAGMA schema_version = {version + 2}")
        connection.execute("PRAGMA writable_schema = OFF")

    await store._writer.run(work)


async def test_what_is_understood_anew_does_not_make_damage_look_sound(store: SqliteStore) -> None:
    await forwarded_session(store, 2)
    await behind_the_back(store, "UPDATE readings SET beer = 'Stout' WHERE seq = 1")
    page = await store.payloads.page(1, (0, 0), 10)
    await store.payloads.rewrite([(sent.seq, sent.reading._replace(gravity="1.0")) for sent in page])
    assert await damaged(store) == 1
    assert [sent.reading.gravity for sent in await store.payloads.page(1, (0, 0), 10)] == ["1.0410", "1.0"]


async def test_the_scrub_finds_damage_that_nobody_forwards(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "SCRUB_ROWS", 2)
    monkeypatch.setattr(upkeep, "SCRUBBED", upkeep.SCRUBBED.replace("LIMIT 200", "LIMIT 2"))
    await store.devices.save(Device.first_seen(report(), SECOND))
    await store.readings.add([arrival(at=SECOND + number) for number in range(5)])
    await behind_the_back(store, "UPDATE readings SET raw = X'00' WHERE seq = 4")
    assert await store.upkeep.scrub(0) == 2
    assert await store.upkeep.scrub(2) == 4
    assert await store.upkeep.scrub(4) is None
    assert await store.readings.count() == 4
    assert [item.label for item in await store.quarantine.newest(5)] == ["reading 4"]


async def test_replay_does_not_take_damage_for_a_delivery(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    await store.keys.owner(SECOND)
    await forwarded_session(store, 1)
    await behind_the_back(store, "UPDATE readings SET gravity = '1.0510'")
    await store.upkeep.scrub(0)
    (item,) = await store.quarantine.newest(1)
    services = build_services(store, tmp_path, SystemClock())
    with pytest.raises(DriverError):
        services.intake.decode(payload_of(item))
    await store.close()


def test_the_migration_gives_every_reading_its_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations()
    with monkeypatch.context() as past:
        past.setattr(schema, "migrations", lambda: known[:3])
        connection = open_writer(tmp_path / "db")
        migrate(connection)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(
        "INSERT INTO readings (oid, session_id, device_id, received_at, created_at, name, gravity,"
        " gravity_unit, temp, temp_unit, comment, beer, interval, source, ip, extra, raw) VALUES"
        " (randomblob(12), 3, 1, 1, 1, 'ä', '1.05', 'G', '', 'C', '', '', '', 's', '', '{}', X'00ff'),"
        " (randomblob(12), NULL, NULL, 1, 1, 'b', '', 'G', '20', 'C', '', '', '', 's', '', NULL, NULL)"
    )
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection)
    assert connection.execute(DAMAGED).fetchone() == (0,)
    connection.execute("UPDATE readings SET session_id = NULL WHERE session_id = 3")
    assert connection.execute(DAMAGED).fetchone() == (1,)
    connection.close()
