"""What a start of `serve` says: addresses, ports that are taken, the first key."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cloud import ScriptedCloud
from tests.program.program import (
    HTTP_ONLY,
    LOCAL,
    OWN_NAME,
    answer,
    serving,
    start,
)
from tests.program.terminal import at_terminal
from tests.system.cli.test_newcomer import cloud as cloud  # the fixture
from tests.system.cli.test_newcomer import key_file as key_file  # the fixture


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1//"])
async def test_v1_is_cut_and_said(tmp_path: Path, cloud: ScriptedCloud, key_file: Path, path: str) -> None:
    said = f"/v1 belongs to the API, not to the address of the service: {cloud.url} is taken."
    commands: list[tuple[str, ...]] = [
        ("login", "club", "--url", f"{cloud.url}{path}"),
        ("add", "other", f"http://other.example{path}", "--plaintext"),
    ]
    for words in commands:
        done = await answer(tmp_path, ("targets", *words, "--key-file", str(key_file)))
        assert said.replace(cloud.url, "http://other.example" if words[0] == "add" else cloud.url) in done.err
    urls = {target["url"] for target in (await answer(tmp_path, "targets list --json")).objects}
    assert urls == {cloud.url, "http://other.example"}
    options = ("--upstream-url", f"{cloud.url}{path}", "--upstream-key-file", str(key_file))
    async with serving(tmp_path / "served", *HTTP_ONLY, *options) as server:
        assert said in server.lines
        assert f"Forwarding to {cloud.url}" in server.lines


async def test_a_start_that_fails_costs_no_key(tmp_path: Path, taken: int) -> None:
    local = ("--host", "127.0.0.1", "--tcp-port", "0")
    failing = (("--port", f"{taken}", "--no-mqtt"), ("--port", "0", "--mqtt-url", "broker.lan:1883"))
    for options in failing:
        server = await start(tmp_path, *local, *options)
        assert await server.wait() == 1
        assert server.first_key is None
    async with serving(tmp_path, *HTTP_ONLY) as server:
        assert server.first_key is not None


async def test_a_listener_that_is_missing_is_in_the_last_line(tmp_path: Path, taken: int) -> None:
    async with serving(tmp_path, *LOCAL, "--mqtt-port", str(taken)) as server:
        assert server.lines[-1] == f"Ready, but without MQTT (port {taken} is {OWN_NAME}'s)."
    options = ("--host", "127.0.0.1", "--port", "0", "--no-mqtt", "--tcp-port", str(taken))
    async with serving(tmp_path, *options) as server:
        assert server.lines[-1] == f"Ready, but without TCP (port {taken} is {OWN_NAME}'s)."


async def test_a_key_in_the_clear_on_the_internet_is_asked_about(tmp_path: Path, key_file: Path) -> None:
    words = ("targets", "add", "far", "http://far.example", "--key-file", str(key_file))
    for typed, status in (("n", 1), ("y", 0)):
        ended, shown = await at_terminal(tmp_path, *words, typed=[("[y/N]", typed)])
        assert "anyone on the way to http://far.example can read the key" in shown
        assert ended == status
    assert len((await answer(tmp_path, "targets list --json")).objects) == 1
