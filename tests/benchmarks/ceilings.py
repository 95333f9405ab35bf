"""What the machine and the libraries could do at best, each as a process of its own.

`python -m tests.benchmarks.ceilings NAME ...` prints lines of JSON, most of them answers to lines of input.
"""

import asyncio
import json
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from tests.benchmarks import payloads

HOST = "127.0.0.1"

KEEPALIVE_S = 60

SESSION = "SELECT account_id, id, recipe_id FROM brewsessions WHERE id = ?"
READINGS = """
SELECT oid, ip, name, gravity, gravity_unit, temp, temp_unit, comment, beer, interval, created_at, source
FROM readings WHERE session_id = ? ORDER BY created_at, oid
"""

TABLE = "CREATE TABLE readings (seq INTEGER PRIMARY KEY, oid BLOB NOT NULL UNIQUE, raw BLOB NOT NULL)"
INSERT = "INSERT INTO readings (oid, raw) VALUES (?, ?)"


def _say(value: object) -> None:
    print(json.dumps(value), flush=True)


def http(port: str = "0") -> None:
    """A bare aiohttp handler that parses JSON and answers; prints its port."""

    async def answer(request: web.Request) -> web.Response:
        await request.json()
        return web.json_response({"result": "success", "message": "success"})

    app = web.Application()
    app.router.add_post(payloads.PATH, answer)
    with socket.create_server((HOST, int(port))) as listener:
        _say(listener.getsockname()[1])
        web.run_app(app, sock=listener, access_log=None, print=None)


def mqtt(port: str, topic: str) -> None:
    """A bare paho consumer; every number in its input is answered when so many more messages were here."""
    count = target = 0

    def on_message(_client: paho.Client, _userdata: object, message: paho.MQTTMessage) -> None:
        nonlocal count
        json.loads(message.payload)
        count += 1
        if count == target:
            _say(time.monotonic())

    def on_connect(client: paho.Client, *_: object) -> None:
        client.subscribe(topic, 1)

    def read_input() -> None:
        nonlocal target
        for line in sys.stdin:
            target += int(line)
            _say("waiting")
        client.disconnect()

    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="bare", clean_session=False)
    client.on_connect, client.on_message = on_connect, on_message
    client.on_subscribe = lambda *_: _say("ready")
    client.connect(HOST, int(port), KEEPALIVE_S)
    threading.Thread(target=read_input, daemon=True).start()
    client.loop_forever()


def listener() -> None:
    """Our MQTT listener alone, which acknowledges at once; prints its port."""
    # Not at the top, because the memory of bare aiohttp is a ceiling, too.
    from gateway.clock import SystemClock
    from gateway.network import Admission
    from gateway.stats import Stats
    from gateway.transports.mqtt_listener import MqttListener
    from gateway.transports.topics import TopicMap

    async def serve() -> None:
        clock = SystemClock()
        source = MqttListener(TopicMap(), clock, Admission(clock), Stats())
        with socket.create_server((HOST, 0)) as opened:
            await source.start(opened)
            _say(opened.getsockname()[1])
            while True:
                source.ack(await source.next_batch())

    asyncio.run(serve())


def reads(database: str, session: str, sample: str) -> None:
    """`sqlite3` and `orjson` make the same answer; seconds for every line of input."""
    uri = f"{Path(database).as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        for line in sys.stdin:
            started = time.perf_counter()
            text = _envelope(connection, int(session))
            elapsed = time.perf_counter() - started
            if line.startswith("sample"):
                Path(sample).write_bytes(text)
            _say(elapsed)


def _envelope(connection: sqlite3.Connection, session: int) -> bytes:
    login_id, brewevent_id, recipe_id = connection.execute(SESSION, (session,)).fetchone()
    readings: list[dict[str, Any]] = [
        {
            "_id": {"$oid": oid.hex()},
            "login_id": login_id,
            "api_key": "",
            "brewevent_id": brewevent_id,
            "recipe_id": recipe_id,
            "ip": ip,
            "name": name,
            "gravity": gravity,
            "gravity_unit": gravity_unit,
            "temp": temp,
            "temp_unit": temp_unit,
            "comment": comment,
            "beer": beer,
            "interval": interval,
            "created_at": datetime.fromtimestamp(created_at, UTC),
            "source": source,
        }
        for oid, ip, name, gravity, gravity_unit, temp, temp_unit, comment, beer, interval, created_at, source
        in connection.execute(READINGS, (session,))
    ]  # fmt: skip
    return orjson.dumps({"message": "success", "readings": readings})


def writes(database: str) -> None:
    """Bodies into a table with one index, WAL and FULL; the input is `ROWS ROWS-PER-COMMIT`."""
    number = 0
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", TABLE):
            connection.execute(statement)
        _say("ready")
        for line in sys.stdin:
            count, group = map(int, line.split())
            started = time.perf_counter()
            for start in range(0, count, group):
                connection.execute("BEGIN IMMEDIATE")
                for _ in range(min(group, count - start)):
                    number += 1
                    oid = time.time_ns().to_bytes(8, "big") + number.to_bytes(4, "big")
                    connection.execute(INSERT, (oid, payloads.body(number)))
                connection.execute("COMMIT")
            _say(time.perf_counter() - started)


CEILINGS: dict[str, Callable[..., None]] = {
    "http": http,
    "mqtt": mqtt,
    "listener": listener,
    "reads": reads,
    "writes": writes,
}


if __name__ == "__main__":
    CEILINGS[sys.argv[1]](*sys.argv[2:])
