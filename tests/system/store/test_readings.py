"""The contract of `Readings`, for every implementation."""

import json
from datetime import date
from typing import Any

import pytest

from gateway.domain.device import Device
from gateway.domain.target import Target
from gateway.errors import NotFound
from gateway.store.protocol import Store
from gateway.store.queries import ReadingsQuery
from tests.system.store.conftest import SECOND, arrival, in_session, new_session, reading, report

OID = "69a7fb98c0ffee0000000001"
DAY_S = 86_400


async def listed(store: Store, session: Any, **filters: object) -> list[dict[str, Any]]:
    readings: list[dict[str, Any]] = json.loads(b"[" + await in_session(store, session, **filters) + b"]")
    return readings


async def names(store: Store, session: Any, **filters: object) -> list[str]:
    return [item["name"] for item in await listed(store, session, **filters)]


async def known_device(store: Store, stable_id: str = "1") -> Device:
    return await store.devices.save(Device.first_seen(report(stable_id), SECOND))


async def test_members_of_an_imported_reading(store: Store) -> None:
    session = await new_session(store)
    await store.readings.import_readings(session, [reading('ü"\\\n\t\x01', oid=OID)], reset=False)
    (item,) = await listed(store, session)
    assert list(item.items()) == [
        ("_id", {"$oid": OID}),
        ("login_id", 1),
        ("api_key", ""),
        ("brewevent_id", session.id),
        ("recipe_id", 0),
        ("ip", "192.0.2.10"),
        ("name", 'ü"\\\n\t\x01'),
        ("gravity", "1.0410"),
        ("gravity_unit", "G"),
        ("temp", "66.5"),
        ("temp_unit", "F"),
        ("comment", ""),
        ("beer", "Porter"),
        ("interval", "46085.5"),
        ("created_at", "2026-03-04T09:30:00+00:00"),
        ("source", "test"),
    ]


async def test_extras_come_last_with_their_own_digits(store: Store) -> None:
    session = await new_session(store)
    await store.readings.import_readings(session, [reading(extra='{"ph":4.40,"angle":""}')], reset=False)
    assert (await in_session(store, session)).endswith(b',"source":"test","ph":4.40,"angle":""}')


@pytest.mark.parametrize("at", [0, 253_402_300_799])
async def test_first_and_last_second(store: Store, at: int) -> None:
    session = await new_session(store)
    await store.readings.import_readings(session, [reading(at=at)], reset=False)
    assert (await listed(store, session))[0]["created_at"] in {
        "1970-01-01T00:00:00+00:00",
        "9999-12-31T23:59:59+00:00",
    }


async def test_filter_then_skip_then_limit_oldest_first(store: Store) -> None:
    session = await new_session(store)
    await store.readings.import_readings(
        session, [reading(str(n), at=SECOND + n * DAY_S) for n in (3, 1, 0, 2)], reset=False
    )
    first, last = date(2026, 3, 5), date(2026, 3, 6)
    assert await names(store, session) == ["0", "1", "2", "3"]
    assert await names(store, session, skip=1, limit=2) == ["1", "2"]
    assert await names(store, session, limit=0) == []
    assert await names(store, session, skip=9) == []
    assert await names(store, session, first_day=first, last_day=last) == ["1", "2"]
    assert await names(store, session, first_day=first, skip=1) == ["2", "3"]
    assert await names(store, session, last_day=last, limit=1) == ["0"]
    assert await names(store, session, first_day=last, last_day=first) == []
    assert await names(store, session, first_day=date.min, last_day=date.max) == ["0", "1", "2", "3"]


async def test_equal_times_are_in_order_of_their_ids(store: Store) -> None:
    session = await new_session(store)
    ids = [f"{n:024x}" for n in (2, 0, 1)]
    await store.readings.import_readings(session, [reading(oid=oid) for oid in ids], reset=False)
    assert [item["_id"]["$oid"] for item in await listed(store, session)] == sorted(ids)


async def test_chunks_are_bounded_and_join_to_one_list(store: Store) -> None:
    session = await new_session(store)
    await store.readings.import_readings(session, [reading(str(n)) for n in range(1000)], reset=False)
    chunks = [chunk async for chunk in store.readings.json_chunks(ReadingsQuery(session))]
    assert len(chunks) >= 3
    assert len(json.loads(b"[" + b"".join(chunks) + b"]")) == 1000


async def test_a_read_that_is_given_up_leaves_room_for_the_next(store: Store) -> None:
    session = await new_session(store)
    await store.readings.import_readings(session, [reading() for _ in range(1000)], reset=False)
    for _ in range(10):
        chunks = store.readings.json_chunks(ReadingsQuery(session))
        assert await anext(chunks)
        await chunks.aclose()
    assert len(await listed(store, session)) == 1000


async def test_import_replaces_by_id_within_the_session(store: Store) -> None:
    session = await new_session(store)
    for name in ("old", "new"):
        await store.readings.import_readings(session, [reading(name, oid=OID)], reset=False)
    assert await names(store, session) == ["new"]
    assert await store.readings.count() == 1


async def test_import_gives_an_id_used_elsewhere_anew(store: Store) -> None:
    one, other = await new_session(store), await new_session(store)
    await store.readings.import_readings(one, [reading("one", oid=OID)], reset=False)
    await store.readings.import_readings(other, [reading("other", oid=OID)], reset=False)
    (item,) = await listed(store, other)
    assert item["_id"]["$oid"] != OID
    assert item["_id"]["$oid"][:8] == OID[:8]
    assert await names(store, one) == ["one"]


async def test_import_with_reset(store: Store) -> None:
    one, other = await new_session(store), await new_session(store)
    for session in (one, other):
        await store.readings.import_readings(session, [reading("old"), reading("old")], reset=False)
    await store.readings.import_readings(one, [reading("new")], reset=True)
    assert (await names(store, one), await names(store, other)) == (["new"], ["old", "old"])
    await store.readings.import_readings(one, [], reset=True)
    assert await names(store, one) == []


async def test_import_is_all_or_none_even_with_reset(store: Store) -> None:
    session = await new_session(store)
    await store.readings.import_readings(session, [reading("old")], reset=False)
    bad = reading("bad")._replace(source=None)  # type: ignore[arg-type]
    with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the implementation's business
        await store.readings.import_readings(session, [reading("new"), bad], reset=True)
    assert await names(store, session) == ["old"]


async def test_readings_of_a_device_go_to_its_session(store: Store) -> None:
    session = await new_session(store)
    device = await known_device(store)
    await store.readings.add([arrival("before")])
    await store.devices.assign(device.id, session.id, None)
    await store.readings.add([arrival("within"), arrival("too")])
    await store.devices.release(device.id)
    await store.readings.add([arrival("after")])
    assert sorted(await names(store, session)) == ["too", "within"]
    assert await store.readings.count() == 4


async def test_readings_of_an_unknown_device_are_refused(store: Store) -> None:
    await known_device(store)
    with pytest.raises(NotFound):
        await store.readings.add([arrival(device="ispindel:unknown")])
    assert await store.readings.count() == 0


async def test_recent_arrivals_and_deliveries(store: Store) -> None:
    await known_device(store)
    await known_device(store, "2")
    await store.readings.add([arrival(at=SECOND, raw=b"a", delivery="7")])
    await store.readings.add(
        [arrival(at=SECOND + 1, raw=b"b"), arrival(device="ispindel:2", raw=b"c", at=SECOND + 2)]
    )
    ms = SECOND * 1000
    assert await store.readings.seen_since(ms + 1) == [
        ("ispindel:1", b"b", ms + 1000),
        ("ispindel:2", b"c", ms + 2000),
    ]
    assert await store.readings.latest_deliveries("ispindel:1") == [(b"a", "7")]
    assert await store.readings.holds_delivery("ispindel:1", b"a", "7")
    for other in (("ispindel:1", b"a", "8"), ("ispindel:1", b"b", "7"), ("ispindel:2", b"a", "7")):
        assert not await store.readings.holds_delivery(*other)


async def test_a_whole_window_of_deliveries_is_remembered(store: Store) -> None:
    await known_device(store)
    await store.readings.add(
        [arrival(at=SECOND + n // 100, raw=b"%d" % n, delivery=f"{n}") for n in range(2_000)]
    )
    assert len(await store.readings.latest_deliveries("ispindel:1")) == 512
    for n in (0, 999, 1_999):
        assert await store.readings.holds_delivery("ispindel:1", b"%d" % n, f"{n}")
        assert not await store.readings.holds_delivery("ispindel:1", b"%d" % n, f"{n + 1}")


async def test_lines_are_the_newest_with_device_and_session(store: Store) -> None:
    session = await new_session(store)
    device = await known_device(store)
    await store.readings.add([arrival(str(n), at=SECOND + n) for n in range(3)])
    await store.readings.import_readings(session, [reading("imported", at=SECOND + 9)], reset=False)

    async def lines(last: int, device_id: int | None = None, session_id: int | None = None) -> list[Any]:
        found = store.readings.json_lines(last=last, device_id=device_id, session_id=session_id)
        return [json.loads(line) async for line in found]

    assert [line["name"] for line in await lines(2)] == ["2", "imported"]
    of_device = await lines(9, device_id=device.id)
    assert [line["name"] for line in of_device] == ["0", "1", "2"]
    assert of_device[0]["device_id"] == "1"
    of_session = await lines(9, session_id=session.id)
    assert [line["name"] for line in of_session] == ["imported"]


async def test_the_newest_readings_of_a_brew_come_by_pages_with_their_states(store: Store) -> None:
    session = await new_session(store, upstream_id=12)
    for number in range(5):
        await store.readings.import_readings(
            session, [reading(f"r{number}", at=SECOND + number)], reset=False
        )
    count, rows = await store.deliveries.newest(session.id, SECOND + 1, SECOND + 3, limit=2, skip=1)
    assert (count, [(row.name, row.at) for row in rows]) == (3, [("r2", SECOND + 2), ("r1", SECOND + 1)])
    assert (rows[0].sg, rows[0].gravity, rows[0].flags, rows[0].states) == (1.041, "1.0410", (), {})
    await store.targets.add(Target("club", "https://club.example", "key", unnamed=True))
    _, rows = await store.deliveries.newest(session.id, None, None, limit=1, skip=0)
    assert (rows[0].name, rows[0].states) == ("r4", {"club": "pending"})
