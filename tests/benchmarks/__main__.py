"""`python -m tests.benchmarks [NAME...]` measures and prints figures; it exits with 0, goals met or not."""

import argparse
import dataclasses
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.benchmarks import (
    api,
    commands,
    decode,
    footprint,
    home_assistant,
    http,
    insight,
    insight_ingest,
    listener,
    mqtt,
    page,
    reads,
    report,
    wear,
)
from tests.benchmarks.plan import QUICK, BenchmarkError, Plan

FIGURES: dict[str, tuple[str, Callable[[Plan], list[report.Figure]]]] = {
    "decode": ("an iSpindel's bytes to a reading, against json.loads and pydantic", decode.measure),
    "http": ("durable HTTP ingest against a bare aiohttp handler", http.measure),
    "mqtt": ("durable MQTT ingest through Mosquitto against a bare paho consumer", mqtt.measure),
    "listener": ("durable MQTT ingest by our listener against Mosquitto in front", listener.measure),
    "reads": ("GET of a whole brew session: time and memory", reads.measure),
    "latency": ("p99 of ingest while that read repeats", reads.measure_latency),
    "memory": ("resident memory, idle and under load", footprint.measure_memory),
    "start": ("start to the first accepted reading", footprint.measure_start),
    "cli": ("CPU of a command, against a Python that imports typer", commands.measure),
    "api": ("searches, brew sessions, lists and imports against bare sqlite3", api.measure),
    "series": ("buckets of a year for charts, against reading all rows", page.measure_series),
    "page": ("bytes, milliseconds and memory of pages", page.measure_page),
    "viewers": ("p99 of ingest while pages are read", page.measure_latency),
    "home-assistant": (
        "from a reading to its state on the broker, and memory for 20 devices",
        home_assistant.measure,
    ),
    "insight": ("the figures of a brew, against a bare sorted() of the same buckets", insight.measure),
    "insight-ingest": (
        "p99 of ingest and memory with 100 open brews, against a gateway that does not follow them",
        insight_ingest.measure,
    ),
    "wear": ("bytes written per reading; best as root, for a volume of its own", wear.measure),
}
"""Name, what it measures, and the function that does it."""

ALONE = frozenset(
    {
        *{"decode", "reads", "latency", "api", "series", "page", "viewers", "home-assistant", "insight"},
        "insight-ingest",
    }
)
"""Figures that `--against` does not compare."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for; the table comes at the end, progress on standard error."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures to measure; all without any")
    parser.add_argument("--rounds", type=int, help="rounds of product against ceiling")
    parser.add_argument(
        "--against", type=Path, metavar="DIR", help="another checkout: its gateway takes turns with ours"
    )
    parser.add_argument("--quick", action="store_true", help="coarse figures in two minutes")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--list", action="store_true", help="list the names and end")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(FIGURES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(FIGURES)}")
    if options.list:
        for name, (what, _) in FIGURES.items():
            print(f"{name:8} {what}")
        return 0
    plan = QUICK if options.quick else Plan()
    if options.rounds:
        plan = dataclasses.replace(plan, rounds=options.rounds)
    if options.against:
        if not (options.against / "gateway" / "__main__.py").is_file():
            parser.error(f"{options.against} is no checkout of the gateway")
        if alone := ALONE & set(options.names):
            parser.error(f"--against does not compare {', '.join(sorted(alone))}")
        options.names = options.names or [name for name in FIGURES if name not in ALONE]
        plan = dataclasses.replace(plan, against=options.against.resolve())
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as compiled:
        # As an installed program has it, and in a folder of its own: a checkout is only read.
        os.environ.update(PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=compiled)
        figures = [figure for name in options.names or FIGURES for figure in _measured(name, plan)]
    (report.print_json if options.json else report.print_table)(figures)
    return 0


def _measured(name: str, plan: Plan) -> list[report.Figure]:
    """The figures of a name; one that says why where it failed, for the others' sake."""
    what, measure = FIGURES[name]
    print(f"{name}: {what} ...", file=sys.stderr, flush=True)
    try:
        figures = measure(plan)
    except BenchmarkError as error:
        goal = report.Goal("measured", "<=", 0)
        figures = [report.Figure(what, "", goal, None, note=f"failed: {error}")]
    for figure in figures:
        # At once, so that a run that is ended early has not measured for nothing.
        print(f"  {report.in_a_line(figure)}", file=sys.stderr, flush=True)
    return figures


def _on_terminate(*_: object) -> None:
    """Leave by way of every `finally`: children are stopped, volumes taken apart."""
    raise SystemExit(143)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _on_terminate)
    raise SystemExit(main())
