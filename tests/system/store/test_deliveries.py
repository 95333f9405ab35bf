"""Counts of deliveries are those of a query that looks at every reading."""

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.account import OWNER_ID
from gateway.domain.target import Delivery, Target
from gateway.services.brewsessions import SessionChange
from gateway.services.build import build_services
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.system.store.counting import by_reading

READING = """
INSERT INTO readings (seq, oid, device_id, session_id, received_at, created_at, name, gravity, gravity_unit,
    temp, temp_unit, comment, beer, interval, source, ip, sg, celsius, crc, mirrored)
VALUES (:seq, randomblob(12), NULL, :session, :at * 1000, :at, '', :gravity, 'G', '', 'C', '', '', '', '', '',
    :sg, NULL, :crc, :mirrored)
"""
SESSIONS, READINGS = 5, 150


def shuffle(connection: sqlite3.Connection, chance: random.Random, damaged: bool) -> None:
    """Fill the tables at random, with what the rest of the store promises about them."""
    copies = set(chance.sample(range(1, SESSIONS + 1), 2))
    for session in copies:
        connection.execute(
            "INSERT INTO mirrored (upstream, account_id, kind, remote_id, local_id, remote_updated_at) "
            "VALUES ('https://m.example', 1, 'brewsession', ?, ?, '')",
            (str(session), str(session)),
        )
    if damaged:
        connection.execute("INSERT OR REPLACE INTO counters VALUES ('damaged', 1)")
    for seq in range(1, READINGS + 1):
        inside: Any = chance.choice([*range(1, SESSIONS + 1), None])
        says = chance.random() < 0.8
        connection.execute(READING, {
            "seq": seq, "session": inside, "at": 1_770_000_000 + chance.randrange(1000),
            "gravity": "1.05" if says else "", "sg": 1.05 if says else None,
            "crc": None if damaged and chance.random() < 0.2 else 1,
            "mirrored": 1 if inside in copies and chance.random() < 0.5 else None,
        })  # fmt: skip
        for url in ("https://a.example", "https://b.example"):
            if chance.random() < 0.2:
                connection.execute("INSERT INTO refusals VALUES (?, ?, 'no', 1)", (url, seq))
            if chance.random() < 0.3:
                connection.execute(
                    "INSERT INTO corrections (seq, target, was) VALUES (?, ?, '{}')", (seq, url)
                )
    for session in range(1, SESSIONS + 1):
        connection.execute(
            "UPDATE brewsessions SET deleted = ? WHERE id = ?", (chance.random() < 0.1, session)
        )
        for url in ("https://a.example", "https://b.example"):
            if chance.random() < 0.6:
                connection.execute("INSERT INTO forwardings VALUES (?, ?, ?)", (session, url, 70 + session))
            if chance.random() < 0.8:
                mark = chance.choice([0, chance.randrange(READINGS), READINGS])
                connection.execute(
                    "INSERT INTO deliveries (target, session_id, watermark) VALUES (?, ?, ?)",
                    (url, session, mark),
                )


@pytest.mark.parametrize("damaged", [False, True], ids=["sound", "damaged"])
@pytest.mark.parametrize("seed", range(8))
async def test_they_are_those_of_every_reading(tmp_path: Path, seed: int, damaged: bool) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, FakeClock())
    await services.access.start()
    for number in range(SESSIONS):
        await services.brewsessions.add_session(OWNER_ID, SessionChange(batchcode=f"B{number}"))
    for name in "ab":
        await store.targets.add(Target(name, f"https://{name}.example", "key"))
    chance = random.Random(seed)  # noqa: S311 (no secrets)
    await store._writer.run(lambda connection: shuffle(connection, chance, damaged))
    everything: list[Delivery] = []
    for session_id in (None, *range(1, SESSIONS + 1)):
        wanted = await by_reading(store, session_id)
        assert await store.deliveries.counts(session_id) == wanted
        everything += wanted
    for member in ("pending", "forwarded", "refused", "not_forwarded", "edited"):
        assert any(getattr(each, member) for each in everything), member
    await store.close()
