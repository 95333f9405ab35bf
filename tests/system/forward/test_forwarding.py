"""Several targets at once: each for itself, following what is said of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gateway.domain.target import Target
from gateway.errors import InvalidInput, NotFound, StoreUnavailable
from gateway.forward.forwarding import TABLE_AGAIN_S
from gateway.forward.kinds.service import ImportTarget
from gateway.forward.probe import probe
from tests.cloud import KEY, Visit, hang, status
from tests.system.forward.several import NAMES, NAP_S, READBACK_S, Several, forwarding, several


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Several]:
    async with several(tmp_path) as made:
        yield made


async def test_a_reading_goes_to_every_target_once(three: Several) -> None:
    async with forwarding(three.services):
        await three.arrive(*range(10))
        for name in NAMES:
            await three.until(name, list(range(10)))
        assert await three.words("a") == "ok"
    assert [d.forwarded for d in await three.services.store.deliveries.counts()] == [10, 10, 10]


@pytest.mark.parametrize("dead", ["gone", "hangs", "401"])
async def test_a_dead_target_delays_no_other(three: Several, dead: str) -> None:
    cloud = three.clouds["b"]
    if dead == "gone":
        await cloud.stop()
    elif dead == "hangs":
        cloud.script.append(hang)
    else:
        three.key_files["b"].write_text("wrong")
    async with forwarding(three.services):
        started = three.clock.monotonic()
        for number in range(5):
            await three.arrive(number)
            await three.until("a", list(range(number + 1)))
            await three.until("c", list(range(number + 1)))
        assert three.clock.monotonic() - started <= 5 * 3.0
        assert three.arrived("b") == []
        assert await three.words("a") == "ok"
    counts = {d.target: d.pending for d in await three.services.store.deliveries.counts()}
    assert counts == {"a": 0, "b": 5, "c": 0}


async def test_a_refused_key_says_so_and_a_new_one_works_after_resume(three: Several) -> None:
    three.key_files["b"].write_text("wrong")
    async with forwarding(three.services):
        await three.arrive(1)
        await three.until("a", [1])

        async def told() -> bool:
            return await three.words("b") == "is paused: HTTP 401: invalid api key"

        await three.wait(told)
        state = three.services.targets.states["b"]
        assert state.next_at == pytest.approx(three.clock.now() + 900, abs=5)
        three.key_files["b"].write_text(KEY)
        before = three.clock.monotonic()
        await three.services.targets.resume("b")
        await three.until("b", [1])
        assert three.clock.monotonic() - before <= NAP_S


async def test_what_the_user_paused_stays_so_over_a_restart_and_loses_nothing(three: Several) -> None:
    async with forwarding(three.services):
        await three.services.targets.pause("b")
        await three.arrive(1)
        await three.until("a", [1])
    async with forwarding(three.services):
        await three.arrive(2)
        await three.until("a", [1, 2])
        assert await three.words("b") == "paused by you; `targets resume b` goes on"
        assert three.services.stats.in_trouble == {f"upstream {three.clouds['b'].url}"}
        assert three.clouds["b"].requests == []
        await three.services.targets.resume("b")
        await three.until("b", [1, 2])


async def test_targets_come_and_go_while_it_runs(three: Several) -> None:
    await three.services.targets.remove("c")
    async with forwarding(three.services):
        await three.arrive(1)
        await three.until("a", [1])
        await three.services.targets.remove("a")
        await three.services.targets.add("c", three.clouds["c"].url, str(three.key_files["c"]))
        await three.until("c", [1])
        await three.arrive(2)
        await three.until("c", [1, 2])
        assert three.arrived("a") == [1]
        assert three.clouds["a"].url not in three.services.stats.targets


@pytest.mark.parametrize("kind", ["service", "influx"])
async def test_a_target_that_is_removed_is_no_trouble_any_more(three: Several, kind: str) -> None:
    """One that the user has paused, and one that cannot be made, because its settings are missing."""
    services = three.services
    url = "http://127.0.0.1:9" if kind == "service" else "influx:d"
    await services.store.targets.add(Target("d", url, "", kind=kind))
    await services.store.targets.pause("d", paused=kind == "service")
    async with forwarding(services):

        async def told() -> bool:
            return services.stats.in_trouble == {f"upstream {url}"}

        await three.wait(told)
        await services.targets.remove("d")
        assert services.stats.in_trouble == set()
        assert f"upstream {url}" not in services.stats.parts
        assert "d" not in services.targets.states


async def test_a_resend_is_heard_while_it_runs(three: Several) -> None:
    async with forwarding(three.services):
        await three.arrive(1, 2, 3)
        for name in NAMES:
            await three.until(name, [1, 2, 3])
        for name in ("a", "b"):
            three.clouds[name].sessions[70].pop(1)
            assert await three.services.targets.resend(name, 0, None) == {three.session.id: 3}
            await three.until(name, [1, 3, 2], nap_s=READBACK_S)
        assert three.arrived("c") == [1, 2, 3]


async def test_a_table_that_cannot_be_read_is_read_again(
    three: Several, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise StoreUnavailable("too many long reads at once")

    with monkeypatch.context() as patch:
        patch.setattr(three.services.store.targets, "all", fail)
        async with forwarding(three.services):
            assert await three.clock.someone_sleeps() == 5.0
            patch.undo()
            await three.arrive(1)
            await three.until("a", [1], nap_s=TABLE_AGAIN_S)


@pytest.mark.parametrize(
    ("name", "url", "error"),
    [
        ("a", "http://new.example", "already"),
        ("d", "{a}/", "already"),
        ("upstream", "http://new.example", "serve"),
        ("a b", "http://new.example", "name"),
        ("d", "new.example", "must look like"),
    ],
)
async def test_what_cannot_be_a_target_is_refused(three: Several, name: str, url: str, error: str) -> None:
    with pytest.raises(Exception, match=error):
        await three.services.targets.add(name, url.format(a=three.clouds["a"].url), str(three.key_files["a"]))
    assert len(await three.services.store.targets.all()) == 3


async def test_what_an_option_names_is_not_removed(three: Several) -> None:
    option = Target("upstream", "http://x", "/k", from_options=True, unnamed=True)
    await three.services.store.targets.take_options([option])
    with pytest.raises(InvalidInput, match="option"):
        await three.services.targets.remove("upstream")
    with pytest.raises(NotFound, match="targets list"):
        await three.services.targets.remove("nobody")


async def test_mapping_to_the_upstream_is_the_sessions_own_number(three: Several) -> None:
    option = Target("upstream", "http://x", "/k", from_options=True, unnamed=True)
    await three.services.store.targets.take_options([option])
    await three.services.targets.map(three.session, "upstream", 9)
    session = await three.services.store.sessions.get(three.session.id)
    assert session is not None
    assert session.upstream_id == 9
    await three.services.targets.map(session, "upstream", 0)
    assert await three.services.store.targets.sessions(option) == {}


async def not_there(visit: Visit) -> web.StreamResponse:
    return web.json_response({"message": "not-found", "detail": "no records found"}, status=404)


async def test_a_test_looks_at_everything_and_leaves_nothing(three: Several) -> None:
    cloud = three.clouds["a"]
    async with aiohttp.ClientSession() as client:
        target = ImportTarget(client, cloud.url, KEY, three.clock)

        async def findings(sessions: dict[int, int]) -> list[tuple[bool, str]]:
            return [(finding.ok, finding.words) for finding in await probe(target, "a", sessions)]

        assert await findings({1: 70}) == [(True, "brew session 1 is 70 there: it can be read with this key")]
        cloud.reads.append(not_there)
        assert await findings({1: 70}) == [(True, "brew session 1 is 70 there: it has no readings yet")]
        cloud.reads.extend([not_there, not_there])
        [(ok, words)] = await findings({1: 70})
        assert not ok
        assert "targets map" in words
        assert [ok for ok, _ in await findings({})] == [True, False]
        for code, remedy in ((401, "the key is refused"), (302, "redirects to"), (500, "try again later")):
            cloud.reads.append(status(code, headers={"Location": "https://x.example/"}))
            [(ok, words)] = await findings({1: 70})
            assert not ok
            assert remedy in words
        cloud.reads.append(status(200, body="<html>"))
        assert "not as a Brewing Data Service does" in (await findings({1: 70}))[0][1]
        await cloud.stop()
        [(ok, words)] = await findings({1: 70})
        assert not ok
        assert "nobody listens there; does the program run there, is the port right?" in words
    assert cloud.imports == []
