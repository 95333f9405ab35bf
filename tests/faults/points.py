"""U11: kill -9 while points go to an InfluxDB, which answers, fails, and cuts off."""

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain.target import Route
from gateway.services.build import build_services
from gateway.services.mapped_targets import NewMapped
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.faults.devices import Fleet
from tests.faults.drain import until
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import Gateway, prepare
from tests.faults.ledger import Ledger
from tests.influx import FakeInflux
from tests.receivers import Reply, Request

YES_EACH = 100
"""Yeses between two kills at most."""

PAUSE_S = 0.02
"""Four devices then send about 200 readings a second."""

DRAIN_S = 60.0

ROUNDED = 0.000006
"""Five decimals of SG are sent."""

STORED = """
SELECT d.key, r.created_at, lower(hex(r.oid)), r.sg, r.comment
FROM readings r JOIN devices d ON d.id = r.device_id
"""


class Unsteady(FakeInflux):
    """Of ten requests two are cut off before the points are kept, two after, one is answered 503, one 500."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.is_well = False

    def _answer(self, request: Request) -> Reply:
        fate = 9 if self.is_well else self.chance.randrange(10)
        if fate in {0, 1}:
            return Reply(cut=True)
        if fate == 2:
            return Reply(503, b"", {"Retry-After": "1"})
        answer = super()._answer(request)
        if fate in {3, 4}:
            return Reply(cut=True)
        return Reply(500) if fate == 5 else answer


async def play_u11(run: Run) -> None:
    """After kills and failures every stored reading is one point, with its value; nothing else is there."""
    influx, ledger = Unsteady(run.random), Ledger(run.ledgers / "ledger")
    data = run.sub("data")
    await prepare(data)
    async with influx.listening():
        await _add_target(data, influx.url)
        gateway = Gateway(data, weak="skipping" if run.mutated else "")
        try:
            async with Fleet(ledger, gateway.http_port, gateway.mqtt_port, pause_s=PAUSE_S) as fleet:
                for _ in range(run.n):
                    if not run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}"):
                        return
                    await fleet.more(run.random.randint(1, 2 * YES_EACH))
                    await gateway.kill()
                    run.step()
            influx.is_well = True
            if run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}"):
                expected = await asyncio.to_thread(_stored, data)
                await until(lambda: influx.points.keys() >= expected.keys(), 1 if run.mutated else DRAIN_S)
                _judge(run, influx, expected, ledger)
        finally:
            await gateway.kill()
            ledger.close()


async def _add_target(data: Path, url: str) -> None:
    store = SqliteStore(data)
    await store.open()
    try:
        mapped = build_services(store, data, SystemClock()).mapped
        await mapped.add(
            NewMapped("points", "influx", url, per_minute=6000, options={"api": 1, "bucket": "b"})
        )
        await mapped.add_route("points", Route("all"), 0)
    finally:
        await store.close()


def _stored(data: Path) -> dict[tuple[str, int], tuple[float, str]]:
    """What has to be there: by series and time, gravity and mark. Worked out here, not by what sends it."""
    with closing(sqlite3.connect(data / DATABASE_NAME)) as connection:
        rows = connection.execute(STORED).fetchall()
    found = {
        (f"hydrometer,device={key}", at * 1_000_000 + int(oid[-5:], 16) % 1_000_000): (sg, mark)
        for key, at, oid, sg, mark in rows
    }
    assert len(found) == len(rows), "two readings are one point"
    return found


def _judge(
    run: Run, influx: FakeInflux, expected: dict[tuple[str, int], tuple[float, str]], ledger: Ledger
) -> None:
    lost = expected.keys() - influx.points.keys()
    invented = influx.points.keys() - expected.keys()
    changed = [
        at
        for at in expected.keys() & influx.points.keys()
        if abs(_gravity(influx.points[at]) - expected[at][0]) > ROUNDED
    ]
    unstored = ledger.before() - {mark for _, mark in expected.values()}
    run.figure("points", len(influx.points))
    run.figure("written", sum(influx.writes))
    run.expect(not lost, f"{len(lost)} of {len(expected)} readings are no point")
    run.expect(not invented, f"{len(invented)} points are no reading")
    run.expect(not changed, f"{len(changed)} points have another gravity")
    run.expect(not unstored, f"{len(unstored)} acknowledged readings are not stored")


def _gravity(fields: str) -> float:
    return next(float(field[3:]) for field in fields.split(",") if field.startswith("sg="))


SCENARIOS = (
    Scenario(
        "U11",
        "kill -9 while points go to an InfluxDB that fails and cuts off",
        unit="kills",
        full=500,
        small=3,
        play=play_u11,
        mutation="the watermark moves before the points leave",
        mutation_n=2,
    ),
)
