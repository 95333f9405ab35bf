"""SIGKILL, ten times, under load over HTTP and MQTT: what was answered is stored, and nothing twice."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from gateway.cli.client import ask_running
from tests.system.transports.conftest import MOSQUITTO, PASSWORD, USER, Mosquitto, free_port

from .judge import HttpLoad, MqttLoad, Verdict, judge
from .program import Server, answer, serving, until

KILLS = 10
EACH_TIME = 60
"""Answers over HTTP before the next kill, at least; a few more each time, to hit other moments."""


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    if MOSQUITTO is None or shutil.which("mosquitto_passwd") is None:
        pytest.skip("mosquitto is not installed")
    folder = tmp_path / "broker"
    folder.mkdir()
    folder.chmod(0o777)
    broker = Mosquitto(folder)
    broker.start()
    yield broker
    broker.kill()


async def stored_marks(data: Path) -> list[str]:
    return [r["comment"] for r in (await answer(data, "readings --json --last 1000000")).objects]


async def subscribed(server: Server) -> None:
    async def connected() -> bool:
        parts = (await ask_running(server.data, "/healthz"))["parts"]
        return str(parts.get("mqtt")).startswith("connected")

    await until(connected)


@pytest.mark.broker
async def test_every_answered_reading_survives_ten_kills(tmp_path: Path, mosquitto: Mosquitto) -> None:
    data = tmp_path / "data"
    url = mosquitto.url
    broker = f"mqtt://{USER}:{quote(PASSWORD)}@{url.host}:{url.port}"
    options = ("--host", "127.0.0.1", "--port", str(free_port()), "--mqtt-url", broker)
    async with serving(data, *options) as server:
        await subscribed(server)  # from now on the broker keeps what we miss
        await server.stop()
    async with HttpLoad(server.url + "/ingest", 4) as over_http, MqttLoad(url) as over_mqtt:
        for kill in range(KILLS):
            async with serving(data, *options) as server:
                await subscribed(server)
                await more_answers(over_mqtt.answered, 10 + kill)
                await more_answers(over_http.answered, EACH_TIME + 7 * kill)
                await server.kill()
    ledger = {*over_http.answered, *over_mqtt.answered}
    assert len(ledger) == len(over_http.answered) + len(over_mqtt.answered) > KILLS * EACH_TIME

    async def complete() -> bool:
        return not judge(ledger, await stored_marks(data)).missing

    async with serving(data, *options):
        await until(complete)
    stored = await stored_marks(data)
    assert judge(ledger, stored) == Verdict(frozenset(), frozenset())
    # The judge sees a reading that was never sent, and one that is there twice.
    assert judge(ledger | {"never sent"}, stored).missing == {"never sent"}
    assert judge(ledger, [*stored, stored[0]]).doubled == {stored[0]}
    assert judge(ledger, stored[1:] if stored[0] in ledger else stored).missing <= {stored[0]}


async def more_answers(answered: list[str], number: int) -> None:
    wanted = len(answered) + number
    await until(lambda: len(answered) >= wanted)


async def test_every_answered_reading_survives_a_kill_without_a_broker(tmp_path: Path) -> None:
    """The same over HTTP alone, for machines without mosquitto."""
    async with serving(tmp_path, "--host", "127.0.0.1", "--port", "0", "--no-mqtt") as server:
        async with HttpLoad(server.url + "/ingest", 4) as load:
            await until(lambda: len(load.answered) > EACH_TIME)
            await server.kill()
        stored = await stored_marks(tmp_path)
    assert judge(load.answered, stored) == Verdict(frozenset(), frozenset())
    assert len(stored) <= load.sent
