"""Every golden case of MQTT and TCP in one pass and in steps: the same rows, the same answers."""

import asyncio
import itertools
import json
import socket
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.events import StoredNotices
from gateway.intake.intake import Intake
from gateway.network import Admission
from gateway.stats import Stats
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.assembler import OPEN_S
from gateway.transports.mqtt import MqttIngest
from gateway.transports.mqtt_link import Message
from gateway.transports.tcp import ACK, TcpListener
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.pure.drivers.messages import ARRIVAL, as_messages, topic_map

CASES = Path(__file__).parents[2] / "pure" / "drivers" / "cases"

ROUNDS = 3
"""The first one makes the devices and the second one loads their past; the third one is ordinary."""

INTERVAL_S = 900

CHANGING = {"oid", "crc", "seq", "id", "device_id"}
"""Columns that differ between two runs: an id has a random part, and new devices of a burst have no order."""

ORDINARY = 40
"""Payloads that go in one pass, at least."""


def cases(transport: str) -> list[dict[str, Any]]:
    read = [json.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*/*.json"))]
    return [case for case in read if case["transport"] == transport]


class Source:
    """Hands over the bursts that it is given, and notes in which order they are acknowledged."""

    copies = False

    def __init__(self) -> None:
        self.state, self.is_receiving = "connected", True
        self.on_state: Callable[[str], None] | None = None
        self.bursts: asyncio.Queue[list[Message]] = asyncio.Queue()
        self.acknowledged: list[int] = []
        self.idle, self.news = asyncio.Event(), asyncio.Event()

    async def give(self, burst: list[Message]) -> None:
        """Hand over a burst; return once the next one is asked for."""
        self.bursts.put_nowait(burst)
        self.idle.clear()
        async with asyncio.timeout(PATIENCE_S):
            await self.idle.wait()

    async def next_batch(self, timeout_s: float | None = None) -> list[Message]:
        if self.bursts.empty():
            self.idle.set()
        return await self.bursts.get()

    def ack(self, messages: Sequence[Message]) -> None:
        self.acknowledged += [message.mid for message in messages]
        self.news.set()

    def refuse(self, messages: Sequence[Message]) -> bool:
        return False

    def note_store(self, *, refuses: bool) -> None:
        raise AssertionError("the store takes everything here")


class Bench:
    """A gateway's intake with MQTT and TCP in front, and with or without the one pass."""

    def __init__(self, directory: Path, *, in_steps: bool) -> None:
        self.directory = directory
        self.store, self.clock, self.stats = SqliteStore(directory), FakeClock(now=ARRIVAL), Stats()
        self.intake = Intake(self.store, StoredNotices(), self.stats, self.clock, names_an_hour=10_000)
        self.ordinary = 0
        self.answers: list[bytes] = []
        self.source = Source()
        take_now = self.intake.take_now

        def counted(*arguments: Any) -> bool:
            is_ordinary = not in_steps and take_now(*arguments)
            self.ordinary += is_ordinary
            return is_ordinary

        setattr(self.intake, "take_now", counted)  # noqa: B010 (mypy takes no assignment to a method)

    async def play(self) -> None:
        await self.store.open()
        await self.intake.start()
        topics = topic_map()
        ingest = MqttIngest(self.source, topics, self.intake, self.store, self.stats, self.clock)
        task = asyncio.create_task(ingest.run())
        tcp = TcpListener(self.intake, self.clock, Admission(self.clock))
        listener = socket.create_server(("127.0.0.1", 0))
        await tcp.start(listener)
        mids = itertools.count(1)
        for _ in range(ROUNDS):
            for case in cases("mqtt"):
                await self.by_mqtt(
                    [replace(each, qos=1, mid=next(mids)) for each in as_messages(case["messages"])]
                )
            for case in cases("tcp"):
                self.answers.append(await by_tcp(listener.getsockname()[1], case["body"].encode()))
            self.clock.advance(INTERVAL_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await tcp.stop()
        await self.store.close()

    async def by_mqtt(self, messages: list[Message]) -> None:
        """Hand over a burst, let its open readings end, and wait until all of it is acknowledged."""
        now, sent = self.clock.now(), len(self.source.acknowledged) + len(messages)
        await self.source.give([replace(message, received_at=now) for message in messages])
        self.clock.advance(OPEN_S + 1)
        await self.source.give([])
        async with asyncio.timeout(PATIENCE_S):
            while len(self.source.acknowledged) < sent:
                self.source.news.clear()
                await self.source.news.wait()

    def rows(self, sql: str) -> list[str]:
        """Return rows without what differs between two runs, in one order."""
        with closing(sqlite3.connect(self.directory / DATABASE_NAME)) as database:
            database.row_factory = sqlite3.Row
            found = [dict(row) for row in database.execute(sql)]
        return sorted(str({name: row[name] for name in row if name not in CHANGING}) for row in found)


async def by_tcp(port: int, body: bytes) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(body)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer


async def test_every_golden_case_gives_the_same_rows_and_answers_both_ways(tmp_path: Path) -> None:
    in_one_pass = Bench(tmp_path / "pass", in_steps=False)
    in_steps = Bench(tmp_path / "steps", in_steps=True)
    for bench in (in_one_pass, in_steps):
        await bench.play()
    for sql in (
        "SELECT d.key, r.* FROM readings r JOIN devices d ON d.id = device_id",
        "SELECT * FROM devices",
        "SELECT * FROM quarantine",
    ):
        assert in_one_pass.rows(sql) == in_steps.rows(sql), sql
    # What is acknowledged at once comes first; of a burst that is stored, all at once and in its order.
    assert in_one_pass.source.acknowledged == in_steps.source.acknowledged
    assert in_one_pass.answers == in_steps.answers
    assert set(in_steps.answers) == {ACK, b""}, "an empty line has no answer"
    assert in_one_pass.stats == in_steps.stats
    assert in_one_pass.ordinary > ORDINARY > in_steps.ordinary == 0
