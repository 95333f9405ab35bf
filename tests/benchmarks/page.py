"""The page: buckets against reading all rows, sizes, times of answers, memory, and ingest beside readers."""

import asyncio
import gzip
import http.client
import json
import re
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from gateway.clock import SystemClock
from gateway.services.build import build_services
from gateway.store.queries import SeriesQuery
from gateway.store.sqlite import series
from gateway.store.sqlite.engine.connections import open_reader
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.benchmarks import page_data
from tests.benchmarks.page_data import Brewery
from tests.benchmarks.payloads import device_id, device_name
from tests.benchmarks.plan import BenchmarkError, Plan, alternate, next_payload
from tests.benchmarks.processes import memory_bytes, module, result_of, running
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import HOST, Server, load, serving

BUCKETS_GOAL = Goal("ratio", "<=", 0.7)
BUCKETS_TIME_GOAL = Goal("measured", "<=", 100)
OVERVIEW_GOAL = Goal("measured", "<=", 60)
ANSWER_GOAL = Goal("measured", "<=", 120)
PAGE_GOAL = Goal("measured", "<=", 25)
ALL_GOAL = Goal("measured", "<=", 40)
UNUSED_GOAL = Goal("measured", "<=", 0.5)
USED_GOAL = Goal("measured", "<=", 3)
LATENCY_GOAL = Goal("ratio", "<=", 1.5)

POINTS = 600

RATE, CONNECTIONS = 200, 8
"""Readings per second beside the reader of pages, and on how many connections."""

ANSWER_S = 60.0

ALL_ROWS = """
SELECT created_at, sg, celsius, device_id, left_out FROM readings
WHERE session_id = :session_id AND created_at BETWEEN :start AND :end
"""


def measure_series(plan: Plan) -> list[Figure]:
    """The CPU time of buckets against that of reading all rows, and a sparkline of each of twelve brews."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory:
        brewery = page_data.fill(Path(directory), plan.readings)
        with closing(open_reader(Path(directory) / DATABASE_NAME)) as connection:
            span = connection.execute(
                "SELECT min(created_at), max(created_at) FROM readings WHERE session_id = ?", (brewery.full,)
            ).fetchone()
            query = SeriesQuery(start=span[0], end=span[1], points=POINTS, session_id=brewery.full)
            pairs = alternate(
                plan.reads,
                partial(_cpu_ms, lambda: series._buckets(connection, query)),
                partial(_cpu_ms, lambda: _rows_in_buckets(connection, query)),
            )
        overview = asyncio.run(_overview_ms(Path(directory), brewery, plan.reads))
    what = f"{POINTS} buckets over {plan.readings:,} readings"
    return [
        Figure.of_rounds(f"{what}, CPU, against all rows", "ms", BUCKETS_GOAL, pairs),
        Figure(what, "ms", BUCKETS_TIME_GOAL, statistics.median(high for high, _ in pairs)),
        Figure(f"figures and sparklines of {len(brewery.brews)} brews", "ms", OVERVIEW_GOAL, overview),
    ]


def _rows_in_buckets(connection: sqlite3.Connection, query: SeriesQuery) -> object:
    """The same in Python: the least that could be done with all rows."""
    width = -(-(query.end - query.start + 1) // query.points)
    buckets: dict[tuple[int, int], list[float]] = {}
    for at, sg, celsius, device, left_out in connection.execute(ALL_ROWS, series._values(query)):
        key = device, at // width
        bucket = buckets.get(key)
        if bucket is None:
            bucket = buckets[key] = [0, 9, 0, 0, 99, -99, 0, 0]
        bucket[0] += 1
        if left_out:
            bucket[7] += 1
        elif sg is not None:
            if sg < bucket[1]:  # not `min`, whose call would cost more than all else here
                bucket[1] = sg
            if sg > bucket[2]:
                bucket[2] = sg
            bucket[3] += sg
        if celsius is not None:
            if celsius < bucket[4]:
                bucket[4] = celsius
            if celsius > bucket[5]:
                bucket[5] = celsius
            bucket[6] += celsius
    return buckets


async def _overview_ms(directory: Path, brewery: Brewery, rounds: int) -> float:
    times = []
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, SystemClock())
        for _ in range(rounds):
            began = time.perf_counter()
            sessions = [session for session in await store.sessions.all() if session.id in brewery.brews]
            services.figures._kept.clear()  # as if each brew had a new reading
            await services.figures.of_all(sessions)
            services.series._sparks.clear()
            await services.series.sparklines(brewery.brews)
            times.append((time.perf_counter() - began) * 1000)
    finally:
        await store.close()
    return statistics.median(times)


def _cpu_ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def measure_page(plan: Plan) -> list[Figure]:
    """Bytes and milliseconds of pages, memory of a page that is used and of one that is not."""
    with _brewery(plan) as (server, brewery):
        cookie = _login(server, brewery.key)
        brew, overview = f"/ui/brews/{brewery.full}", "/ui/"
        size, rest = _sizes(server, cookie, brew)
        drawn = [_drawn_ms(server, cookie, brew) for _ in range(plan.reads + 1)][1:]
        kept = [_get_ms(server, cookie, brew) for _ in range(plan.reads)]
        cards = [_drawn_ms(server, cookie, overview) for _ in range(plan.reads + 1)][1:]
    what = f"one brew with {plan.readings:,} readings"
    note = f"{statistics.median(kept):.0f} ms if nothing has changed"
    return [
        Figure(f"{what}, gzip", "kB", PAGE_GOAL, size / 1000),
        Figure(f"{what}, with styles and scripts, gzip", "kB", ALL_GOAL, (size + rest) / 1000),
        Figure(f"{what}, after a new reading", "ms", ANSWER_GOAL, statistics.median(drawn), note=note),
        Figure(f"{page_data.BREWS} running brews", "ms", OVERVIEW_GOAL, statistics.median(cards)),
        *_measure_memory(plan),
    ]


def _sizes(server: Server, cookie: str, path: str) -> tuple[int, int]:
    """Bytes of the page, and of all that it asks for besides, as they are sent."""
    sent = _get(server, cookie, path)
    links = re.findall(rb'(?:href|src)="(/ui/static/[^"]+\.(?:css|js))"', gzip.decompress(sent))
    scripts = {"app.js", "chart.js"} | {link.decode().rpartition("/")[2] for link in links}
    folder = links[0].decode().rpartition("/")[0]
    return len(sent), sum(len(_get(server, cookie, f"{folder}/{name}")) for name in scripts)


def _drawn_ms(server: Server, cookie: str, path: str) -> float:
    """Milliseconds of a page in which something is new."""
    number, angle = page_data.FIRST_DEVICE, 20 + time.time() % 1000 / 100
    sent = {"name": device_name(number), "ID": device_id(number), "angle": angle, "gravity": 3.1}
    body = json.dumps({**sent, "temperature": 19})
    server.call("POST", "/ingest/ispindel", body=body.encode())
    return _get_ms(server, cookie, path)


def _get_ms(server: Server, cookie: str, path: str) -> float:
    began = time.perf_counter()
    _get(server, cookie, path)
    return (time.perf_counter() - began) * 1000


def _measure_memory(plan: Plan) -> list[Figure]:
    def resident(views: int, *options: str) -> float:
        with _brewery(plan, *options) as (server, brewery):
            load(server.port, next_payload(), "--connections", 1, "--requests", 1, "--devices", 1)
            if views:
                cookie = _login(server, brewery.key)
                paths = (
                    "/ui/",
                    f"/ui/brews/{brewery.full}",
                    *(f"/ui/brews/{brew}" for brew in brewery.brews[1:]),
                )
                result_of(*module("page_load", server.port, cookie, 0, views, *paths))
            time.sleep(plan.idle_s)
            return memory_bytes(server.child.pid) / 1e6

    off, unused, used = [], [], []
    for _ in range(plan.fresh_rounds):
        off.append(resident(0, "--no-page"))
        unused.append(resident(0))
        used.append(resident(plan.views))
    without, never, after = map(statistics.median, (off, unused, used))
    return [
        Figure(
            "RSS, a page that nobody uses, beyond --no-page",
            "MB",
            UNUSED_GOAL,
            max(0.0, never - without),
            note=f"{never:.1f} MB",
        ),
        Figure(
            f"RSS, after {plan.views} views, beyond never used",
            "MB",
            USED_GOAL,
            max(0.0, after - never),
            note=f"{after:.1f} MB",
        ),
    ]


def measure_latency(plan: Plan) -> list[Figure]:
    """Ingest's 99th percentile at a fixed rate while pages are read, against the same without them."""
    views: list[float] = []

    def quiet(port: int) -> float:
        options = ("--connections", CONNECTIONS, "--rate", RATE, "--devices", plan.devices)
        times = ("--seconds", plan.latency_s, "--warm-up", plan.warm_up_s)
        return float(load(port, next_payload(), *options, *times)["p99_ms"])

    def while_reading(server: Server, brewery: Brewery, cookie: str) -> float:
        seconds = plan.latency_s + plan.warm_up_s
        paths = ("/ui/", f"/ui/brews/{brewery.full}")
        with running(*module("page_load", server.port, cookie, seconds, 1, *paths)) as reader:
            p99 = quiet(server.port)
            views.extend(json.loads(reader.line(ANSWER_S))["seconds"])
            reader.wait()
        return p99

    with _brewery(plan) as (server, brewery):
        cookie = _login(server, brewery.key)
        server.introduce(plan.devices, next_payload())
        pairs = alternate(
            plan.rounds, lambda: while_reading(server, brewery, cookie), lambda: quiet(server.port)
        )
    note = f"{len(views)} pages meanwhile, median {statistics.median(views) * 1000:.0f} ms"
    return [Figure.of_rounds(f"ingest p99 at {RATE}/s while pages are read", "ms", LATENCY_GOAL, pairs, note)]


@contextmanager
def _brewery(plan: Plan, *options: str) -> Iterator[tuple[Server, Brewery]]:
    """A fresh process on a filled data directory."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory:
        brewery = page_data.fill(Path(directory), plan.readings)
        with serving(Path(directory), "--no-mqtt", *options) as server:
            yield server, brewery


def _login(server: Server, key: str) -> str:
    """Log in as a browser does; the cookie."""
    body = urlencode({"key": key, "next": "/ui/", "zone": "Europe/Berlin"})
    origin = f"http://{HOST}:{server.port}"
    headers = {"Origin": origin, "Content-Type": "application/x-www-form-urlencoded"}
    with closing(http.client.HTTPConnection(HOST, server.port, timeout=ANSWER_S)) as connection:
        connection.request("POST", "/ui/login", body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 303:
            raise BenchmarkError(f"the login was answered {answer.status}")
        return str(answer.getheader("Set-Cookie", "")).partition(";")[0]


def _get(server: Server, cookie: str, path: str) -> bytes:
    """The body of a 200 answer as it is sent."""
    headers = {"Cookie": cookie, "Accept": "text/html", "Accept-Encoding": "gzip", "Accept-Language": "en"}
    with closing(http.client.HTTPConnection(HOST, server.port, timeout=ANSWER_S)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    if answer.status != 200:
        raise BenchmarkError(f"GET {path}: {answer.status} {body[:200]!r}")
    return body
