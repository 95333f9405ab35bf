"""Random endings in random order never lose or double a reading, whatever restarts in between."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.forward.forwarder import ForwardSettings
from tests.cases import examples
from tests.cloud import (
    Behaviour,
    Row,
    Visit,
    accept_first,
    accept_then_reset,
    html_200,
    redirect,
    reset_before,
    status,
    wrong_count,
)
from tests.system.forward.bench import Bench, bench, number_of


async def too_many(visit: Visit) -> web.StreamResponse:
    """Refused for their number; one alone is taken."""
    return await (status(413) if len(visit.rows) > 1 else visit.cloud._take)(visit)


ENDINGS: dict[str, Behaviour] = {
    "taken, cut": accept_then_reset,
    "cut": reset_before,
    "one taken, cut": accept_first(1),
    "three taken, cut": accept_first(3),
    "login page": html_200(),
    "login page, taken": html_200(keep=True),
    "429": status(429, headers={"Retry-After": "5"}),
    "500": status(500),
    "502, taken": status(502, keep=True),
    "401": status(401),
    "404": status(404),
    "413": too_many,
    "redirect": redirect("http://far.example/"),
    "two counted, all taken": wrong_count(2),
    "two taken and counted": wrong_count(2, keep=2),
}
READS = ["500", "login page", "401", "429", "redirect", "cut"]
STEPS = st.one_of(
    st.tuples(st.just("arrive"), st.integers(1, 7)),
    st.tuples(st.just("ending"), st.sampled_from(sorted(ENDINGS))),
    st.tuples(st.just("read"), st.sampled_from(READS)),
    st.tuples(st.just("step"), st.integers(1, 4)),
    st.tuples(st.just("restart"), st.just(0)),
)
Plan = list[tuple[str, int | str]]


CLAIMS = ("two counted, all taken", "two taken and counted")
"""These may say yes, which a cloud with rules never says to a bad reading."""


def honest(behaviour: Behaviour) -> Behaviour:
    async def behave(visit: Visit) -> web.StreamResponse:
        clean = not any(is_bad(row) for row in visit.rows)
        return await (behaviour if clean else visit.cloud._take)(visit)

    return behave


def is_bad(row: Row) -> bool:
    return number_of(row) % 11 == 3


async def follow(made: Bench, plan: Plan) -> int:
    """Do as the plan says, then let everything through; how many readings there were."""
    sessions = [await made.session(77), await made.session(78)]
    total = 0
    for what, how in plan:
        if what == "arrive":
            await made.arrive(sessions[total % 2], range(total, total + int(how)))
            total += int(how)
        elif what == "ending":
            ending = ENDINGS[str(how)]
            made.cloud.script.append(honest(ending) if how in CLAIMS else ending)
        elif what == "read":
            made.cloud.reads.append(ENDINGS[str(how)])
        elif what == "step":
            for _ in range(int(how)):
                await made.step()
        else:
            made.restart()
    await made.drain()
    return total


async def check(directory: Path, keeps_ids: bool, plan: Plan) -> None:
    async with bench(directory, ForwardSettings(batch_readings=5), keeps_ids=keeps_ids) as made:
        made.cloud.refuse = is_bad
        commit = made.cloud.commit

        def commit_good(session: int, rows: list[Row]) -> None:
            commit(session, [row for row in rows if not is_bad(row)])

        made.cloud.commit = commit_good  # type: ignore[method-assign]
        total = await follow(made, plan)
        good = [number for number in range(total) if number % 11 != 3]
        assert sorted(made.arrived(77) + made.arrived(78)) == good
        refused = {item[2] for item in await made.quarantined()}
        assert refused == {number for number in range(total) if number % 11 == 3}
        assert not made.cloud.unknown


@pytest.mark.parametrize("keeps_ids", [True, False])
@settings(max_examples=examples(0.4), suppress_health_check=list(HealthCheck))
@given(plan=st.lists(STEPS, max_size=25))
def test_no_sequence_loses_or_doubles(keeps_ids: bool, plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check(Path(directory), keeps_ids, plan))
