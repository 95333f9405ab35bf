"""What waits and what was delivered: bounded looks, several targets, the state of each reading."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.brewsession import BrewSession
from gateway.domain.target import Delivery, Target
from gateway.store.sqlite import outbox
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.system.forward.bench import Bench, bench, reading

OTHER = Target("club", "https://club.example", "/key")


@pytest.fixture
async def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(outbox, "CAUGHT_UP_AFTER", 10)
    async with bench(tmp_path) as made:
        here = Target("upstream", made.target.name, "/key", from_options=True, unnamed=True)
        await made.store.targets.take_options([here])
        await made.store.targets.add(OTHER)
        yield made


async def waits(of: Bench) -> dict[int, int]:
    return {b.session_id: b.waiting for b in await of.store.outbox.backlogs(of.target.name)}


async def watermark(of: Bench, session: BrewSession) -> int | None:
    sql = "SELECT watermark FROM deliveries WHERE target = ? AND session_id = ?"
    async with of.store._database.reader() as reader:
        found = await reader.run(lambda c: c.execute(sql, (of.target.name, session.id)).fetchone())
    return None if found is None else int(found[0])


async def settle(of: Bench, session: BrewSession, number: int) -> None:
    batch = await of.store.outbox.begin(of.target.name, session.id, number)
    assert batch is not None
    await of.store.outbox.settle(batch)


async def test_one_session_that_is_stuck_keeps_no_other_watermark_behind(one: Bench) -> None:
    stuck, over, fine = [await one.session(number) for number in (77, 78, 79)]
    await one.arrive(stuck, range(4))
    await one.arrive(over, [10])
    await settle(one, over, 5)
    await one.arrive(fine, range(20, 50))
    assert await waits(one) == {stuck.id: 4, fine.id: 30}
    assert await watermark(one, over) == 35
    assert await watermark(one, stuck) is None
    await settle(one, fine, 100)
    assert await waits(one) == {stuck.id: 4}
    await one.arrive(over, [60])
    assert await waits(one) == {stuck.id: 4, over.id: 1}


async def test_a_session_far_behind_is_found_by_its_own_index(one: Bench) -> None:
    """However many readings of others came since."""
    session = await one.session()
    await one.arrive(session, range(5))
    others = await one.store.sessions.add(brew(batchcode="LOCAL"))
    await one.arrive(others, range(100, 160))
    for sql, plan in ((outbox.FAR, "readings_by_session"), (outbox.WAITING_FAR, "readings_by_session")):
        values = {"session_id": 1, "watermark": 0, "limit": 9, "target": "", "until": 9, "brewevent_id": 1}
        text = await _plan(one.store, sql, {**values, "login_id": 1, "recipe_id": 0})
        assert plan in text.split("\n")[0] or plan in text
    batch = await one.store.outbox.begin(one.target.name, session.id, 3)
    assert batch is not None
    assert batch.seqs == (1, 2, 3)


async def _plan(store: SqliteStore, sql: str, values: dict[str, object]) -> str:
    def work(connection: sqlite3.Connection) -> str:
        return "\n".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))

    return await store._writer.run(work)


async def test_each_target_has_its_own_sessions_and_numbers(one: Bench) -> None:
    both, theirs = await one.session(77), await one.store.sessions.add(brew(batchcode="B"))
    await one.store.targets.map(both.id, OTHER.url, 500)
    await one.store.targets.map(theirs.id, OTHER.url, 501)
    await one.arrive(both, range(3))
    await one.arrive(theirs, range(10, 12))
    assert await waits(one) == {both.id: 3}
    found = await one.store.outbox.backlogs(OTHER.url, unnamed=False)
    assert [(b.session_id, b.upstream_id, b.waiting) for b in found] == [
        (both.id, 500, 3),
        (theirs.id, 501, 2),
    ]
    batch = await one.store.outbox.begin(OTHER.url, both.id, 10)
    assert batch is not None
    assert batch.upstream_id == 500
    await one.store.outbox.settle(batch)
    assert await waits(one) == {both.id: 3}
    assert await one.store.targets.sessions(OTHER) == {both.id: 500, theirs.id: 501}
    await one.store.targets.map(theirs.id, OTHER.url, None)
    await one.store.sessions.delete(both.id, 1)
    assert await one.store.targets.sessions(OTHER) == {}


async def test_the_state_of_every_reading_at_every_target(one: Bench) -> None:
    session = await one.session(77)
    await one.store.targets.map(session.id, OTHER.url, 500)
    await one.arrive(session, range(3))
    says_nothing = reading(5)._replace(gravity="", temp="", comment="")
    await one.store.readings.import_readings(session, [says_nothing], reset=False)
    await one.store.readings.add_mirrored(session, [reading(6)])
    one.cloud.refuse = lambda row: row["comment"] == "no. 1"
    await one.drain()
    await one.arrive(session, [7])
    states = [
        (r.states["upstream"], r.states["club"])
        for r in await one.store.deliveries.of_readings(session.id, state=None, limit=9, skip=0)
    ]
    left = ("not forwarded", "not forwarded")
    sent = ("forwarded", "pending")
    assert states == [sent, ("refused", "pending"), sent, left, left, ("pending", "pending")]
    [refused] = await one.store.deliveries.of_readings(session.id, state="refused", limit=9, skip=0)
    assert refused.reasons == {"upstream": "HTTP 400: row 1: refused by the script"}
    now = int(one.clock.now() * 1000)
    arrived = min(now, (await one.store.outbox.backlogs(OTHER.url, unnamed=False))[0].oldest_at)
    assert await one.store.deliveries.counts(session.id) == [
        Delivery("club", session.id, 500, 4, 0, 0, 2, arrived),
        Delivery("upstream", session.id, 77, 1, 2, 1, 2, now),
    ]


async def test_a_session_without_readings_counts_none(one: Bench) -> None:
    session = await one.session(77)
    assert await one.store.deliveries.counts() == [Delivery("upstream", session.id, 77, 0, 0, 0, 0, None)]


async def test_options_come_and_go_and_what_was_added_stays(one: Bench) -> None:
    targets = one.store.targets

    async def listed() -> list[tuple[str, str, bool]]:
        return [(t.name, t.url, t.unnamed) for t in await targets.all()]

    def told(name: str, url: str) -> Target:
        return Target(name, url, "/k", from_options=True, unnamed=name == "upstream")

    await targets.take_options([told("upstream", "http://a"), told("mirror", "http://b")])
    club = ("club", OTHER.url, False)
    assert await listed() == [("upstream", "http://a", True), ("mirror", "http://b", False), club]
    await targets.pause("upstream", paused=True)
    await targets.take_options([told("upstream", "http://a")])
    assert [t.paused for t in await targets.all()] == [True, False]
    await targets.take_options([told("upstream", "http://b"), told("mirror", "http://a")])
    assert await listed() == [("upstream", "http://b", True), ("mirror", "http://a", False), club]
    await targets.take_options([told("upstream", OTHER.url)])
    assert await listed() == [("club", OTHER.url, True)]
    assert (await targets.all())[0].key_file == "/key"
    await targets.take_options([])
    assert await listed() == [club]
