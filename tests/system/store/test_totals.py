"""The ledger: at every moment each stored reading is counted once, by what became of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.target import Target
from gateway.domain.totals import TargetTotals, Totals
from gateway.forward.forwarder import ForwardSettings
from gateway.store.records import Mirrored
from tests.brew import brew
from tests.system.forward.bench import UPSTREAM, Bench, bad, bench, reading
from tests.system.store.counting import by_reading

ELSEWHERE = "https://elsewhere.example"


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(tmp_path, ForwardSettings(batch_readings=8)) as made:
        yield made


async def totals(of: Bench) -> Totals:
    """What the ledger says; both equations hold whenever it is asked."""
    found = await of.store.totals.totals(of.stats.targets)
    assert found.stored == await of.store.readings.count()
    parts = found.unassigned, found.kept_here, found.mirrored, found.without_target, found.to_forward
    assert found.stored == sum(parts), found
    for target in found.targets:
        ended = target.forwarded, target.refused, target.pending, target.not_sent
        assert target.readings == sum(ended), target
        assert min(ended) >= 0, target
    return found


async def test_an_empty_store_has_nothing(one: Bench) -> None:
    nothing = TargetTotals(one.target.name, 0, 0, 0, 0, 0)
    assert await totals(one) == Totals(0, 0, 0, 0, 0, 0, (nothing,))


async def test_it_adds_up_at_every_step_of_forwarding(one: Bench) -> None:
    await one.arrive(await one.session(), range(20))
    one.cloud.refuse = bad(3, 11)
    seen = []
    for _ in range(40):
        [target] = (await totals(one)).targets
        seen.append((target.forwarded, target.refused, target.pending))
        if not target.pending:
            break
        await one.step()
    assert seen[0] == (0, 0, 20)
    assert seen[-1] == (18, 2, 0)
    assert (one.stats.forwarded, one.stats.refused_upstream) == (18, 2)
    assert len(set(seen)) > 2


async def test_a_restart_in_the_midst_of_it_changes_nothing(one: Bench) -> None:
    await one.arrive(await one.session(), range(20))
    await one.step()
    before = await totals(one)
    one.restart()
    assert await totals(one) == before
    await one.drain()
    [target] = (await totals(one)).targets
    assert (target.readings, target.forwarded, target.pending) == (20, 20, 0)


async def test_every_place_a_reading_can_be_in(one: Bench) -> None:
    sessions = one.store.sessions
    forwarded = await one.session()
    local = await sessions.add(brew(batchcode="LOCAL"))
    deleted = await sessions.add(brew(batchcode="GONE", upstream_id=UPSTREAM + 1))
    await one.arrive(forwarded, range(3))
    await one.arrive(local, range(10, 14))
    await one.arrive(deleted, range(20, 25))
    await one.store.readings.add_mirrored(local, [reading(30)])
    await one.store.mirrors.remember(one.target.name, 1, "brewsession", _copy_of(local.id))
    await sessions.delete(deleted.id, 1)
    found = await totals(one)
    assert (found.stored, found.kept_here, found.mirrored, found.to_forward) == (13, 9, 1, 3)


async def test_what_a_target_holds_already_is_not_sent_to_it(one: Bench) -> None:
    session = await one.session()
    await one.arrive(session, range(3))
    await one.store.readings.add_mirrored(session, [reading(n) for n in (7, 8)])
    await one.store.mirrors.remember(one.target.name, 1, "brewsession", _copy_of(session.id))
    found = await totals(one)
    assert (found.mirrored, found.to_forward, found.targets[0].pending) == (2, 3, 3)


async def test_without_a_target_it_waits_for_one(one: Bench) -> None:
    await one.arrive(await one.session(), range(5))
    one.stats.targets.clear()
    found = await totals(one)
    assert (found.without_target, found.to_forward, found.targets) == (5, 0, ())
    one.stats.targets[ELSEWHERE] = False
    found = await totals(one)
    assert (found.without_target, found.targets) == (5, (TargetTotals(ELSEWHERE, 0, 0, 0, 0, 0),))


@pytest.mark.parametrize("copy", [False, True], ids=["own session", "copied session"])
async def test_what_says_nothing_is_never_sent(one: Bench, copy: bool) -> None:
    session = await one.session()
    if copy:
        await one.store.mirrors.remember(one.target.name, 1, "brewsession", _copy_of(session.id))
    empty = reading(5)._replace(gravity="", temp="", comment="")
    for number in (1, 9):
        await one.arrive(session, [number])
        await one.store.readings.import_readings(session, [empty], reset=False)
        [target] = (await totals(one)).targets
        assert (target.not_sent, target.pending) == (1, 1)
        await one.drain()
    [target] = (await totals(one)).targets
    assert (target.readings, target.forwarded, target.not_sent, target.pending) == (3, 2, 1, 0)


async def test_it_agrees_with_what_is_known_of_single_readings(one: Bench) -> None:
    """Another count of the same, which looks at every reading of every brew session."""
    url = one.target.name
    await one.store.targets.add(Target("cloud", url, "key", unnamed=True))
    await one.arrive(await one.session(), range(9))
    await one.arrive(await one.session(UPSTREAM + 1), range(10, 30))
    one.cloud.refuse = bad(2, 7, 15)
    for _ in range(30):
        [target] = (await totals(one)).targets
        found = await by_reading(one.store)
        assert found == await one.store.deliveries.counts()
        assert target.pending == sum(each.pending for each in found)
        assert target.forwarded == sum(each.forwarded for each in found)
        assert target.refused == sum(each.refused for each in found)
        if not target.pending:
            break
        await one.step()
    assert (target.forwarded, target.refused) == (26, 3)


async def test_several_targets_have_their_own_counts(one: Bench) -> None:
    await one.arrive(await one.session(), range(6))
    await one.drain()
    one.stats.targets[ELSEWHERE] = True
    found = {target.name: (target.forwarded, target.pending) for target in (await totals(one)).targets}
    assert found == {one.target.name: (6, 0), ELSEWHERE: (0, 6)}


async def test_what_is_deleted_is_in_no_count(one: Bench) -> None:
    session = await one.session()
    await one.arrive(session, range(6))
    one.cloud.refuse = bad(2)
    await one.drain()
    await one.store.readings.import_readings(session, [reading(50)], reset=True)
    [target] = (await totals(one)).targets
    assert (target.readings, target.forwarded, target.refused, target.pending) == (1, 0, 0, 1)


async def test_storage_tells_the_disk_and_the_database(one: Bench) -> None:
    before = await one.store.totals.storage()
    await one.arrive(await one.session(), range(500))
    after = await one.store.totals.storage()
    assert after.database_bytes + after.wal_bytes > before.database_bytes + before.wal_bytes
    assert 0 < after.free_bytes <= after.disk_bytes


def _copy_of(session_id: int) -> Mirrored:
    return Mirrored("4101", str(session_id), "1")
