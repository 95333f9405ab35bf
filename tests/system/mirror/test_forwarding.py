"""A mirrored session's new readings go to the service it came from; when they come back, they are known."""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.domain.brewsession import BrewSession
from gateway.forward.forwarder import Forwarder, ForwardSettings
from gateway.forward.kinds.service import ImportTarget
from gateway.services.brewsessions import SessionChange
from tests.cases import examples
from tests.system.mirror.bench import NOW, Instance, copy, iso, item, reading, two

INNER = "X-Inner"


@dataclass
class Pair:
    """What is copied, what copies, and the forwarder between them."""

    there: Instance
    here: Instance
    forwarder: Forwarder
    arrived: list[int] = field(default_factory=list)

    async def session(self, remote_id: int = 1) -> BrewSession:
        found = [s for s in await self.here.store.sessions.all() if s.upstream_id == remote_id]
        assert len(found) == 1
        return found[0]

    async def report(self, number: int) -> None:
        """A device of ours reports into the mirrored session."""
        self.arrived.append(number)
        rows = [reading(number, comment=str(number))]
        await self.here.store.readings.import_readings(await self.session(), rows, reset=False)

    async def report_there(self, number: int) -> None:
        """Somebody else reports into the session there."""
        self.arrived.append(number)
        made = iso(int(NOW) - 3600 + number)
        row = item(0, created_at=made, name="RED", gravity=f"1.0{number:02d}", temp="20",
                   temp_unit="C", comment=str(number))  # fmt: skip
        del row["_id"]
        await self.there.take(1, [row])

    async def drain(self) -> None:
        for _ in range(50):
            if not await self.here.store.outbox.backlogs(self.there.url):
                return
            rest = await self.forwarder.step()
            await self.here.clock.sleep(rest.seconds or 0.0)
        raise AssertionError(self.here.parts.stats.parts)

    async def both(self) -> tuple[list[Any], list[Any]]:
        there = (await self.there.get("/v1/fermentation/1"))["readings"]
        here = (await self.here.get(f"/v1/fermentation/{(await self.session()).id}"))["readings"]
        return there, here


async def forget_ids(request: web.Request) -> web.StreamResponse | None:
    """The service gives readings ids of its own, and writes numbers in its own way."""
    if request.method != "POST" or INNER in request.headers:
        return None
    rows = json.loads(await request.read())
    for row in rows:
        row.pop("_id", None)
        row["gravity"] += "0"
    headers = {"X-API-KEY": request.headers["X-API-KEY"], INNER: "1"}
    async with (
        aiohttp.ClientSession() as http,
        http.post(request.url, json=rows, headers=headers) as answer,
    ):
        return web.Response(body=await answer.read(), status=answer.status, content_type="application/json")


@asynccontextmanager
async def pair(directory: Path, keeps_ids: bool) -> AsyncIterator[Pair]:
    async with two(directory) as (there, here), aiohttp.ClientSession() as http:
        if not keeps_ids:
            there.before = forget_ids
        await there.parts.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
        await there.take(1, [item(number) for number in range(5)])
        target = ImportTarget(http, there.url, there.key, here.clock)
        services = here.parts
        forward = ForwardSettings(batch_readings=3, unnamed=False)
        forwarder = Forwarder(
            here.store.outbox, target, services.notices, services.stats, here.clock, forward
        )
        yield Pair(there, here, forwarder)


@pytest.mark.parametrize("keeps_ids", [True, False])
async def test_a_new_reading_is_on_both_sides_once(tmp_path: Path, keeps_ids: bool) -> None:
    async with pair(tmp_path, keeps_ids) as both:
        await copy(both.here, both.there.source)
        assert await both.here.store.outbox.backlogs(both.there.url) == []
        for number in range(7):
            await both.report(number)
        await both.drain()
        tally = await copy(both.here, both.there.source)
        assert (tally.counts["readings"].copied, tally.failures) == (0, 0)
        there, here = await both.both()
        assert [r["comment"] for r in there] == [r["comment"] for r in here] == [""] * 5 + list("0123456")
        assert ([r["_id"] for r in there] == [r["_id"] for r in here]) is keeps_ids
        assert await both.here.store.outbox.backlogs(both.there.url) == []


async def test_it_goes_to_the_session_it_came_from_whatever_its_id_is_here(tmp_path: Path) -> None:
    async with pair(tmp_path, keeps_ids=True) as both:
        for number in range(3):
            await both.here.parts.brewsessions.add_session(1, SessionChange(batchcode=f"OWN{number}"))
        await copy(both.here, both.there.source)
        assert (await both.session()).id == 4
        await both.report(1)
        await both.drain()
        assert [path for path, _ in both.there.seen if path.endswith("import")][
            -1
        ] == "/v1/fermentation/1/import"
        there, here = await both.both()
        assert [r["comment"] for r in there] == [r["comment"] for r in here]


async def test_a_forwarder_to_another_service_sends_nothing_of_it(tmp_path: Path) -> None:
    async with pair(tmp_path, keeps_ids=True) as both:
        await copy(both.here, both.there.source)
        await both.report(1)
        other = "http://other.example"
        assert await both.here.store.outbox.backlogs(other, unnamed=True) == []
        assert len(await both.here.store.outbox.backlogs(both.there.url, unnamed=False)) == 1


STEPS = st.one_of(
    st.tuples(st.just("here"), st.integers(0, 9)),
    st.tuples(st.just("there"), st.integers(0, 9)),
    st.tuples(st.just("forward"), st.integers(1, 3)),
    st.tuples(st.just("mirror"), st.just(0)),
    st.tuples(st.just("stopped"), st.integers(1, 4)),
)


async def follow(both: Pair, steps: list[tuple[str, int]]) -> None:
    await copy(both.here, both.there.source)
    for what, number in steps:
        if what == "here":
            await both.report(number)
        elif what == "there":
            await both.report_there(number)
        elif what == "mirror":
            await copy(both.here, both.there.source)
        elif what == "stopped":
            await stopped(both, number)
        else:
            for _ in range(number):
                rest = await both.forwarder.step()
                await both.here.clock.sleep(rest.seconds or 0.0)
    await both.drain()
    await copy(both.here, both.there.source)


async def stopped(both: Pair, number: int) -> None:
    """A run that is stopped at the request of that number."""
    ordinary, first = both.there.before, len(both.there.seen)

    async def before(request: web.Request) -> web.StreamResponse | None:
        if len(both.there.seen) - first == number:
            task.cancel()
            await asyncio.sleep(0)
        return None if ordinary is None else await ordinary(request)

    both.there.before = before
    task = asyncio.ensure_future(copy(both.here, both.there.source))
    await asyncio.wait([task])
    both.there.before = ordinary


async def check(directory: Path, keeps_ids: bool, steps: list[tuple[str, int]]) -> None:
    async with pair(directory, keeps_ids) as both:
        await follow(both, steps)
        expected = Counter([*[""] * 5, *map(str, both.arrived)])
        there, here = await both.both()
        assert Counter(r["comment"] for r in there) == expected
        assert Counter(r["comment"] for r in here) == expected
        assert (await copy(both.here, both.there.source)).counts["readings"].copied == 0


@pytest.mark.parametrize("keeps_ids", [True, False])
@settings(max_examples=examples(0.25), suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, max_size=14))
def test_in_whatever_order_every_reading_is_on_both_sides_once(
    keeps_ids: bool, steps: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check(Path(directory), keeps_ids, steps))
