"""Reading a whole brew session: time, memory, gzip and 304, and what ingest notices of it."""

import gzip
import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from tests.benchmarks.plan import CEILING, PRODUCT, BenchmarkError, Plan, alternate, next_payload, take_turns
from tests.benchmarks.processes import Child, memory_bytes, module, result_of, running
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import HOST, Server, command, load, serving

TIME_GOAL = Goal("ratio", "<=", 1.1)
GROWTH_GOAL = Goal("measured", "<=", 20)
LATENCY_GOAL = Goal("ratio", "<=", 3)
PACKED_GOAL = Goal("measured", "<=", 0.9)
PACKING_GOAL = Goal("ratio", "<=", 1.25)
UNCHANGED_GOAL = Goal("measured", "<=", 3)

BATCH_ROWS = 5_000
"""Readings in one import."""

FIRST_CREATED_AT = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
"""And from then on a reading every minute."""

RATE, CONNECTIONS = 200, 8
"""Readings per second beside the read, and on how many connections."""

READS_IN_TURN, CHECKS_IN_TURN = 5, 50
"""Requests of one turn: reads, plain or compressed, and requests that are answered 304."""

TIMEOUT_S = 60.0

PLAIN = {"Accept-Encoding": "identity"}
PACKED = {"Accept-Encoding": "gzip"}


def measure(plan: Plan) -> list[Figure]:
    """Time of the read, the growth of the server's memory by it, and what gzip and ETag make of it."""
    with _brewery(plan) as (server, key, path):
        sample = server.data_dir / "sample.json"
        session = path.rpartition("/")[2]
        database = server.data_dir / "gateway.sqlite3"
        with running(*module("ceilings", "reads", database, session, sample)) as bare:
            load(server.port, next_payload(), "--connections", 1, "--requests", 1)
            before = memory_bytes(server.child.pid)
            _compare_answers(bare, sample, server, key, path)
            pairs = alternate(
                plan.reads, partial(_read_ms, server, key, path), lambda: bare.ask("time") * 1000
            )
            # The kernel keeps both by approximation: a growth of nothing can come out below it.
            growth = max(0.0, (memory_bytes(server.child.pid, "VmHWM") - before) / 1e6)
        asked = _measure_asked(plan, server, key, path)
    what = _what(plan)
    note = f"{before / 1e6:.1f} MB before the first read"
    return [
        Figure.of_rounds(f"{what}, against sqlite3 + orjson", "ms", TIME_GOAL, pairs),
        Figure(f"{what}, growth of the peak RSS", "MB", GROWTH_GOAL, growth, note=note),
        *asked,
    ]


def _what(plan: Plan) -> str:
    return f"GET of {plan.readings:,} readings"


def _measure_asked(plan: Plan, server: Server, key: str, path: str) -> list[Figure]:
    """What the same read costs where the client takes gzip, or has the readings already."""
    plain, packed = _asked(server, key, path, PLAIN), _asked(server, key, path, PACKED)
    if gzip.decompress(packed[1]) != plain[1]:
        raise BenchmarkError("the compressed readings are not the plain ones")
    tag = {"If-None-Match": plain[0]["etag"]}
    if _asked(server, key, path, tag)[1]:
        raise BenchmarkError("the readings have changed by themselves")

    def turn(count: int, headers: dict[str, str]) -> tuple[float, float]:
        """Processor time of the server and time of the client, in ms for each request."""
        before, began = _cpu_ns(server.child.pid), time.perf_counter()
        for _ in range(count):
            _asked(server, key, path, headers)
        seconds = time.perf_counter() - began
        return (_cpu_ns(server.child.pid) - before) / 1e6 / count, seconds * 1000 / count

    turns = take_turns(
        plan.reads,
        {
            PRODUCT: partial(turn, READS_IN_TURN, PACKED),
            CEILING: partial(turn, READS_IN_TURN, PLAIN),
            "304": partial(turn, CHECKS_IN_TURN, tag),
        },
    )
    pairs = [(high, low) for (high, _), (low, _) in zip(turns[PRODUCT], turns[CEILING], strict=True)]
    cpu_ms, unchanged_ms = (statistics.median(values) for values in zip(*turns["304"], strict=True))
    size = len(packed[1]) / 1e6
    return [
        Figure(f"{_what(plan)}, gzip", "MB", PACKED_GOAL, size, note=f"plain {len(plain[1]) / 1e6:.1f} MB"),
        Figure.of_rounds(f"{_what(plan)}, CPU with gzip, against plain", "ms", PACKING_GOAL, pairs),
        Figure(f"{_what(plan)}, 304", "ms", UNCHANGED_GOAL, unchanged_ms, note=f"CPU {cpu_ms:.2f} ms"),
    ]


def _asked(server: Server, key: str, path: str, headers: dict[str, str]) -> tuple[dict[str, str], bytes]:
    """The headers, by their names in lower case, and the body as it is sent."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"X-API-KEY": key, **headers})
        response = connection.getresponse()
        body = response.read()
        if response.status != (304 if "If-None-Match" in headers else 200):
            raise BenchmarkError(f"GET {path}: {response.status} {body[:200]!r}")
        return {name.lower(): value for name, value in response.getheaders()}, body
    finally:
        connection.close()


def _cpu_ns(pid: int) -> int:
    """Processor time of the threads of a process; `cpu_s` counts in steps of 10 ms, longer than a 304."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text("ascii").split()[0]) for thread in threads)


def measure_latency(plan: Plan) -> list[Figure]:
    """Ingest's 99th percentile at a fixed rate while the read repeats, against the same without it."""
    reads: list[float] = []

    def quiet(port: int) -> float:
        options = ("--connections", CONNECTIONS, "--rate", RATE, "--devices", plan.devices)
        times = ("--seconds", plan.latency_s, "--warm-up", plan.warm_up_s)
        return float(load(port, next_payload(), *options, *times)["p99_ms"])

    def while_reading(server: Server, key: str, path: str) -> float:
        seconds = plan.latency_s + plan.warm_up_s
        with running(*module("read_load", server.port, path, key, seconds)) as reader:
            p99 = quiet(server.port)
            reads.extend(json.loads(reader.line(TIMEOUT_S))["seconds"])
            reader.wait()
        return p99

    with _brewery(plan) as (server, key, path):
        server.introduce(plan.devices, next_payload())
        pairs = alternate(plan.rounds, lambda: while_reading(server, key, path), lambda: quiet(server.port))
    what = f"ingest p99 at {RATE}/s while GET of {plan.readings:,} repeats"
    note = f"{len(reads)} reads meanwhile, median {statistics.median(reads) * 1000:.0f} ms"
    return [Figure.of_rounds(what, "ms", LATENCY_GOAL, pairs, note)]


@contextmanager
def _brewery(plan: Plan) -> Iterator[tuple[Server, str, str]]:
    """A fresh process on a data directory with one full brew session; key and path to read that one."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory:
        data_dir = Path(directory)
        # Another process than the one that is measured: an import leaves its memory behind.
        with serving(data_dir, "--no-mqtt") as server:
            key = command(data_dir, "keys", "add", "benchmarks", "--scope", "admin")
            session = command(data_dir, "sessions", "add", "--batchcode", "BENCH2")
            path = f"/v1/fermentation/{session}"
            for first in range(0, plan.readings, BATCH_ROWS):
                rows = [_row(n) for n in range(first, min(first + BATCH_ROWS, plan.readings))]
                server.call("POST", f"{path}/import", key, json.dumps(rows).encode())
        with serving(data_dir, "--no-mqtt") as server:
            yield server, key, path


def _row(number: int) -> dict[str, str]:
    return {
        "name": "iSpindel001",
        "gravity": f"{12.5 - number * 2e-4:.5f}",
        "gravity_unit": "P",
        "temp": f"{18 + number % 40 / 16:.4f}",
        "temp_unit": "C",
        "comment": "",
        "beer": "Bench Ale",
        "interval": "60",
        "created_at": (FIRST_CREATED_AT + timedelta(minutes=number)).isoformat(),
        "source": "iSpindel",
    }


def _read_ms(server: Server, key: str, path: str) -> float:
    times = result_of(*module("read_load", server.port, path, key, 0))["seconds"]
    return float(times[0]) * 1000


def _compare_answers(bare: Child, sample: Path, server: Server, key: str, path: str) -> None:
    """Both sides must have made the same thing; it also warms both."""
    bare.ask("sample")
    if json.loads(sample.read_bytes()) != json.loads(server.call("GET", path, key)):
        raise BenchmarkError("the ceiling's readings are not those of the gateway")
