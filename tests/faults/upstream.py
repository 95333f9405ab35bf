"""U1 to U10 and D10: what an upstream can do; in this process, real store and connections, the clock by hand.

Each is played with both kinds of upstream: one that keeps `_id`s, and one that gives its own.
"""

import asyncio
from datetime import UTC, datetime
from email.utils import format_datetime
from unittest.mock import patch

from aiohttp import web

from gateway.domain.brewsession import BrewSession
from gateway.domain.target import PER_MINUTE
from gateway.forward.backoff import CAP_S, RETRY_AFTER_CAP_S, Backoff, parse_retry_after
from gateway.forward.forwarder import PAUSE_S, ForwardSettings
from gateway.forward.kinds import service as import_target
from tests.cloud import (
    Behaviour,
    Row,
    Visit,
    accept_first,
    accept_then_reset,
    reset_before,
    status,
    wrong_count,
)
from tests.faults.cloud import Upstream
from tests.faults.frame import Run, Scenario
from tests.faults.upstream_bench import CHUNK, believing, blind, judged, let_run, one_of, steps
from tests.faults.upstream_wire import WIRE_SCENARIOS
from tests.system.forward.bench import UPSTREAM, Bench, bad, bench, number_of

KINDS = (True, False)

HOUR_S = 3600.0
WEEK_HOURS = 168
WEEK_READINGS = 13_440
"""20 devices, a reading each in 15 minutes, for a week: below it the outage is shorter in proportion."""

SESSIONS = 20
DRAIN_S, DRAIN_MANY_S = 600.0, 7200.0
"""For a week's readings of 20 such devices, and for more."""


class Watched(Upstream):
    """Knows when requests came, by the test's clock, and whether a session's readings were in order."""

    def watch(self, made: Bench) -> None:
        """From now on."""
        self.clock = made.clock
        self.times: list[float] = []
        self.last: dict[int, int] = {}
        self.disorder = 0

    def commit(self, session: int, rows: list[Row]) -> None:
        """Look, and keep them."""
        self.times.append(self.clock.monotonic())
        for row in rows:
            self.disorder += number_of(row) <= self.last.get(session, -1)
            self.last[session] = number_of(row)
        super().commit(session, rows)


ON_THE_WAY = 1
"""Requests are counted where they arrive, and this clock may jump while one is on its way."""


async def down_for_a_week(run: Run) -> None:
    """U1."""
    cloud = Watched(keeps_ids=run.seed % 2 == 0)
    async with bench(run.sub("data"), ForwardSettings(), cloud=cloud, per_minute=PER_MINUTE) as made:
        cloud.watch(made)
        sessions = [await made.session(UPSTREAM + number) for number in range(SESSIONS)]
        await cloud.stop()
        task = asyncio.create_task(made.forwarder.run())
        with believing(run):
            await _arriving(run, made, sessions)
            back_at = made.clock.monotonic()
            await cloud.start()
            given_up = back_at + 2 * DRAIN_MANY_S
            await let_run(made.clock, lambda: cloud.deliveries.total() >= run.n, given_up, rests=run.mutated)
        drained_s = max(cloud.times, default=given_up) - back_at
        task.cancel()
        await asyncio.wait([task])
    bound_s = DRAIN_S if run.n <= WEEK_READINGS else DRAIN_MANY_S
    run.expect(drained_s <= bound_s, f"drained in {drained_s:.0f} s, more than {bound_s:.0f}")
    run.expect(len(cloud.deliveries) == run.n, f"lost: {run.n - len(cloud.deliveries)}")
    run.expect(cloud.deliveries.total() == len(cloud.deliveries), "some came twice")
    run.expect(not cloud.disorder, f"{cloud.disorder} out of order")
    busiest = max(
        (sum(t <= u < t + 60 for u in cloud.times[i:]) for i, t in enumerate(cloud.times)), default=0
    )
    run.expect(busiest <= PER_MINUTE + ON_THE_WAY, f"{busiest} requests in a minute")
    run.figure("lost", run.n - len(cloud.deliveries))
    run.figure("drained_s", drained_s)
    run.figure("requests_a_minute", busiest)


async def _arriving(run: Run, made: Bench, sessions: list[BrewSession]) -> None:
    hours = max(1, WEEK_HOURS * min(run.n, WEEK_READINGS) // WEEK_READINGS)
    began = made.clock.monotonic()
    for hour in range(hours):
        numbers = range(run.n * hour // hours, run.n * (hour + 1) // hours)
        for place, session in enumerate(sessions):
            await made.arrive(session, [number for number in numbers if number % SESSIONS == place])
        made.notices.notify()
        await let_run(made.clock, lambda: False, began + (hour + 1) * HOUR_S)
        run.step(len(numbers))


PAUSING = frozenset({401, 403, 404, 405, 410, 415, *range(300, 400)})
FOR_EVER = frozenset({408, 425, 429, *range(500, 600), *range(100, 200)})
TIMES = 3
HASTE_S = 0.3
"""Instead of the bench's deadline: after a status below 200 no answer ever comes."""


async def every_status(run: Run) -> None:
    """U2."""
    statuses = [code for code in range(100, 600) if code != 101]
    chosen = statuses if run.n >= len(statuses) else run.random.sample(statuses, run.n)
    for kind in KINDS:
        async with one_of(run, kind, "statuses") as made:
            with believing(run):
                await _statuses(run, made, chosen)
        run.expect(kind or run.figures["lost"] == 0, "some are lost")
        async with one_of(run, kind, "poison") as made:
            await _poison(run, made)


async def _statuses(run: Run, made: Bench, chosen: list[int]) -> None:
    made.deadline_s = HASTE_S
    session = await made.session()
    for place, code in enumerate(chosen):
        numbers = range(place * 2, place * 2 + 2)
        made.cloud.script.extend([status(code)] * TIMES)
        await made.arrive(session, numbers)
        made.restart()
        began = made.clock.monotonic()
        before = await made.store.quarantine.count()
        await steps(made)
        waited = made.clock.monotonic() - began
        if code in PAUSING:
            run.expect(waited >= TIMES * PAUSE_S, f"{code}: asked again after {waited:.0f} s")
        elif code in FOR_EVER:
            quarantined = await made.store.quarantine.count() - before
            run.expect(not quarantined, f"{code}: {quarantined} in quarantine")
        made.cloud.script.clear()
        run.step(made.cloud.keeps_ids)
    await judged(run, made, range(2 * len(chosen)))


async def _poison(run: Run, made: Bench) -> None:
    """One bad reading among eight is found, wherever it stands."""
    session = await made.session()
    for place in range(8):
        made.cloud.refuse = bad(place * 9)
        made.cloud.requests.clear()
        await made.arrive(session, range(place * 8, place * 8 + 8))
        made.restart()
        await steps(made)
        run.highest("requests_for_poison", len(made.cloud.imports))
        run.expect(len(made.cloud.imports) <= 1 + (3 + 1) + 1, f"{len(made.cloud.imports)} requests for one")
    refused = [item[2] for item in await made.quarantined()]
    run.expect(refused == [place * 9 for place in range(8)], f"in quarantine: {refused}")


def _retry_after(now: float) -> list[tuple[str | None, float | None]]:
    """Forms of the header, and how long it has to be waited; None: by our own backoff."""

    def date(seconds: float) -> str:
        return format_datetime(datetime.fromtimestamp(now + seconds, UTC), usegmt=True)

    cap = RETRY_AFTER_CAP_S
    return [
        ("7", 7), ("1200", 1200), (date(90), 90), (date(-90), None), ("-5", None), ("1" + "0" * 12, cap),
        (date(10**7), cap), ("soon", None), (None, None), ("", None),
    ]  # fmt: skip


async def retry_after(run: Run) -> None:
    """U3."""
    async with one_of(run, True, "retry") as made:
        session = await made.session()
        parse = (lambda *_: None) if run.mutated else parse_retry_after
        with patch.object(import_target, "parse_retry_after", parse):
            for number in range(run.n):
                forms = _retry_after(made.clock.now())
                text, wanted = forms[number % len(forms)]
                headers = {} if text is None else {"Retry-After": text}
                made.cloud.script.append(status(429, headers=headers))
                await made.arrive(session, [number])
                made.restart()
                began = made.clock.monotonic()
                await steps(made)
                waited = made.clock.monotonic() - began
                wanted_s = 1.0 if wanted is None else wanted  # the first wait of our own, drawn as 1 s here
                run.expect(
                    abs(waited - wanted_s) <= 1, f"{text!r}: waited {waited:.1f} s, not {wanted_s:.1f}"
                )
                run.step()
        await judged(run, made, range(run.n))


GATEWAYS = 100
OUTAGE_S = 3600.0
BIN_S = 10.0


async def jitter(run: Run) -> None:
    """U4: after a common outage, gateways that each wait at random do not come all at once."""
    bins = [0] * int(CAP_S / BIN_S)
    for _ in range(run.n):
        for _ in range(GATEWAYS):
            backoff, now = Backoff(), 0.0
            while now < OUTAGE_S:
                backoff.failed(now, 1.0 if run.mutated else run.random.random())
                now = backoff.until
            late_s = now - OUTAGE_S
            if run.expect(late_s < CAP_S, f"one came {late_s:.0f} s later"):
                bins[int(late_s / BIN_S)] += 1
        run.step()
    peak_over_mean = max(bins) / (sum(bins) / len(bins))
    run.figure("peak_over_mean", round(peak_over_mean, 2))
    run.expect(peak_over_mean <= 3, f"the peak is {peak_over_mean:.1f} times the mean")


def honest(claims: Behaviour) -> Behaviour:
    """Where a reading is bad, no yes in full: a service with rules would not say that it took it."""

    async def behave(visit: Visit) -> web.StreamResponse:
        refuse = visit.cloud.refuse
        clean = refuse is None or not any(map(refuse, visit.rows))
        return await (claims if clean else visit.cloud._take)(visit)

    return behave


PARTIAL: tuple[Behaviour, ...] = (
    accept_first(0), accept_first(5), honest(wrong_count(3, keep=3)), honest(wrong_count(5)),
    honest(wrong_count(0, keep=8)),
    accept_then_reset, reset_before, status(502, keep=True), status(500),
)  # fmt: skip


async def partial(run: Run) -> None:
    """U8."""
    for kind in KINDS:
        for first in range(0, run.n, CHUNK):
            async with one_of(run, kind, f"partial-{first}") as made:
                number = min(CHUNK, run.n - first)
                with blind(run):
                    await _partial(run, made, number)
                await judged(run, made, range(number * 8))


async def _partial(run: Run, made: Bench, batches: int) -> None:
    refused = {number for number in range(batches * 8) if number % 13 == 4}
    made.cloud.refuse = bad(*refused)
    commit = made.cloud.commit

    def commit_good(session: int, rows: list[Row]) -> None:
        commit(session, [row for row in rows if number_of(row) not in refused])

    made.cloud.commit = commit_good  # type: ignore[method-assign]
    session = await made.session()
    for number in range(batches):
        made.cloud.script.extend(run.random.choices(PARTIAL, k=run.random.randint(1, 3)))
        await made.arrive(session, range(number * 8, number * 8 + 8))
        made.restart()
        await steps(made)
        made.cloud.script.clear()
        run.step(made.cloud.keeps_ids)


FORGETTING = 10
"""Backups that one upstream is restored from."""


async def restored(run: Run) -> None:
    """U9: it forgets what it had; `targets resend` brings that back and nothing else."""
    for kind in KINDS:
        for first in range(0, run.n, FORGETTING):
            async with one_of(run, kind, f"restored-{first}") as made:
                with blind(run):
                    await _forget(run, made, min(FORGETTING, run.n - first))


async def _forget(run: Run, made: Bench, times: int) -> None:
    session = await made.session()
    for number in range(times):
        await made.arrive(session, range(number * 20, number * 20 + 20))
        made.restart()
        await steps(made)
        kept, share = made.cloud.sessions[UPSTREAM], run.random.random()
        kept[:] = [row for row in kept if run.random.random() < share]
        ids = {row["_id"]["$oid"] for row in kept}
        await made.store.outbox.send_again(made.target.name, 0, unnamed=True)
        made.restart()
        await steps(made)
        now = {row["_id"]["$oid"] for row in made.cloud.kept(UPSTREAM)}
        run.expect(ids <= now, "what it still had was replaced")
        await judged(run, made, range(number * 20 + 20))
        run.step(made.cloud.keeps_ids)


CUTS: tuple[Behaviour, ...] = (
    accept_then_reset, reset_before, accept_first(1), accept_first(4), accept_first(7),
)  # fmt: skip


async def answer_lost(run: Run) -> None:
    """D10: cut in mid-batch, and the process ends before it could note anything; then it starts anew."""
    for kind in KINDS:
        for first in range(0, run.n, CHUNK):
            async with one_of(run, kind, f"cut-{first}") as made:
                number = min(CHUNK, run.n - first)
                with blind(run):
                    await _cut(run, made, number)
                await judged(run, made, range(number * 8))


async def _cut(run: Run, made: Bench, cuts: int) -> None:
    session = await made.session()
    for number in range(cuts):
        made.cloud.script.append(run.random.choice(CUTS))
        await made.arrive(session, range(number * 8, number * 8 + 8))
        made.restart()
        await made.forwarder.step()
        made.restart()
        await steps(made)
        run.step(made.cloud.keeps_ids)


def _scenario(  # a row of the table
    id: str, what: str, unit: str, full: int, small: int, play: object, mutation: str, mutation_n: int
) -> Scenario:
    assert callable(play)
    return Scenario(id, what, unit, full, small, play, mutation=mutation, mutation_n=mutation_n)


BELIEVES, BLIND = "every answer taken for a yes", "what is read back not looked at"

SCENARIOS = (
    _scenario("D10", "the answer is lost in mid-batch", "cuts", 1000, 25, answer_lost, BLIND, 10),
    _scenario("U1", "down for a week", "readings", 604_800, 800, down_for_a_week, BELIEVES, 200),
    _scenario("U2", "every status, thrice", "statuses", 499, 10, every_status, BELIEVES, 8),
    _scenario("U3", "forms of Retry-After", "answers", 1000, 20, retry_after, "the header ignored", 10),
    _scenario("U4", "100 gateways after a common outage", "outages", 1000, 30, jitter, "no jitter", 5),
    *WIRE_SCENARIOS,
    _scenario("U8", "partial imports", "batches", 1000, 20, partial, BLIND, 10),
    _scenario("U9", "restored from an old backup", "backups", 200, 6, restored, BLIND, 3),
)
"""Of upstreams, and of an answer that is lost."""
