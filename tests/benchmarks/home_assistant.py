"""Home Assistant: from a reading to its state on the broker, and what announcing devices takes of memory."""

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from tests.benchmarks import payloads
from tests.benchmarks.mqtt import NO_MOSQUITTO, SAVES, mosquitto, mosquitto_program, wait_subscribed
from tests.benchmarks.plan import CEILING, PRODUCT, BenchmarkError, Plan, next_payload, take_turns
from tests.benchmarks.processes import private_bytes
from tests.benchmarks.report import Figure, Goal
from tests.benchmarks.server import HOST, Server, load, serving

LATENCY_GOAL = Goal("measured", "<=", 1.0)
MEMORY_GOAL = Goal("measured", "<=", 2)

LATENCY = "a reading is posted, until its state is on the broker, p95"
MEMORY = "memory for Home Assistant, 20 devices"

MEMORY_DEVICES = 20

SPACING_S = 10.5
"""A little more than the seconds between two states of one device."""

APART_S = 0.03
"""Pause between two readings."""

LIMIT_S = 60.0


class States:
    """The newest state of each device at the broker, with the time at which it came."""

    def __init__(self, port: int) -> None:
        self._came: dict[str, tuple[float, dict[str, Any]]] = {}
        self._news = threading.Condition()
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = lambda client, *_: client.subscribe(
            "hydrometer_gateway/+/device/+/state", 1
        )
        self._client.on_message = self._on_message
        self._client.connect(HOST, port)
        self._client.loop_start()

    def stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def wait(self, device: int, text: str) -> float:
        """When a state of a device came that has this text in it."""
        slug, deadline = f"ispindel_{payloads.device_id(device)}", time.monotonic() + LIMIT_S
        with self._news:
            while text not in json.dumps(self._came.get(slug, (0.0, {}))[1]):
                if not self._news.wait(deadline - time.monotonic()):
                    raise BenchmarkError(f"no state of {slug} with {text} within {LIMIT_S:g} s")
            return self._came[slug][0]

    def _on_message(self, _client: Any, _userdata: Any, message: paho.MQTTMessage) -> None:
        with self._news:
            self._came[message.topic.split("/")[3]] = time.monotonic(), json.loads(message.payload)
            self._news.notify_all()


def measure(plan: Plan) -> list[Figure]:
    """Latency of devices that report one after the other, and memory with discovery against without."""
    if (program := mosquitto_program()) is None:
        return [Figure(what, unit, goal, None, note=NO_MOSQUITTO) for what, unit, goal in (
            (LATENCY, "s", LATENCY_GOAL), (MEMORY, "MB", MEMORY_GOAL))]  # fmt: skip
    waits = _latencies(program, plan)
    last = sorted(waits)[int(len(waits) * 0.95)] if len(waits) > 1 else waits[0]
    note = f"{len(waits)} readings, median {statistics.median(waits) * 1000:.0f} ms"
    turns = take_turns(plan.fresh_rounds, {
        PRODUCT: partial(_memory, program, plan, "--ha-discovery"), CEILING: partial(_memory, program, plan),
    })  # fmt: skip
    more = [on - off for on, off in zip(turns[PRODUCT], turns[CEILING], strict=True)]
    without = f"beyond {statistics.median(turns[CEILING]):.1f} MB private without; never shown below 0"
    return [
        Figure(LATENCY, "s", LATENCY_GOAL, last, note=note),
        Figure(MEMORY, "MB", MEMORY_GOAL, max(statistics.median(more), 0.0), note=without),
    ]


@contextmanager
def _gateway(program: str, *options: str) -> Iterator[tuple[Server, int]]:
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as directory:
        folder = Path(directory)
        with mosquitto(program, folder, SAVES) as (_, port):
            url = f"mqtt://{HOST}:{port}"
            with serving(folder / "data", "--mqtt-url", url, *options) as server:
                wait_subscribed(server)
                yield server, port


def _latencies(program: str, plan: Plan) -> list[float]:
    """Seconds from the beginning of a request to the state at the broker, one for each device."""
    with _gateway(program, "--ha-discovery") as (server, port):
        states = States(port)
        try:
            server.introduce(plan.devices, next_payload())
            for device in range(plan.devices):
                states.wait(device, "BENCH1")  # of the brew that it is in
            time.sleep(SPACING_S)
            first, waits = next_payload(), []
            for device in range(plan.devices):
                began = time.monotonic()
                body = json.loads(payloads.body(first + device, plan.devices))
                body["angle"] = round(40.01 + device / 100, 2)
                server.call("POST", payloads.PATH, body=json.dumps(body).encode())
                waits.append(states.wait(device, f'"angle": {body["angle"]}') - began)
                time.sleep(APART_S)
            return waits
        finally:
            states.stop()


def _memory(program: str, plan: Plan, *options: str) -> float:
    """Private MB of a gateway with devices that have reported."""
    with _gateway(program, *options) as (server, _):
        requests = ("--connections", 1, "--requests", MEMORY_DEVICES, "--devices", MEMORY_DEVICES)
        load(server.port, next_payload(), *requests)
        time.sleep(plan.idle_s)
        return private_bytes(server.child.pid) / 1e6
