"""Which readings are left out of curves: the column follows the flags, whoever writes them."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import gateway
from gateway.domain.device import Device
from gateway.intake import calibration, normalise, outliers
from gateway.store.records import BootTime, PendingRetime
from gateway.store.sqlite.engine import schema
from gateway.store.sqlite.engine.connections import PAGE_BYTES, open_writer
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.engine.schema import migrate, migrations
from gateway.store.sqlite.store import SqliteStore
from tests.cases import each
from tests.system.store.conftest import SECOND, arrival, new_session, reading, report
from tests.system.store.damage import repaired

LEFT_OUT = {
    "excluded": True,
    "gravity_missing": True,
    "gravity_out_of_range": True,
    "gravity_rate": True,
    "gravity_spike": True,
    "gravity_stale": True,
    "gravity_zero": True,
    "krausen_bump": True,
    "test_send": True,
    "angle_may_be_gravity": False,
    "angle_zero": False,
    "calibration_out_of_range": False,
    "clock_corrected": False,
    "clock_estimated": False,
    "clock_suspect": False,
    "comment_repeated": False,
    "temp_out_of_range": False,
    "temp_sensor_fault": False,
}
"""Every flag there is, and whether it leaves a reading out."""

SPIKE, REPEATED = json.dumps(["clock_suspect", "gravity_spike"]), json.dumps(["comment_repeated"])


async def left_out(store: SqliteStore) -> list[int | None]:
    """The column, by time."""
    async with store._database.reader() as reader:
        rows = await reader.run(
            lambda c: c.execute("SELECT left_out FROM readings ORDER BY created_at, seq").fetchall()
        )
    return [value for (value,) in rows]


def test_the_table_above_has_every_flag() -> None:
    """Those that drivers append, those of their cases, and the names of the others."""
    package = Path(gateway.__file__).parent
    found: set[str] = set()
    for path in [*package.glob("drivers/*.py"), *package.glob("intake/*.py")]:
        found |= set(re.findall(r'flags\.append\("(\w+)"\)', path.read_text()))
        found |= set(re.findall(r'"(\w+_out_of_range|excluded|temp_sensor_fault)"', path.read_text()))
    for path in (Path(__file__).parents[2] / "pure/drivers/cases").rglob("*.json"):
        for flags in re.findall(r'"flags": \[([^]]*)\]', path.read_text()):
            found |= set(re.findall(r"\w+", flags))
    found |= {*normalise.ARRIVAL_FLAGS, normalise.TEST_SEND, calibration.OUT_OF_RANGE}
    found |= {outliers.SPIKE, outliers.RATE, outliers.BUMP}
    assert found == LEFT_OUT.keys()


async def test_every_flag_of_a_device(store: SqliteStore) -> None:
    await store.devices.save(Device.first_seen(report(), SECOND))
    flags = [json.dumps([flag]) for flag in LEFT_OUT] + [None, SPIKE, REPEATED, "[]"]
    arrivals = [arrival(at=SECOND + number) for number in range(len(flags))]
    await store.readings.add(
        [
            new._replace(reading=new.reading._replace(flags=text))
            for new, text in zip(arrivals, flags, strict=True)
        ]
    )
    expected = [1 if is_left_out else None for is_left_out in LEFT_OUT.values()]
    assert await left_out(store) == [*expected, None, 1, None, None]


async def test_every_way_of_writing_flags(store: SqliteStore) -> None:
    session = await new_session(store)
    device = await store.devices.save(Device.first_seen(report(), SECOND))
    await store.devices.assign(device.id, session.id, None)
    await store.readings.add([arrival(at=SECOND + n, raw=b"%d" % n) for n in range(4)])
    flagged = reading("file", at=SECOND + 10)._replace(flags=SPIKE)
    await store.readings.import_readings(session, [flagged, reading(at=SECOND + 11)], reset=False)
    await store.readings.add_mirrored(session, [reading(at=SECOND + 12)._replace(flags=SPIKE)])
    assert await left_out(store) == [None, None, None, None, 1, None, 1]

    page = await store.payloads.page(device.id, (0, 0), 9)
    await store.payloads.add_flag(page[0].reading.oid, "krausen_bump")
    await store.payloads.rewrite([(page[1].seq, page[1].reading._replace(flags=SPIKE))])
    boot = await store.retiming.boot("boot")
    pending = PendingRetime(BootTime(boot.id, 1, 0), device.id, page[2])
    await store.retiming.retime([(pending, page[2].reading._replace(flags=SPIKE))])
    assert (await left_out(store))[:4] == [1, 1, 1, None]

    # An edit keeps the flags, and bytes that are decoded again may lose them under an edit.
    edited = page[1].reading._replace(gravity="1.030", sg=1.03)
    await store.readings.import_readings(session, [edited], reset=False)
    assert (await left_out(store))[1] == 1
    await store.payloads.rewrite([(page[1].seq, page[1].reading), (page[0].seq, page[0].reading)])
    assert (await left_out(store))[:4] == [None, None, 1, None]
    await store.readings.take_back(session, [page[1].reading.oid], SECOND)
    assert (await left_out(store))[:4] == [None, None, 1, None]


@each("was", [None, 1, 7, "x"])
async def test_readings_of_a_damaged_file(tmp_path: Path, was: object) -> None:
    """Also where the column itself was damaged: it is made of the flags again."""
    directory = tmp_path / str(was)
    directory.mkdir()
    store = SqliteStore(directory)
    await store.open()
    await store.keys.owner(SECOND)
    session = await new_session(store)
    flagged = [
        reading(at=SECOND + n)._replace(flags=flags) for n, flags in enumerate((SPIKE, REPEATED, None))
    ]
    await store.readings.import_readings(session, flagged, reset=False)
    await store.close()
    path = directory / DATABASE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE readings SET left_out = ?", (was,))
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.write(bytes(PAGE_BYTES))
    async with repaired(directory) as store:
        assert len((await store.upkeep.condition()).damages) == 1
        assert await left_out(store) == [1, None, None]


def test_the_migration_fills_the_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrations()
    with monkeypatch.context() as past:
        past.setattr(schema, "migrations", lambda: known[:15])
        connection = open_writer(tmp_path / "db")
        migrate(connection)
    connection.executemany(
        "INSERT INTO readings (oid, received_at, created_at, name, gravity, gravity_unit, temp, temp_unit,"
        " comment, beer, interval, source, ip, flags) VALUES"
        " (randomblob(12), 1, 1, '', '', 'G', '', 'C', '', '', '', '', '', ?)",
        [(SPIKE,), (REPEATED,), (None,), ("no JSON",)],
    )
    migrate(connection)
    found = connection.execute("SELECT left_out FROM readings ORDER BY seq").fetchall()
    assert found == [(1,), (None,), (None,), (None,)]
    connection.close()
