"""What stored messages leave behind: nothing, without the garbage collector, which comes by rarely."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.domain.payload import Payload
from gateway.events import StoredNotices
from gateway.intake.intake import Intake
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.mqtt import MqttIngest
from gateway.transports.mqtt_link import Message
from gateway.transports.topics import TopicMap
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.system.transports.test_both_ways import Source

MESSAGES = 50


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def reading(number: int) -> Message:
    body = f'{{"name": "red", "ID": 7, "angle": 45.5, "temperature": 20.5, "gravity": 1.0{number:02d}}}'
    return Message("hydrometer/red", body.encode(), 1, False, False, number, FakeClock().now())


def payloads() -> int:
    return sum(isinstance(kept, Payload) for kept in gc.get_objects())


@pytest.mark.usefixtures("uncollected")
async def test_stored_messages_leave_nothing_behind(tmp_path: Path) -> None:
    before = payloads()
    store, clock, stats, source = SqliteStore(tmp_path), FakeClock(), Stats(), Source()
    await store.open()
    intake = Intake(store, StoredNotices(), stats, clock)
    await intake.start()
    task = asyncio.create_task(MqttIngest(source, TopicMap([]), intake, store, stats, clock).run())
    messages = [reading(number) for number in range(1, MESSAGES + 1)]
    for burst in (messages[:1], messages[1:2], messages[2:-1], messages[-1:]):
        await source.give(burst)
        async with asyncio.timeout(PATIENCE_S):
            while len(source.acknowledged) < burst[-1].mid:
                source.news.clear()
                await source.news.wait()
    assert stats.stored == MESSAGES
    await source.give([])
    # The thread of the database keeps its last group, until the next one.
    assert payloads() <= before + 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.close()
