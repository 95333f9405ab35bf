"""A gateway that announces its devices to Home Assistant: killed, without its broker, switched off."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.patience import PATIENCE_S
from tests.program.program import Server, process, serving, start
from tests.system.integrations.conftest import Listener
from tests.system.transports.conftest import Mosquitto, wait_for
from tests.system.transports.conftest import mosquitto as mosquitto  # the fixture

pytestmark = pytest.mark.broker

RIGHT_WITHIN_S = 10.0
"""Seconds after the broker is there again within which every state is right."""


@pytest.fixture
async def listener(mosquitto: Mosquitto) -> AsyncIterator[Listener]:
    listener = Listener(mosquitto.url)
    await listener.start()
    yield listener
    listener.stop()


def options(mosquitto: Mosquitto, *more: str) -> tuple[str, ...]:
    url = mosquitto.url
    return (
        "--host", "127.0.0.1", "--port", "0", "--no-tcp",
        "--mqtt-url", f"mqtt://{url.user}:{str(url.password).replace(' ', '%20')}@{url.where}", *more,
    )  # fmt: skip


async def report(server: Server, gravity: float, number: int = 7) -> None:
    body = {"name": "Red", "ID": number, "angle": 40.5, "temperature": 20.0, "gravity": gravity}
    async with aiohttp.ClientSession() as http, http.post(f"{server.url}/ingest", json=body) as answer:
        assert answer.status == 200


def one(listener: Listener, ending: str) -> str:
    """The retained message whose topic ends so, empty without one."""
    return next((text for topic, text in listener.retained.items() if topic.endswith(ending)), "")


def gravity_at(listener: Listener, slug: str = "ispindel_7") -> float | None:
    state = one(listener, f"/device/{slug}/state")
    return json.loads(state)["sg"] if state else None


async def test_the_broker_says_that_we_are_gone_and_a_switched_off_discovery_leaves_nothing(
    mosquitto: Mosquitto, listener: Listener, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    server = await start(data, *options(mosquitto, "--ha-discovery", "--ha-brews"))
    assert server.ready, server.errors
    await report(server, 1.05)
    await wait_for(lambda: gravity_at(listener) == 1.05)
    await wait_for(lambda: one(listener, "/status") == "online")
    assert json.loads(one(listener, "_ispindel_7/config"))["cmps"]["gravity"]["unit_of_meas"] == "SG"
    await server.kill()
    await wait_for(lambda: one(listener, "/status") == "offline")
    async with serving(data, *options(mosquitto, "--ha-discovery")) as again:
        await wait_for(lambda: one(listener, "/status") == "online")
        assert gravity_at(listener) == 1.05
        status, _ = await again.stop()
        assert status == 0
    assert one(listener, "/status") == "offline"
    assert listener.retained
    async with serving(data, *options(mosquitto)) as off:
        await wait_for(lambda: not listener.retained)
        await off.stop()
    assert not listener.retained


async def test_without_the_broker_readings_are_taken_and_states_are_right_soon_after_it_is_back(
    mosquitto: Mosquitto, listener: Listener, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    async with serving(tmp_path / "data", *options(mosquitto, "--ha-discovery")) as server:
        await report(server, 1.05)
        await wait_for(lambda: gravity_at(listener) == 1.05)
        mosquitto.kill()
        (tmp_path / "mosquitto.db").unlink(missing_ok=True)
        listener.retained.clear()
        slowest = 0.0
        for number in range(50):
            began = time.monotonic()
            await report(server, 1.0 + number / 1000, 7 + number % 5)
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 2.0
        mosquitto.start()
        await wait_for(lambda: one(listener, "/status") == "online", PATIENCE_S + 30)
        # Its first connection after an outage may take half a minute; from then on, all is right soon.
        await wait_for(
            lambda: (
                [gravity_at(listener, f"ispindel_{7 + n}") for n in range(5)]
                == [1.045, 1.046, 1.047, 1.048, 1.049]
            ),
            RIGHT_WITHIN_S,
        )
        assert (await server.stop())[0] == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--ha-discovery",), "--ha-discovery needs --mqtt-url"),
        (
            ("--ha-discovery", "--mqtt-url", "mqtt://b", "--mqtt-topic", "#=tilt"),
            "--mqtt-topic '#=tilt' does not go together with --ha-discovery",
        ),
    ],
)
async def test_options_that_cannot_work_are_refused(
    words: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    finished = await process(tmp_path, ("serve", "--port", "0", *words))
    assert finished.status == 1
    assert expected in finished.err
