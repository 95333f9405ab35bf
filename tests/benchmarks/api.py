"""The service's API: searches, a brew session with statistics, lists, imports, against bare `sqlite3`."""

import asyncio
import http.client
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import quote

from tests.benchmarks.api_data import RARE, SESSIONS, Library, fill, item
from tests.benchmarks.plan import BenchmarkError, Plan, alternate
from tests.benchmarks.processes import Child, module, result_of, running
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import ANSWER_S, HOST, Server, command, serving

SEARCH_GOAL, SEARCH_RATIO = Goal("measured", "<=", 25), Goal("ratio", "<=", 2)
SESSION_GOAL = Goal("measured", "<=", 20)
LIST_GOAL = Goal("measured", "<=", 30)
IMPORT_GOAL = Goal("ratio", "<=", 3)
UNCHANGED_GOAL = Goal("measured", "<=", 0)

KEYWORDS = {"rare hop": RARE, "hop": "Citra", "frequent": "malt", "two letters": "ma", "no match": "quince"}
"""What is looked for; ingredient names are among the texts."""

P95 = 0.95

WARM_UP = 5
"""Requests before those that count."""

BODY_LIMIT = 10 * 1024 * 1024
"""What the import endpoint takes at most."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A gateway with everything in it, and bare `sqlite3` on the same file."""

    plan: Plan
    server: Server
    key: str
    bare: Child
    library: Library

    def compare(self, path: str, name: str, value: str, ids: str) -> list[tuple[float, float]]:
        """95th percentiles in ms of every round, the API's and bare sqlite3's; both must find the same."""
        answer = json.loads(self.server.call("GET", path, self.key))
        found = self.bare.ask(f"{name} {WARM_UP} {value}")["found"]
        shown = [int(record["id"]) for record in answer[ids]]
        if int(answer["count"]) != len(found) or shown != found[: len(shown)]:
            raise BenchmarkError(f"{path} finds other records than {name} {value}")
        times = (self.server.port, self.key, WARM_UP + self.plan.requests, "GET", path)
        return alternate(
            self.plan.rounds,
            lambda: p95_ms(result_of(*module("api_load", *times))["seconds"][WARM_UP:]),
            lambda: p95_ms(self.bare.ask(f"{name} {self.plan.requests} {value}")["seconds"]),
        )


def measure(plan: Plan) -> list[Figure]:
    """Searches, sessions, lists, imports."""
    with _bench(plan) as bench:
        return [*_searches(bench), *_sessions(bench), _list(bench), *_imports(bench)]


@contextmanager
def _bench(plan: Plan) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory:
        data_dir = Path(directory)
        library = asyncio.run(fill(data_dir, plan.recipes, plan.readings))
        key = command(data_dir, "keys", "add", "benchmarks", "--scope", "admin")
        with (
            serving(data_dir, "--no-mqtt") as server,
            running(*module("api_ceilings", "reads", data_dir / "gateway.sqlite3")) as bare,
        ):
            yield Bench(plan, server, key, bare, library)


def _searches(bench: Bench) -> list[Figure]:
    """The slowest keyword, and that with the worst ratio; the note has them all."""
    found = {
        name: bench.compare(f"/v1/recipes?keyword={quote(word)}", "search", word.casefold(), "recipes")
        for name, word in KEYWORDS.items()
    }
    figures = {
        name: Figure.of_rounds(
            f"search of {bench.plan.recipes:,} recipes, p95, {name}", "ms", SEARCH_GOAL, pairs
        )
        for name, pairs in found.items()
    }
    slowest = max(figures, key=lambda name: figures[name].measured or 0)
    note = "; ".join(f"{name} {f.measured:.1f} ({f.ratio:.1f}x)" for name, f in figures.items())
    what = f"search of {bench.plan.recipes:,} recipes, p95, slowest: {slowest}"
    return [
        Figure.of_rounds(what, "ms", SEARCH_GOAL, found[slowest], note),
        Figure.of_rounds(f"{what}, to bare sqlite3", "ms", SEARCH_RATIO, found[slowest]),
    ]


def _sessions(bench: Bench) -> list[Figure]:
    what = f"brew session with statistics of {bench.plan.readings:,} readings"
    cases = {
        f"{what}, p95": bench.library.full,
        f"{what}, none with gravity, p95": bench.library.without_gravity,
    }
    return [
        Figure.of_rounds(
            case,
            "ms",
            SESSION_GOAL,
            bench.compare(f"/v1/brewsessions/{number}", "session", str(number), "brewsessions"),
        )
        for case, number in cases.items()
    ]


def _list(bench: Bench) -> Figure:
    pairs = bench.compare(f"/v1/brewsessions?limit={SESSIONS}", "sessions", "", "brewsessions")
    return Figure.of_rounds(f"list of {SESSIONS} brew sessions, p95", "ms", LIST_GOAL, pairs)


def _imports(bench: Bench) -> list[Figure]:
    items = [item(number) for number in range(bench.plan.readings)]
    body = json.dumps(items).encode()
    if len(body) > BODY_LIMIT:
        raise BenchmarkError(
            f"{bench.plan.readings} readings are {len(body)} bytes, more than an import may have"
        )
    path = bench.server.data_dir / "body.json"
    path.write_bytes(body)
    database = bench.server.data_dir / "gateway.sqlite3"
    numbers = count(1)
    with running(*module("api_ceilings", "writes", database, bench.server.data_dir / "bare.sqlite3")) as bare:
        pairs = alternate(
            bench.plan.rounds,
            lambda: _import_ms(bench, path),
            lambda: bare.ask(f"{next(numbers)} {path}") * 1000,
        )
    what = f"import of {bench.plan.readings:,} readings as JSON"
    note = f"{len(body) / 1e6:.1f} MB; ceiling: json and sqlite3 executemany, same table and indexes"
    return [Figure.of_rounds(what, "ms", IMPORT_GOAL, pairs, note), _failed_import(bench, items)]


def _import_ms(bench: Bench, body: Path) -> float:
    """Into a new brew session."""
    number = command(bench.server.data_dir, "sessions", "add", "--batchcode", "BENCH")
    path = f"/v1/fermentation/{number}/import"
    return (
        float(
            result_of(*module("api_load", bench.server.port, bench.key, 1, "POST", path, body))["seconds"][0]
        )
        * 1000
    )


def _failed_import(bench: Bench, items: Sequence[dict[str, str]]) -> Figure:
    """A bad last row, with `reset=true`: how many bytes of the session's readings differ afterwards."""
    path = f"/v1/fermentation/{bench.library.full}"
    before = bench.server.call("GET", path, bench.key)
    body = json.dumps([*items[:-1], {**items[-1], "gravity": "eleven"}]).encode()
    connection = http.client.HTTPConnection(HOST, bench.server.port, timeout=ANSWER_S)
    connection.request(
        "POST",
        f"{path}/import?reset=true",
        body,
        {"X-API-KEY": bench.key, "Content-Type": "application/json"},
    )
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    if response.status != 400 or f"row {len(items)}:" not in answer["detail"]:
        raise BenchmarkError(f"a bad last row was answered with {response.status} {answer}")
    changed = before != bench.server.call("GET", path, bench.key)
    what = f"failed import of {len(items):,} rows with reset=true, readings changed"
    return Figure(what, "", UNCHANGED_GOAL, float(changed), note=answer["detail"])


def p95_ms(seconds: Sequence[float]) -> float:
    """The 95th percentile in milliseconds."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * P95))] * 1000
