"""The version of a brew session's readings: another one after each write that may have changed them."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.alarm import Alarm
from gateway.domain.audit import AuditEntry
from gateway.domain.brewsession import BrewSession
from gateway.domain.delivery import Batch
from gateway.domain.device import Device
from gateway.domain.inbox import WaitingName, WaitReason
from gateway.domain.payload import Payload
from gateway.domain.quarantined import Quarantined
from gateway.domain.target import Route
from gateway.errors import StoreUnavailable
from gateway.store import sqlite
from gateway.store.protocols.alarms import AlarmChange
from gateway.store.sqlite.engine import changes
from gateway.store.sqlite.engine.changes import Apart, Changes
from gateway.store.sqlite.outbox import Look
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.system.store.changes import count_noted, note_changes, take_noted
from tests.system.store.conftest import SECOND, arrival, in_session, new_session, report

TARGET, LATEST = "http://cloud", "brewfather:x"


@pytest.fixture
async def brewing(store: SqliteStore) -> tuple[SqliteStore, BrewSession]:
    """A brew session with a device and four readings of it, which is forwarded."""
    session = await new_session(store, upstream_id=7)
    device = await store.devices.save(Device.first_seen(report(), SECOND))
    await store.devices.assign(device.id, session.id, None)
    await store.readings.add([arrival(f"n{number}", at=SECOND + number) for number in range(4)])
    await note_changes(store)
    return store, session


async def version(store: SqliteStore, session: BrewSession) -> str:
    text = await store.readings.version(session)
    assert text is not None
    assert text == await store.readings.version(session)
    return text


async def test_what_comes_again_by_itself_changes_no_reading_and_no_version(
    brewing: tuple[SqliteStore, BrewSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All works that are apart: each is looked at while it runs."""
    store, session = brewing
    seen: dict[str, int] = {}
    called = Apart.__call__

    def look(self: Apart[Any], connection: sqlite3.Connection) -> Any:
        before = count_noted(connection)
        result = called(self, connection)
        name = self._work.__qualname__
        seen[name] = seen.get(name, 0) + count_noted(connection) - before
        return result

    monkeypatch.setattr(Apart, "__call__", look)
    await store.routes.add(LATEST, Route("all"), 0)
    before = await version(store, session)
    batch = await store.outbox.begin(TARGET, session.id, 3)
    assert batch is not None
    await store.outbox.release(batch)
    batch = await store.outbox.begin(TARGET, session.id, 3)
    assert batch is not None
    await store.outbox.settle(batch)
    await store.outbox._catch_up(TARGET, Look([], 2, [session.id]))
    await store.routes.settle(Batch("influx:x", 1, 0, (2,), ("{}",)))
    await store.routes._catch_up("influx:x", 2, {1: 0})
    await store.latest.look(LATEST, SECOND + 10)
    await store.latest.settle(Batch(LATEST, 1, 0, (2,), ("{}",)), SECOND)
    stuck = Alarm(0, None, "stuck", "brew", str(session.id), "firing", SECOND, SECOND)
    [alarm] = await store.alarms.change([AlarmChange(stuck)])
    await store.messages.mark("phone", [alarm.id], "open")
    await store.alarms.prune(SECOND, 1)
    await store.upkeep.tend()
    await store.upkeep.note_scrub(2, SECOND)
    await store.audit.add(AuditEntry("backup", "backup:download"))
    await store.audit.count_wrong_keys([("192.0.2.1", SECOND, 3)])
    await store.audit.prune(SECOND)
    await store.keys.note_uses({b"unknown": {"192.0.2.1": SECOND}})
    await store.logins.note_visits({1: SECOND})
    await store.published.add({"homeassistant/device/x/config": ["gravity"]})
    await store.published.note_event(7)
    assert await store.published.last_event() == 7
    await store.published.remove(["homeassistant/device/x/config"])
    await store.quarantine.add(Quarantined(b"?", "not understood", SECOND * 1000, "http /", "192.0.2.1"))
    waiting = WaitingName("ispindel:9", "first", WaitReason.NEW, "ispindel", "9", "first", 1)
    await store.inbox.add(Payload(b"{}", SECOND, "http /ingest"), [waiting])
    assert await version(store, session) == before
    assert set(seen.values()) == {0}
    sources = Path(sqlite.__file__).parent.glob("*.py")
    assert len(seen) == sum(path.read_text("utf-8").count("Apart(") for path in sources)
    assert await take_noted(store) == set()


async def test_a_reading_changes_the_version_of_its_own_brew_session(
    brewing: tuple[SqliteStore, BrewSession],
) -> None:
    store, session = brewing
    other = await new_session(store)
    empty = await new_session(store)
    first, second = [
        await store.devices.save(Device.first_seen(report(name, name), SECOND)) for name in ("2", "3")
    ]
    await store.devices.assign(second.id, other.id, None)
    await store.devices.merge(second, first)  # from now on, readings of the first go into the other session
    sessions = (session, other, empty)
    for device, changed in (("ispindel:1", session), ("ispindel:3", other), ("ispindel:2", other)):
        before = [await version(store, each) for each in sessions]
        held = await in_session(store, changed)
        await store.take(arrival("new", device=device, at=SECOND + 100))
        assert await in_session(store, changed) != held
        after = [await version(store, each) for each in sessions]
        assert [old != new for old, new in zip(before, after, strict=True)] == [
            each is changed for each in sessions
        ]


async def test_damage_that_forwarding_finds_changes_the_version(
    brewing: tuple[SqliteStore, BrewSession],
) -> None:
    store, session = brewing
    await store._database.writer.run(lambda c: c.execute("UPDATE readings SET gravity = '9' WHERE seq = 2"))
    before = await version(store, session)
    batch = await store.outbox.begin(TARGET, session.id, 10)
    assert batch is not None
    assert len(batch.seqs) == 3
    assert await version(store, session) != before


async def test_a_commit_that_failed_and_is_there_all_the_same(
    brewing: tuple[SqliteStore, BrewSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, session = brewing
    versions, bodies = [await version(store, session)], [await in_session(store, session)]
    real = store._writer._transact

    def fail(*given: Any) -> list[Any]:
        real(*given)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store._writer, "_transact", fail)
    with pytest.raises(StoreUnavailable):
        await store.take(arrival("perhaps", at=SECOND + 50))
    monkeypatch.undo()
    versions.append(await version(store, session))
    bodies.append(await in_session(store, session))
    await store.upkeep.tend()  # takes the reading back
    versions.append(await version(store, session))
    bodies.append(await in_session(store, session))
    assert bodies[0] == bodies[2] != bodies[1]
    assert len(set(versions)) == 3


async def test_each_process_and_each_brew_session_has_versions_of_its_own(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        store = SqliteStore(tmp_path)
        await store.open()
        await store.keys.owner(SECOND)
        found += [await version(store, await store.sessions.add(brew())) for _ in range(2)]
        await store.close()
    assert len(set(found)) == 4


async def test_beside_another_process_there_is_no_version(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    await store.keys.owner(SECOND)
    session = await store.sessions.add(brew())
    beside = SqliteStore(tmp_path)
    await beside.open_read_only()
    assert await beside.readings.version(session) is None
    await beside.close()
    await store.close()


def test_sources_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "SOURCES", 3)
    counts = Changes()
    tags = set()
    for number in range(10):
        counts.count([], [((f"device{number}",), None)])
        tags.add(counts.tag(counts.works, ["device0"]))
        assert len(counts._rows) <= 3
    assert len(tags) == 1 + 2 * 1  # the first reading of device0, and each time that all are forgotten
