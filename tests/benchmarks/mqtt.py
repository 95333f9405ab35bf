"""Durable MQTT ingest through Mosquitto against a bare paho consumer of the same broker."""

import dataclasses
import os
import re
import shutil
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.benchmarks import mqtt_load
from tests.benchmarks.plan import CEILING, BenchmarkError, Plan, next_payload, take_turns
from tests.benchmarks.processes import ROOT, START_S, Child, cpu_s, first_thread_cpu_s, module, running
from tests.benchmarks.report import Figure, Goal, in_turn
from tests.benchmarks.server import HOST, Server, free_port, serving, trees

GOAL = Goal("ratio", ">=", 0.80)
CPU_GOAL = Goal("ratio", "<=", 5, 4)

WHAT = "MQTT QoS 1 ingest through Mosquitto"
NO_MOSQUITTO = "skipped: mosquitto is not installed"

SHIPPED_CONF = ROOT / "deploy" / "mosquitto" / "mosquitto.conf"

PRODUCT_ROOT = "hydrometer"
BARE_ROOT = "barereader"
"""Topics as long as the product's."""

Changes = tuple[tuple[str, str], ...]
"""Patterns of lines of the configuration, and what stands there instead."""

LIMIT_S = 120.0
"""How long a round may take."""

POLL_S = 0.01
POLLS_AHEAD = 0.5
"""Look again after this share of the time that the rest should take: few looks, and a sharp end."""


SAVES = (
    (r"autosave_on_changes .*", "autosave_on_changes false"),
    (r"autosave_interval .*", "autosave_interval 1800"),
)
"""As mosquitto saves by default. Ours make it save at every change, which is then what limits both."""

SHIPPED_SHARE = 8
"""With the shipped settings only one in so many messages: each save writes all that waits."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a round measured."""

    per_second: float
    cpu_us: float
    """CPU of the consumer's process for each message."""
    event_loop_us: float
    """Of that, the part of its first thread: the gateway's event loop, all of the bare consumer."""
    broker_us: float
    """CPU of the broker for each message; 0 without one."""


Turns = Mapping[str, Sequence[Sample]]


def measure(plan: Plan) -> list[Figure]:
    """Messages per second from the first that is published to the last that is stored, and CPU for each."""
    if (program := mosquitto_program()) is None:
        return [Figure(WHAT, "/s", GOAL, None, note=NO_MOSQUITTO)]
    fewer = dataclasses.replace(plan, messages=plan.messages // SHIPPED_SHARE)
    shipped, saving = _turns(program, fewer), _turns(program, plan, SAVES)
    return [
        _rate(f"{WHAT}, its shipped settings", shipped),
        _rate(f"{WHAT}, its default saves", saving),
        cpu_figure("the same, CPU of a message", saving),
    ]


def _rate(what: str, turns: Turns) -> Figure:
    shares = [sample.broker_us * sample.per_second / 1e6 for samples in turns.values() for sample in samples]
    note = f"mosquitto {statistics.median(shares):.0%} of a core"
    return Figure.of_turns(what, "/s", GOAL, turns, lambda sample: sample.per_second, note)


def cpu_figure(what: str, turns: Turns) -> Figure:
    """CPU of a message against the bare consumer's."""
    note = f"in the event loop {in_turn(turns, lambda sample: sample.event_loop_us)}"
    return Figure.of_turns(what, "us", CPU_GOAL, turns, lambda sample: sample.cpu_us, note)


def _turns(program: str, plan: Plan, changes: Changes = ()) -> Turns:
    with ExitStack() as stack:
        play: dict[str, Callable[[int], Sample]] = {}
        for name, tree in trees(plan).items():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench-")))
            broker, port = stack.enter_context(mosquitto(program, folder, changes))
            url = f"mqtt://{HOST}:{port}"
            server = stack.enter_context(serving(folder / "data", "--mqtt-url", url, tree=tree))
            wait_subscribed(server)
            server.introduce(plan.devices, next_payload())
            play[name] = partial(by_gateway, server, port, plan.devices, broker)
        play[CEILING] = stack.enter_context(bare_consumer(program, plan, changes))
        return turns_of(plan, play)


def turns_of(plan: Plan, play: Mapping[str, Callable[[int], Sample]]) -> Turns:
    """Samples of players that take a number of messages, after a warm-up of each."""
    for warm_up in play.values():
        warm_up(plan.warm_up_messages)
    return take_turns(plan.rounds, {name: partial(player, plan.messages) for name, player in play.items()})


def by_gateway(
    server: Server, port: int, devices: int, broker: Child | None, count: int, window: int = mqtt_load.WINDOW
) -> Sample:
    """Publish `count` messages at `port` and wait until the gateway has stored them."""
    command = module(
        *("mqtt_load", "--port", port, "--root", PRODUCT_ROOT, "--first", next_payload()),
        *("--count", count, "--devices", devices, "--window", window),
    )
    return _sample(server.child, broker, count, lambda: stored_after(server, command, count))


@contextmanager
def bare_consumer(program: str, plan: Plan, changes: Changes) -> Iterator[Callable[[int], Sample]]:
    """A player: paho alone, with `json.loads`, behind a broker of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory,
        mosquitto(program, Path(directory), changes) as (broker, port),
        running(*module("ceilings", "mqtt", port, f"{BARE_ROOT}/+")) as bare,
    ):
        bare.line()

        def play(count: int) -> Sample:
            command = module(
                *("mqtt_load", "--port", port, "--root", BARE_ROOT, "--first", next_payload()),
                *("--count", count, "--devices", plan.devices),
            )
            return _sample(bare, broker, count, lambda: _seen_after(bare, command, count))

        yield play


def _sample(consumer: Child, broker: Child | None, count: int, run: Callable[[], float]) -> Sample:
    """What `run`, which returns its seconds, costs the consumer and the broker."""

    def used() -> tuple[float, float, float]:
        broker_s = cpu_s(broker.pid) if broker else 0.0
        return cpu_s(consumer.pid), first_thread_cpu_s(consumer.pid), broker_s

    before = used()
    seconds = run()
    spent = (after - earlier for after, earlier in zip(used(), before, strict=True))
    return Sample(count / seconds, *(part / count * 1e6 for part in spent))


def stored_after(server: Server, command: tuple[str, ...], count: int) -> float:
    """Seconds from the first message to the last commit, by the counter of the health page."""
    before: int = server.health()["stored"]
    with running(*command) as publisher:
        started = float(publisher.line())
        while (elapsed := time.monotonic() - started) < LIMIT_S:
            stored = server.health()["stored"] - before
            elapsed = time.monotonic() - started
            if stored >= count:
                publisher.wait()
                return elapsed
            rest_s = elapsed * (count - stored) / stored if stored else POLL_S
            time.sleep(max(POLL_S, min(rest_s * POLLS_AHEAD, 1.0)))
    raise BenchmarkError(f"{WHAT}: {stored} of {count} were stored within {LIMIT_S:g} s")


def _seen_after(bare: Child, command: tuple[str, ...], count: int) -> float:
    """Seconds from the first message to the last one in the bare consumer's hands."""
    bare.ask(str(count))
    with running(*command) as publisher:
        started = float(publisher.line())
        ended = float(bare.line(LIMIT_S))
        publisher.wait()
    return ended - started


def wait_subscribed(server: Server) -> None:
    """Until the gateway has its broker."""
    deadline = time.monotonic() + START_S
    while not str(server.health()["parts"]["mqtt"]).startswith("connected"):
        if time.monotonic() > deadline:
            raise BenchmarkError("the gateway did not connect to mosquitto")
        time.sleep(POLL_S)


def mosquitto_program() -> str | None:
    """Where mosquitto is installed; None where it is not."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")


@contextmanager
def mosquitto(program: str, directory: Path, changes: Changes) -> Iterator[tuple[Child, int]]:
    """Mosquitto with the settings that we ship, on a free port of loopback, without passwords."""
    port = free_port()
    text = SHIPPED_CONF.read_text("utf-8")
    for pattern, line in (
        (r"listener .*", f"listener {port} {HOST}"),
        (r"allow_anonymous .*", "allow_anonymous true"),
        (r"password_file .*\n", ""),
        (r"persistence_location .*", f"persistence_location {directory}/"),
        *changes,
    ):
        text, found = re.subn(f"(?m)^{pattern}", line, text)
        if found != 1:
            raise BenchmarkError(f"{SHIPPED_CONF.name} has no line, or more than one, like {pattern!r}")
    if os.geteuid() == 0:
        text += "user root\n"  # else it becomes a user who may not write here
    path = directory / "mosquitto.conf"
    path.write_text(text, "utf-8")
    with running(program, "-c", str(path)) as child:
        _wait_listening(port)
        yield child, port


def _wait_listening(port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with suppress(ConnectionRefusedError):
            socket.create_connection((HOST, port)).close()
            return
        time.sleep(POLL_S)
    raise BenchmarkError("mosquitto does not listen")
