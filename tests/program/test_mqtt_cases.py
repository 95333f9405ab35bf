"""Every golden case of MQTT through mosquitto into a real store; what it retains comes once."""

from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.store.sqlite.store import SqliteStore
from tests.pure.drivers.messages import topic_map
from tests.system.transports.conftest import (
    MOSQUITTO,
    Mosquitto,
    wait_for,
)
from tests.system.transports.test_mqtt_cases import BREWPILESS, Bench, cases, run_cases
from tests.system.transports.test_mqtt_cases import store as store  # the fixture


@pytest.fixture(scope="module")
def shared_mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """One broker for the whole module; who retains something clears it."""
    if MOSQUITTO is None:
        pytest.skip("mosquitto is not installed")
    broker = Mosquitto(tmp_path_factory.mktemp("mosquitto"))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
async def mosquitto_bench(store: SqliteStore, shared_mosquitto: Mosquitto) -> AsyncIterator[Bench]:
    bench = Bench(store, shared_mosquitto.url, topic_map())
    yield bench
    topics = {message["topic"] for case in cases().values() for message in case["messages"]}
    await bench.send([{"topic": one, "payload": "", "qos": 1, "retain": True} for one in sorted(topics)])


@pytest.mark.broker
async def test_every_case_by_mosquitto_live_and_none_again_as_retained(mosquitto_bench: Bench) -> None:
    bench, wanted = mosquitto_bench, cases()
    async with bench.listening():
        wrong = await run_cases(bench, wanted)
    assert not wrong, "\n".join(wrong)
    assert bench.stats.quarantined == sum("expected_error" in case for case in wanted.values())
    stored, bench.clock.days = len(await bench.lines()), bench.clock.days + 1
    async with bench.listening():
        await bench.send_last()
    assert len(await bench.lines()) == stored + 1, "what the broker retains came again"


@pytest.mark.broker
async def test_retained_and_then_sent_is_one_reading(mosquitto_bench: Bench) -> None:
    bench = mosquitto_bench
    told = [{"topic": "brewery/bpl1", "payload": BREWPILESS, "qos": 1, "retain": True}]
    await bench.send(told)
    async with bench.listening():
        await bench.send_last()
        assert [line["name"] for line in await bench.lines()] == ["last"]
        await bench.send(told)
        await wait_for(lambda: bench.stats.stored == 2)
        await bench.send_last()
    assert [line["name"] for line in await bench.lines()] == ["last", "bpl1", "last"]


@pytest.mark.broker
async def test_retained_and_kept_for_us_while_we_were_away_is_one_reading(mosquitto_bench: Bench) -> None:
    bench = mosquitto_bench
    async with bench.listening():
        pass  # so that there is a session
    await bench.send([{"topic": "brewery/bpl1", "payload": BREWPILESS, "qos": 0, "retain": True}])
    async with bench.listening():
        await bench.send_last()
    assert [line["name"] for line in await bench.lines()] == ["bpl1", "last"]
