"""Debian's InfluxDB 1.6, started here: what it makes of our lines, and of lines that come again."""

import asyncio
import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.forward.mapped import forwarding, mapped

INFLUXD = shutil.which("influxd")

pytestmark = pytest.mark.skipif(INFLUXD is None, reason="influxd is missing: apt-get install influxdb")

START_S = 20.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Influx:
    """A database process on ports and a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.port, rpc = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        conf = folder / "influxdb.conf"
        conf.write_text(
            f"""reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
dir = "{folder}/meta"
[data]
dir = "{folder}/data"
wal-dir = "{folder}/wal"
[http]
bind-address = "127.0.0.1:{self.port}"
"""
        )
        assert INFLUXD is not None
        self._log = (folder / "log").open("wb")
        self.process = subprocess.Popen([INFLUXD, "-config", str(conf)], stdout=self._log, stderr=self._log)

    def ask(self, query: str) -> Any:
        body = urllib.parse.urlencode({"q": query, "db": "brewery", "epoch": "u"}).encode()
        with urllib.request.urlopen(f"{self.url}/query", body, timeout=5) as answer:  # noqa: S310
            return json.loads(answer.read())["results"][0]

    def ready(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.ask("CREATE DATABASE brewery")
                return
            except OSError:
                assert time.monotonic() < deadline, "influxd did not start"
                time.sleep(0.1)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        self._log.close()


@pytest.fixture
def influx(tmp_path: Path) -> Iterator[Influx]:
    folder = tmp_path / "influx"
    folder.mkdir()
    made = Influx(folder)
    try:
        made.ready()
        yield made
    finally:
        made.stop()


async def test_points_are_there_once_with_their_values(tmp_path: Path, influx: Influx) -> None:
    async with mapped(tmp_path) as made:
        await made.add("grafana", "influx", influx.url, api=1, bucket="brewery")
        await made.map("grafana")
        [finding] = await made.services.targets.test("grafana")
        assert finding.ok, finding.words
        await made.send("Red", 1.050, 1.049)
        await made.send("a, b=c\\", 1.060)
        async with forwarding(made):
            await made.settled("influx:grafana", 3)
            assert sum((await made.services.mapped.resend("grafana", 0, None)).values()) == 3
            await made.settled("influx:grafana", 3)
        found = await asyncio.to_thread(influx.ask, "SELECT * FROM hydrometer")
        [series] = found["series"]
        rows = [dict(zip(series["columns"], row, strict=True)) for row in series["values"]]
    assert [row["sg"] for row in rows] == [1.050, 1.049, 1.060]
    assert rows[0]["device"] == "ispindel:283"
    assert rows[0]["temp_c"] == 20.25
    assert len({row["time"] for row in rows}) == 3


async def test_a_database_that_is_missing_pauses(tmp_path: Path, influx: Influx) -> None:
    async with mapped(tmp_path) as made:
        await made.add("grafana", "influx", influx.url, api=1, bucket="nowhere")
        await made.map("grafana")
        [finding] = await made.services.targets.test("grafana")
        assert not finding.ok
        assert "there is no such bucket or database" in finding.words
        await made.send("Red", 1.05)
        async with forwarding(made):
            await made.until(lambda: made.state("grafana").startswith("is paused"))
        assert "database not found" in made.state("grafana")
        await made.services.targets.remove("grafana")
        await made.add("grafana", "influx", influx.url, org="home", bucket="brewery")
        [finding, _] = await made.services.targets.test("grafana")
        assert not finding.ok
        assert "--api" in finding.words
