"""After the fault: let everything through, then judge."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection
from contextlib import closing

from gateway.domain.target import NOT_TRIED
from gateway.store.sqlite.engine.database import DATABASE_NAME
from tests.faults.cloud import Upstream
from tests.faults.devices import post_one
from tests.faults.frame import Run
from tests.faults.gateways import Gateway
from tests.faults.judge import judge
from tests.faults.ledger import Ledger
from tests.faults.readings import mark_of

FRESH_S = 10.0
"""P5: within which a fresh reading passes once the fault is over."""

NOTICED_S = 3.0
"""Instead of either, where something was made wrong on purpose and only has to be noticed."""

STALLED_S = 10.0
"""Without anything new upstream after which what is missing counts as lost."""

QUIET_S = 6.0
"""Without anything new upstream after which nothing more is expected of a damaged database."""

SALVAGE_S = 180.0

AT_REST = {"ok", NOT_TRIED}
"""Of an upstream that nothing holds up: where nothing was left to send, it was never tried."""

LOOK_S = 0.05


async def until(true: Callable[[], bool], patience_s: float) -> float | None:
    """Seconds until it was so; None where it did not come."""
    began = time.monotonic()
    while not true():
        if time.monotonic() - began > patience_s:
            return None
        await asyncio.sleep(LOOK_S)
    return time.monotonic() - began


async def settled(upstream: Upstream, promised: set[str], stalled_s: float = STALLED_S) -> None:
    """Wait until all that was promised is upstream, or nothing more comes."""
    count, since = -1, time.monotonic()
    missing = set(promised)
    while missing and time.monotonic() - since < stalled_s:
        missing = {mark for mark in missing if not upstream.holds(mark)}
        if (now := upstream.deliveries.total()) != count:
            count, since = now, time.monotonic()
        await asyncio.sleep(LOOK_S)


async def fresh_passes(run: Run, gateway: Gateway, upstream: Upstream, ledger: Ledger, device: str) -> None:
    """P5: a reading that is sent now is upstream in time; `device` is one of the prepared ones."""
    mark = mark_of(device, 9_000_000 + ledger.yes)
    began = time.monotonic()
    while (await post_one(gateway.http_port, device, mark, ledger))[0] != 200:
        if not run.expect(time.monotonic() - began < FRESH_S, "P5: a fresh reading is not taken"):
            return
        await asyncio.sleep(LOOK_S)
    await until(lambda: upstream.holds(mark), NOTICED_S if run.mutated else FRESH_S)
    if not run.expect(upstream.holds(mark), f"P5: a fresh reading is not upstream after {FRESH_S:g} s"):
        run.failures.append(f"{(await gateway.get('/healthz'))[1]}, {gateway.lines[-3:]}")
    run.highest("fresh_s", round(time.monotonic() - began, 2))


async def drained(
    run: Run,
    gateway: Gateway,
    upstream: Upstream,
    ledger: Ledger,
    *,
    device: str = "h0",
    where: str = "",
    doubtful: Collection[str] = (),
    issued: Collection[str] = (),
) -> None:
    """P5, then P1 to P4 of everything in the ledger; the gateway has to be running.

    What was acknowledged while a cut was under way is `doubtful`: it may be missing. Marks that
    were there before the ledger are `issued`, too.
    """
    if run.mutated and run.failures:
        return  # it was noticed: no need to wait for more
    await fresh_passes(run, gateway, upstream, ledger, device)
    promised = ledger.before() - set(doubtful)
    await settled(upstream, promised, NOTICED_S if run.mutated else STALLED_S)
    judge(promised, {*ledger.issued, *issued}, upstream.kept()).tell(run, where)
    run.count("sent_again", sum(count - 1 for count in upstream.deliveries.values()))
    await balanced(run, gateway, where)


async def quiet(gateway: Gateway, upstream: Upstream, wanted: Collection[str]) -> None:
    """Until all of it is upstream, or nothing more comes though nothing holds the gateway up."""
    count, since, began = -1, time.monotonic(), time.monotonic()
    while not all(upstream.holds(mark) for mark in wanted) and time.monotonic() - began < SALVAGE_S:
        if (now := upstream.deliveries.total()) != count:
            count, since = now, time.monotonic()
        if time.monotonic() - since > QUIET_S:
            parts = ((await gateway.get("/healthz"))[1] or {"parts": {}})["parts"]
            salvaging = "being salvaged" in parts.get("store", "")
            waiting = any(name.startswith("upstream") and said not in AT_REST for name, said in parts.items())
            status, told = await gateway.get("/manage/status")
            waiting = waiting or status != 200 or any(target["pending"] for target in told["targets"])
            if not salvaging and not waiting:
                return
            since = time.monotonic()
        await asyncio.sleep(LOOK_S)


async def balanced(run: Run, gateway: Gateway, where: str = "", *, may_push_out: bool = False) -> None:
    """P7: at rest the counters add up; whoever still waits for the store gets the time to come through.

    A payload that quarantine pushed out counts as lost, unless the scenario is about that.
    """
    kinds = ("stored", "duplicates", "thinned", "quarantined", "waiting", "refused", "not_stored")
    began = time.monotonic()
    while True:
        status, page = await gateway.get("/healthz")
        total = sum(page[kind] for kind in kinds) if status == 200 else -1
        if status == 200 and page["accepted"] == total:
            gone = _pushed_out(gateway)
            run.expect(may_push_out or not gone, f"{where}P7: quarantine pushed {gone} payloads out")
            return
        if time.monotonic() - began > FRESH_S:
            run.expect(False, f"{where}P7: /healthz answers {status}, {total} accounted for: {page}")
            return
        await asyncio.sleep(LOOK_S)


def _pushed_out(gateway: Gateway) -> int:
    """Payloads that quarantine has lost to its bounds."""
    sql = "SELECT value FROM counters WHERE name = 'quarantine_pushed_out'"
    with closing(sqlite3.connect(f"file:{gateway.data / DATABASE_NAME}?mode=ro", uri=True)) as connection:
        return int(connection.execute(sql).fetchone()[0])
