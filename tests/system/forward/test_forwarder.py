"""Every row of the forwarding table of the architecture, on a real store and a real connection."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Set
from math import ceil, log2
from pathlib import Path

import pytest
from aiohttp import web

from gateway.domain.delivery import Batch
from gateway.domain.objectid import new_object_id
from gateway.domain.target import NOT_TRIED
from gateway.errors import StoreUnavailable
from gateway.forward.forwarder import PAUSE_S, STORE_AGAIN_S, ForwardSettings, Wait
from tests.cloud import (
    KEY,
    Behaviour,
    Row,
    Visit,
    accept_first,
    accept_then_hang,
    accept_then_reset,
    hang,
    html_200,
    redirect,
    reset_before,
    status,
    wrong_count,
)
from tests.system.forward.bench import UPSTREAM, Bench, bad, bench, number_of, reading

SMALL = ForwardSettings(batch_readings=8)


@pytest.fixture(params=[True, False], ids=["keeps ids", "new ids"])
async def both(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    """A gateway with each of the two kinds of cloud."""
    async with bench(tmp_path, SMALL, keeps_ids=request.param) as made:
        yield made


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(tmp_path, SMALL) as made:
        yield made


def batches(of: Bench) -> list[int]:
    return [seen.readings for seen in of.cloud.imports]


async def test_a_backlog_goes_at_once_in_full_batches_and_in_order(one: Bench) -> None:
    await one.arrive(await one.session(), range(20))
    for _ in range(3):
        assert (await one.step()).seconds == 0.0
    assert batches(one) == [8, 8, 4]
    assert one.arrived() == list(range(20))
    assert one.stats.forwarded == 20
    assert one.cloud.read_backs == []
    assert await one.step() == Wait(None, wake=True)
    assert one.stats.parts == {f"upstream {one.cloud.url}": "ok"}


async def test_a_few_readings_wait_for_the_sixtieth_second_and_the_eighth_does_not(one: Bench) -> None:
    session = await one.session()
    assert await one.forwarder.step() == Wait(None, wake=True)
    await one.arrive(session, range(3))
    one.clock.advance(20.0)
    assert await one.forwarder.step() == Wait(40.0, wake=True)
    one.clock.advance(39.5)
    await one.arrive(session, range(3, 7))
    assert await one.forwarder.step() == Wait(0.5, wake=True)
    assert batches(one) == []
    await one.arrive(session, [7])
    await one.step()
    assert batches(one) == [8]
    await one.arrive(session, [8])  # right behind a full batch
    await one.step()
    assert batches(one) == [8, 1]
    await one.arrive(session, [9])
    assert await one.forwarder.step() == Wait(60.0, wake=True)
    one.clock.advance(60.0)
    await one.step()
    assert batches(one) == [8, 1, 1]


async def test_a_wall_clock_that_jumps_moves_no_batch_beyond_its_minute(one: Bench) -> None:
    session = await one.session()
    await one.forwarder.step()
    await one.arrive(session, [1])
    one.clock.jump(-86_400)
    assert await one.forwarder.step() == Wait(60.0, wake=True)
    one.clock.jump(+30 * 86_400)
    assert await one.forwarder.step() == Wait(60.0, wake=True)


async def test_the_bell_cuts_an_idle_rest_but_no_backoff(one: Bench) -> None:
    session = await one.session()
    await one.arrive(session, [0])
    task = asyncio.create_task(one.forwarder.run())
    try:
        await one.cloud.until(lambda: batches(one) == [1])
        await one.arrive(session, range(1, 9))
        one.notices.notify()
        before = one.clock.monotonic()
        await one.clock.run_until(lambda: batches(one) == [1, 8])
        assert one.clock.monotonic() - before <= 1.0
        one.cloud.script.append(status(429, headers={"Retry-After": "100"}))
        await one.arrive(session, range(9, 17))
        one.notices.notify()
        await one.clock.run_until(lambda: batches(one) == [1, 8, 8])
        assert await one.clock.someone_sleeps() == 100.0
        one.notices.notify()
        one.clock.advance(99.0)
        assert await one.clock.someone_sleeps() == 1.0
        assert batches(one) == [1, 8, 8]
        one.clock.advance(1.0)
        await one.cloud.until(lambda: batches(one) == [1, 8, 8, 8])
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


KEPT: list[Behaviour] = [status(408), status(425), status(429)]
LOST: list[Behaviour] = [
    accept_then_reset, reset_before, hang, accept_then_hang, html_200(), html_200(keep=True),
    wrong_count(3), wrong_count(7, keep=7), accept_first(0), accept_first(5), status(500), status(503),
    status(502, keep=True), status(200, body='{"message":"succ', keep=True), redirect("http://x.example/"),
]  # fmt: skip


@pytest.mark.parametrize("behaviour", [*KEPT, *LOST])
async def test_no_ending_loses_or_doubles(both: Bench, behaviour: Behaviour) -> None:
    both.cloud.script.append(behaviour)
    await both.arrive(await both.session(), range(20))
    await both.drain()
    assert sorted(both.arrived()) == list(range(20))
    assert both.stats.forwarded == 20
    assert await both.store.quarantine.count() == 0


@pytest.mark.parametrize("behaviour", KEPT)
async def test_what_was_certainly_not_taken_is_sent_again_without_a_look(
    one: Bench, behaviour: Behaviour
) -> None:
    one.cloud.script.extend([behaviour] * 4)
    await one.arrive(await one.session(), range(3))
    rests = [(await one.step(), await one.step())[1].seconds for _ in range(4)]
    assert rests == [1.0, 2.0, 4.0, 8.0]
    await one.step()
    assert one.arrived() == [0, 1, 2]
    assert one.cloud.read_backs == []


async def test_an_ambiguous_batch_is_read_back_after_the_delay(both: Bench) -> None:
    both.cloud.script.append(accept_first(5))
    await both.arrive(await both.session(), range(8))
    asked_at = both.clock.monotonic()
    await both.step()
    while not both.cloud.read_backs:
        await both.step()
    assert both.clock.monotonic() == asked_at + ForwardSettings().readback_delay_s
    assert batches(both) == [8, 3]
    assert both.arrived() == list(range(8))


async def test_a_wait_that_was_asked_for_is_honoured_even_where_the_ending_is_open(one: Bench) -> None:
    one.cloud.script.append(status(503, headers={"Retry-After": "500"}))
    await one.arrive(await one.session(), range(3))
    asked_at = one.clock.monotonic()
    await one.drain()
    assert one.clock.monotonic() == asked_at + 500.0


async def test_a_read_back_that_fails_is_tried_again_and_nothing_is_sent_blind(both: Bench) -> None:
    both.cloud.script.append(accept_then_reset)
    both.cloud.reads.extend([status(500), html_200(), status(400)])
    await both.arrive(await both.session(), range(8))
    await both.drain()
    assert batches(both) == [8]
    assert len(both.cloud.read_backs) == 4
    assert both.arrived() == list(range(8))


async def test_what_is_kept_after_a_read_back_is_read_back_again(both: Bench) -> None:
    """Released, the attempt would forget that five of them are there."""
    both.cloud.script.extend([accept_first(5), status(429)])
    await both.arrive(await both.session(), range(8))
    await both.drain()
    assert batches(both) == [8, 3, 3]
    assert both.arrived() == list(range(8))


@pytest.mark.parametrize("ending", [accept_first(5), reset_before, accept_then_reset, hang])
async def test_a_restart_with_an_open_attempt_reads_back_first(both: Bench, ending: Behaviour) -> None:
    both.cloud.script.append(ending)
    await both.arrive(await both.session(), range(8))
    await both.step()
    both.restart()
    started_at = both.clock.monotonic()
    await both.step()
    assert both.cloud.read_backs == []
    await both.step()
    assert both.clock.monotonic() == started_at + ForwardSettings().readback_delay_s
    assert [seen.method for seen in both.cloud.requests[:2]] == ["POST", "GET"]
    await both.drain()
    assert both.arrived() == list(range(8))


@pytest.mark.parametrize("ending", [status(503), accept_then_reset], ids=["not arrived", "arrived"])
async def test_a_delivered_reading_is_no_proof_that_one_alike_has_arrived(
    both: Bench, ending: Behaviour
) -> None:
    """Two readings of one second say the same but for their comments. The first has long been delivered."""
    session = await both.session()
    first, second = (reading(n)._replace(created_at=1_769_900_000, gravity="1.050") for n in (1, 2))
    await both.store.readings.import_readings(session, [first], reset=False)
    await both.drain()
    both.cloud.script.append(ending)
    await both.store.readings.import_readings(session, [second], reset=False)
    await both.step()
    both.restart()
    await both.drain()
    assert both.arrived() == [1, 2]


async def test_a_shutdown_in_the_middle_of_a_request_leaves_an_open_attempt(both: Bench) -> None:
    both.cloud.script.append(accept_then_hang)
    both.target.client._deadline_s = 30.0
    await both.arrive(await both.session(), range(8))
    task = asyncio.create_task(both.forwarder.run())
    await both.cloud.until(lambda: len(both.arrived()) == 8)
    task.cancel()
    await asyncio.wait([task])
    assert (await both.store.outbox.backlogs(both.target.name))[0].unsettled
    both.restart()
    await both.drain()
    assert batches(both) == [8]
    assert both.arrived() == list(range(8))


@pytest.mark.parametrize("number", [2, 3, 8, 100, 500])
async def test_one_bad_reading_is_found_wherever_it_is(tmp_path: Path, number: int) -> None:
    places = range(number) if number <= 8 else (0, 1, number // 2 - 1, number // 2, number - 2, number - 1)
    async with bench(tmp_path) as made:
        session = await made.session()
        for turn, place in enumerate(places):
            made.cloud.requests.clear()
            made.cloud.sessions.clear()
            first = turn * number
            made.cloud.refuse = bad(first + place)
            await made.arrive(session, range(first, first + number))
            made.restart()  # whatever waits at a start goes at once
            await made.drain()
            good = [first + other for other in range(number) if other != place]
            assert made.arrived() == good
            # Down to one reading, that one alone, and what is behind it.
            assert len(made.cloud.imports) <= 1 + (ceil(log2(number)) + 1) + 1
            assert made.cloud.read_backs == []
        assert [item[2] for item in await made.quarantined()] == [
            turn * number + place for turn, place in enumerate(places)
        ]


async def test_a_refused_reading_is_in_quarantine_with_the_reason(one: Bench) -> None:
    one.cloud.refuse = bad(1, 5, 6, 19)
    await one.arrive(await one.session(), range(20))
    await one.drain()
    assert one.arrived() == [number for number in range(20) if number not in (1, 5, 6, 19)]
    why = (f"forward {one.cloud.url}", "HTTP 400: row 1: refused by the script")
    assert await one.quarantined() == [(*why, 1), (*why, 5), (*why, 6), (*why, 19)]
    assert (one.stats.forwarded, one.stats.refused_upstream) == (16, 4)


async def test_a_target_that_takes_few_at_once_puts_none_in_quarantine(one: Bench) -> None:
    """Refused for their number, not for what they say: the last one of each search is asked about alone."""
    one.cloud.sessions[UPSTREAM] = []
    await one.arrive(await one.session(), range(8))
    one.cloud.script.extend([status(413), status(413)])
    await one.drain()
    assert one.arrived() == list(range(8))
    assert await one.store.quarantine.count() == 0


@pytest.mark.parametrize("ending", [accept_then_reset, reset_before, accept_first(1), hang, status(429)])
@pytest.mark.parametrize("after", range(1, 6))
async def test_a_search_that_is_broken_off_loses_and_doubles_nothing(
    both: Bench, ending: Behaviour, after: int
) -> None:
    """Batch of 8, readings 2 and 5 bad; the request number `after` ends badly."""
    both.cloud.refuse = bad(2, 5)
    session = await both.session()
    await both.arrive(session, range(8))
    answers: list[Behaviour] = [both.cloud._take] * after
    both.cloud.script.extend([*answers, ending])
    # A cloud that commits a refused reading in the scripted request is not what this is about.
    original = both.cloud.commit

    def commit_good(session: int, rows: list[Row]) -> None:
        original(session, [row for row in rows if not bad(2, 5)(row)])

    both.cloud.commit = commit_good  # type: ignore[method-assign]
    await both.drain()
    assert sorted(both.arrived()) == [0, 1, 3, 4, 6, 7]
    assert [item[2] for item in await both.quarantined()] == [2, 5]
    assert (both.stats.forwarded, both.stats.refused_upstream) == (6, 2)


async def test_readings_left_out_in_silence_end_in_quarantine(both: Bench) -> None:
    both.cloud.skip = bad(2, 3, 6)
    await both.arrive(await both.session(), range(8))
    await both.drain()
    assert both.arrived() == [0, 1, 4, 5, 7]
    assert [item[2] for item in await both.quarantined()] == [2, 3, 6]


async def test_a_refused_reading_is_not_offered_again_after_a_restart(both: Bench) -> None:
    """Not even where the restart came in the middle of its batch."""
    both.cloud.refuse = bad(2)
    await both.arrive(await both.session(), range(4))
    both.cloud.script.extend([both.cloud._take] * 4)
    both.cloud.script.append(hang)
    await both.step()
    assert [item[2] for item in await both.quarantined()] == [2]
    both.restart()
    await both.drain()
    assert both.arrived() == [0, 1, 3]
    assert [item[2] for item in await both.quarantined()] == [2]
    assert both.stats.refused_upstream == 1


async def test_a_reading_that_was_edited_replaces_what_is_there_and_is_nowhere_twice(both: Bench) -> None:
    """A service that makes its own ids would have both: there the edit is not sent."""
    session = await both.session()
    first = reading(1)
    await both.store.readings.import_readings(session, [first, reading(2)], reset=False)
    await both.drain()
    changed = first._replace(gravity="1.09999")
    await both.store.readings.import_readings(session, [changed], reset=False)
    both.cloud.script.append(reset_before)
    await both.drain()
    gravities = [row["gravity"] for row in both.cloud.kept(UPSTREAM) if number_of(row) == 1]
    assert gravities == (["1.09999"] if both.cloud.keeps_ids else ["1.00001"])
    assert both.cloud.read_backs != []


async def test_what_says_nothing_is_not_sent_and_in_nobodys_way(one: Bench) -> None:
    session = await one.session()
    empty = [reading(number)._replace(gravity="", temp="", comment="") for number in range(3)]
    await one.store.readings.import_readings(session, empty, reset=False)
    await one.arrive(session, [7])
    await one.drain()
    assert one.arrived() == [7]
    assert await one.store.quarantine.count() == 0


@pytest.mark.parametrize("lost", [[], [3], range(20)], ids=["nothing", "one", "all"])
async def test_a_service_restored_from_a_backup_gets_what_it_lost_and_nothing_twice(
    both: Bench, lost: list[int] | range
) -> None:
    session = await both.session()
    await both.arrive(session, range(20))
    await both.drain()
    kept = both.cloud.sessions[UPSTREAM]
    kept[:] = [row for row in kept if number_of(row) not in lost]
    both.cloud.requests.clear()
    since = reading(2).created_at
    found = await both.store.outbox.send_again(both.target.name, since, unnamed=True)
    assert found == {session.id: 18}
    await both.arrive(session, [20])
    await both.drain()
    missing = [number for number in lost if number < 2]
    assert sorted(both.arrived()) == [number for number in range(21) if number not in missing]
    ids = {row["_id"]["$oid"] for seen in both.cloud.imports for row in seen.rows}
    assert len(ids) == len(lost) - len(missing) + 1


async def test_resending_while_a_batch_is_under_way_forgets_nothing(both: Bench) -> None:
    session = await both.session()
    await both.arrive(session, range(8))
    await both.drain()
    both.cloud.sessions[UPSTREAM].clear()
    await both.arrive(session, [8])
    batch = await both.store.outbox.begin(both.target.name, session.id, 8)
    assert batch is not None
    await both.store.outbox.send_again(both.target.name, 0, unnamed=True)
    both.cloud.commit(UPSTREAM, [json.loads(row) for row in batch.rows])
    await both.store.outbox.settle(batch)
    both.restart()
    await both.drain()
    assert sorted(both.arrived()) == list(range(9))


async def test_a_resent_batch_is_not_larger_than_batches_are(one: Bench) -> None:
    await one.arrive(await one.session(), range(20))
    await one.drain()
    one.cloud.sessions.clear()
    one.cloud.requests.clear()
    await one.store.outbox.send_again(one.target.name, 0, unnamed=True)
    await one.drain()
    assert batches(one) == [8, 8, 4]


async def test_an_unknown_session_is_paused_and_the_others_flow(
    one: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    broken, fine = await one.session(78), await one.session(UPSTREAM)
    one.cloud.unknown.add(78)
    await one.arrive(broken, range(30))
    await one.arrive(fine, range(30, 50))
    await one.drain_all_but(broken.id)
    assert one.arrived() == list(range(30, 50))
    asked = [seen for seen in one.cloud.imports if "/78/" in seen.path]
    assert len(asked) == 1
    state = one.stats.parts[f"upstream {one.cloud.url}"]
    assert state == f"ok; brew session {broken.id} is paused: HTTP 404: no records found"
    assert one.stats.in_trouble == {f"upstream {one.cloud.url}"}
    rest = await one.step()
    assert rest.wake
    assert rest.seconds == pytest.approx(PAUSE_S, abs=10)
    await one.step()
    assert len([seen for seen in one.cloud.imports if "/78/" in seen.path]) == 2
    one.cloud.unknown.clear()
    await one.drain()
    assert one.arrived(78) == list(range(30))
    assert len([record for record in caplog.records if "pauses brew session" in record.message]) == 1
    assert one.stats.parts[f"upstream {one.cloud.url}"] == "ok"
    assert one.stats.in_trouble == set()


@pytest.mark.parametrize("code", [401, 403])
async def test_a_refused_key_pauses_the_target_with_one_line(
    one: Bench, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    caplog.set_level(logging.INFO)
    await one.arrive(await one.session(), range(3))
    await one.arrive(await one.session(78), range(3, 6))
    one.cloud.script.extend([status(code)] * 3)
    for _ in range(3):
        await one.step()
        rest = await one.step()
        assert rest == Wait(PAUSE_S, wake=False)
        assert one.stats.parts[f"upstream {one.cloud.url}"] == f"is paused: HTTP {code}: scripted {code}"
        assert one.stats.in_trouble == {f"upstream {one.cloud.url}"}
    assert len(one.cloud.imports) == 3
    await one.drain()
    assert one.arrived() + one.arrived(78) == list(range(6))
    await one.step()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert KEY not in caplog.text


async def test_an_outage_is_two_lines_in_the_log(one: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    session = await one.session()
    await one.arrive(session, range(3))
    await one.cloud.stop()
    for _ in range(40):
        await one.step()
    assert "waits to try again" in one.stats.parts[f"upstream {one.cloud.url}"]
    assert one.stats.in_trouble == {f"upstream {one.cloud.url}"}
    await one.arrive(session, range(3, 30))
    await one.cloud.start()
    await one.drain()
    await one.step()
    assert one.arrived() == list(range(30))
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


async def test_a_session_that_the_target_chokes_on_does_not_starve_the_others(one: Bench) -> None:
    sick, fine = await one.session(78), await one.session()

    take = one.cloud._take

    async def choke(visit: Visit) -> web.StreamResponse:
        return await (status(500) if visit.session == 78 else take)(visit)

    one.cloud._take = choke  # type: ignore[method-assign]
    await one.arrive(sick, range(8))
    await one.arrive(fine, range(8, 40))
    await one.drain_all_but(sick.id)
    assert one.arrived() == list(range(8, 40))
    one.cloud._take = take  # type: ignore[method-assign]
    await one.drain()
    assert one.arrived(78) == list(range(8))


async def test_our_own_disk_failing_after_the_answer_is_no_double(
    both: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await both.arrive(await both.session(), range(8))
    settle = both.store.outbox.settle
    failures = 2

    async def fail(batch: Batch, sent: Set[int], *, withheld: Set[int]) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreUnavailable("disk full")
        await settle(batch, sent, withheld=withheld)

    monkeypatch.setattr(both.store.outbox, "settle", fail)
    await both.step()
    assert "disk full" in both.stats.parts[f"upstream {both.cloud.url}"]
    await both.drain()
    assert batches(both) == [8]
    assert both.arrived() == list(range(8))
    assert both.stats.forwarded == 8


async def test_our_own_disk_failing_at_the_look(one: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(target: str, *, unnamed: bool) -> list[object]:
        raise StoreUnavailable("no reader")

    with monkeypatch.context() as patch:
        patch.setattr(one.store.outbox, "backlogs", fail)
        for _ in range(20):
            await one.step()
            assert (await one.step()).seconds == STORE_AGAIN_S  # never an outage's five minutes
    await one.step()
    assert one.stats.parts[f"upstream {one.cloud.url}"] == NOT_TRIED
    assert one.stats.in_trouble == set()


async def test_equal_readings_of_one_batch_stay_as_many(both: Bench) -> None:
    session = await both.session()
    twins = [reading(1)._replace(oid=new_object_id(1)) for _ in range(6)]
    await both.store.readings.import_readings(session, twins, reset=False)
    both.cloud.script.extend([accept_first(2), accept_first(1), reset_before])
    await both.drain()
    assert both.arrived() == [1] * 6


async def test_plain_http_to_far_away_is_said_once(one: Bench, caplog: pytest.LogCaptureFixture) -> None:
    one.target.name = "http://brew.example.com"
    task = asyncio.create_task(one.forwarder.run())
    await asyncio.wait([task], timeout=0.05)
    task.cancel()
    await asyncio.wait([task])
    assert [record.message for record in caplog.records if "plain http" in record.message] != []
