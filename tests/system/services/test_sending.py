"""What is told of sending on: by target and by brew, in counts and in kinds of states."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.target import TargetState
from gateway.events import Topic
from gateway.services.sending import BrewSending
from gateway.store.records import Mirrored
from gateway.store.sqlite import totals
from tests.system.forward.bench import bad, reading
from tests.system.forward.several import NAP_S, Several, forwarding, several


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Several]:
    async with several(tmp_path) as made:
        yield made


async def at_targets(three: Several) -> dict[str, BrewSending]:
    """The states of the only brew by target; they must be those of the overview, and those of all counts."""
    found = {each.target: each for each in await three.services.sending.sending_of(three.session)}
    for target in await three.services.sending.overview():
        brew = found[target.target.name]
        # The next attempt may have another time by now.
        (same,) = target.brews.values()
        assert replace(same, next_at=None) == replace(brew, next_at=None)
        assert (target.sent, target.waiting, target.refused) == (brew.sent, brew.waiting, brew.refused)
        assert (target.oldest_at, target.last_at) == (brew.oldest_at, brew.last_at)
    for delivery in await three.services.store.deliveries.counts(three.session.id):
        brew = found[delivery.target]
        assert (delivery.forwarded, delivery.pending) == (brew.sent, brew.waiting)
        assert (delivery.refused, delivery.upstream_id) == (brew.refused, brew.number)
        assert (delivery.oldest_at and delivery.oldest_at // 1000) == brew.oldest_at
    return found


async def test_what_waits_is_sent_and_each_target_counts_for_itself(three: Several) -> None:
    three.clouds["b"].refuse = bad(2)
    await three.services.targets.pause("c")
    before = await at_targets(three)
    assert [(brew.state, brew.sent, brew.waiting) for brew in before.values()] == [
        ("off", 0, 0), ("off", 0, 0), ("paused", 0, 0)
    ]  # fmt: skip
    async with forwarding(three.services):
        await three.arrive(*range(5))
        await three.until("a", [0, 1, 2, 3, 4])
        await three.until("b", [0, 1, 3, 4])
        after = await at_targets(three)
    newest = reading(4).created_at
    assert {name: (b.state, b.sent, b.waiting, b.refused, b.last_at) for name, b in after.items()} == {
        "a": ("sent", 5, 0, 0, newest),
        "b": ("sent", 4, 0, 1, newest),
        "c": ("paused", 0, 5, 0, None),
    }
    assert after["c"].oldest_at is not None


async def test_who_looks_is_told_when_something_was_sent(three: Several) -> None:
    with three.services.notices.follow() as listener:
        async with forwarding(three.services):
            await three.arrive(1)
            listener.take()  # everything may have changed: the test stores past intake
            told: set[Topic] = set()

            async def is_told() -> bool:
                told.update(listener.take())
                return Topic("sending") in told

            await three.wait(is_told, NAP_S)
            await three.services.targets.pause("b")
            assert Topic("sending") in listener.take()


async def test_what_waits_is_the_same_by_its_place_and_by_its_brew(
    three: Several, monkeypatch: pytest.MonkeyPatch
) -> None:
    await three.services.targets.pause("b")
    async with forwarding(three.services):
        await three.arrive(1, 2)
        await three.until("a", [1, 2])
        await three.until("c", [1, 2])
    await three.arrive(3)
    by_place = await three.services.store.totals.sending()
    monkeypatch.setattr(totals, "NEAR", -1)
    assert await three.services.store.totals.sending() == by_place
    assert {each.target: each.waiting for each in by_place} == {"a": 1, "b": 3, "c": 1}


async def test_a_copy_of_what_the_service_has_was_never_sent(three: Several) -> None:
    store = three.services.store
    await store.readings.add_mirrored(three.session, [reading(1), reading(2)])
    await store.mirrors.remember(
        three.clouds["a"].url, 1, "brewsession", Mirrored("70", str(three.session.id), "")
    )
    await three.arrive(3)
    assert {b.waiting for b in (await at_targets(three)).values()} == {1}


async def test_troubles_have_their_kind(three: Several) -> None:
    three.key_files["a"].write_text("wrong")
    await three.clouds["b"].stop()
    three.clouds["c"].unknown.add(70)
    async with forwarding(three.services):
        await three.arrive(1)

        async def told() -> bool:
            found = await three.services.sending.sending_of(three.session)
            return [brew.state for brew in found] == ["blocked", "retries", "not_taken"]

        await three.wait(told)
        found = await at_targets(three)
        overview = {t.target.name: (t.state, t.reason) for t in await three.services.sending.overview()}
    assert found["a"].reason == "HTTP 401: invalid api key"
    assert found["a"].next_at is not None
    assert overview["a"] == ("blocked", found["a"].reason)
    assert overview["c"] == ("partly", "")
    assert found["c"].reason


async def test_a_brew_that_goes_there_no_longer_has_ended(three: Several) -> None:
    async with forwarding(three.services):
        await three.arrive(1)
        await three.until("a", [1])
        await three.services.targets.map(three.session, "a", 0)
        await three.arrive(2)
        await three.until("b", [1, 2])
        await three.until("c", [1, 2])
        found = await at_targets(three)
    assert (found["a"].state, found["a"].sent, found["a"].waiting) == ("ended", 1, 0)
    assert found["a"].number is None


async def test_what_holds_everything_back_is_told(three: Several) -> None:
    doubt = "the clock is in doubt"
    three.services.targets.states["a"] = TargetState(doubt, kind="held", reason=doubt)
    first = (await three.services.sending.sending_of(three.session))[0]
    assert (first.state, first.reason) == ("held", doubt)
