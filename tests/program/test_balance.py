"""The running program's counters, before and after a kill -9; and what it does with too many connections."""

import asyncio
import resource
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp

from gateway.cli.client import ask_running
from tests.cloud import KEY, ScriptedCloud, running

from .program import HTTP_ONLY, PROJECT, Server, answer, environment, ispindel, post, serving, until

DEVICES = 5
ROUNDS = 4

DESCRIPTORS = 96
CONNECTIONS = 150


async def status_of(server: Server, key: str) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{server.url}/manage/status", headers={"X-API-KEY": key}) as response,
    ):
        page: dict[str, Any] = await response.json()
    since, totals = page["since_start"], page["totals"]
    outcomes = ("stored", "duplicates", "thinned", "quarantined", "waiting", "refused", "not_stored")
    assert since["accepted"] == sum(since[name] for name in outcomes)
    assert totals["stored"] == sum(totals[name] for name in totals if name != "stored")
    for target in page["targets"]:
        ended = ("forwarded", "refused", "pending", "not_sent")
        assert target["readings"] == sum(target[name] for name in ended)
    return page


async def load(server: Server, first: int) -> None:
    """From all devices at once: readings, each second one twice, and something nobody understands."""

    async def device(http: aiohttp.ClientSession, number: int) -> None:
        for step in range(ROUNDS):
            body = ispindel(number, angle=f"{first + step}.5")
            for _ in range(1 + step % 2):
                assert await post(http, server, body) == 200
        assert await post(http, server, f"garbage of {number} in {first}") == 200

    async with aiohttp.ClientSession() as http:
        await asyncio.gather(*(device(http, number) for number in range(1, DEVICES + 1)))


async def test_the_counters_add_up_before_and_after_a_kill(tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    data = tmp_path / "data"
    async with running(ScriptedCloud()) as cloud:
        cloud.refuse = lambda row: row["name"] == "spindle2"
        upstream = ("--upstream-url", cloud.url, "--upstream-key-file", str(key_file))
        options = (*HTTP_ONLY, *upstream, "--forward-seconds", "0.1")
        async with serving(data, *options) as server:
            key = server.first_key or ""
            session = (await answer(data, "sessions add --batchcode A --upstream-id 77")).out.strip()
            await load(server, 10)
            for number in (1, 2, 3):
                await answer(data, f"devices assign spindle{number} {session} --since 2026-01-01")
            await load(server, 40)
            page = await status_of(server, key)
            stored = 2 * DEVICES * ROUNDS
            since = page["since_start"]
            assert (since["stored"], since["quarantined"]) == (stored, 2 * DEVICES)
            assert since["duplicates"] == stored // 2
            await server.kill()
        async with serving(data, *options) as server:

            async def settled() -> bool:
                [target] = (await status_of(server, key))["targets"]
                return bool(target["pending"] == 0)

            await until(settled)
            page = await status_of(server, key)
            totals, [target] = page["totals"], page["targets"]
            assert (totals["stored"], totals["unassigned"]) == (stored, 4 * ROUNDS)
            assert target["readings"] == totals["to_forward"] == 6 * ROUNDS
            assert (target["forwarded"], target["refused"]) == (4 * ROUNDS, 2 * ROUNDS)
            assert len(cloud.kept(77)) == 4 * ROUNDS
            assert page["quarantine"]["items"] >= 2 * DEVICES + 2 * ROUNDS
            assert page["since_start"]["received"] == 0


async def test_more_connections_than_descriptors_are_a_few_lines_and_no_end(tmp_path: Path) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "serve", "--data-dir", str(tmp_path / "data"), *HTTP_ONLY),
        *("--config", "/dev/null"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=PROJECT,
        env=environment(),
        preexec_fn=few,
    )
    server = Server(process, tmp_path / "data")
    await server.start()
    try:
        with ExitStack() as lines:
            for _ in range(CONNECTIONS):
                lines.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            async with aiohttp.ClientSession() as http:
                assert await post(http, server, ispindel()) == 200
                page = await ask_running(tmp_path / "data", "/healthz")
            assert page["connections"] <= DESCRIPTORS // 4
            assert page["connections_cut"] + page["connections_refused"] >= CONNECTIONS - DESCRIPTORS
    finally:
        process.send_signal(signal.SIGTERM)
        await server.wait()
    assert len(server.errors) <= 10, server.errors
    assert not any("could not be taken" in line for line in server.errors), server.errors
