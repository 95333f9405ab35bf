"""`audit list`: what a key, a user of this machine and the gateway itself have done, without any secret."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

from gateway.app import Gateway
from gateway.settings import Settings
from tests.program.program import answer, refusal, until
from tests.system.cli.conftest import gateway


async def test_what_was_done_beside_a_gateway_and_without_one(data: Path) -> None:
    me = f"cli:uid {os.getuid()}"
    key = (await answer(data, "keys add tablet --scope admin")).out.strip()
    await answer(data, "accounts add anna")
    await answer(data, "sessions add --batchcode A")
    await answer(data, "sessions update 1 --upstream-id 7")
    await answer(data, "sessions delete 1")
    await answer(data, "keys revoke tablet")
    rows = [row for row in (await answer(data, "audit list --json")).objects if row["actor"] == me]
    assert [(row["verb"], row["object"]) for row in rows] == [
        ("add", "key:tablet"),
        ("add", "account:anna"),
        ("map", "session:1"),
        ("delete", "session:1"),
        ("revoke", "key:tablet"),
    ]
    whole = (await answer(data, "audit list --wide")).out
    assert key not in whole
    assert re.split("  +", whole.splitlines()[0]) == ["TIME", "ACTOR", "FROM", "VERB", "OBJECT", "DETAIL"]
    of_one = (await answer(data, "audit list --object key:tablet --since 1h --json")).objects
    assert [row["verb"] for row in of_one] == ["add", "revoke"]
    assert (await answer(data, "audit list --since 2126-01-01 --json")).out == ""
    said = await refusal(data, "audit list --since soon")
    assert "'soon' is no time" in said


async def test_wrong_keys_first_logins_and_other_options(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        for key in (server.first_key or "", "hg_wrong", "hg_wrong"):
            async with http.get(f"{server.url}/v1/recipes", headers={"X-API-KEY": key}) as answered:
                assert answered.status in {200, 401}
        assert (await server.stop())[0] == 0
    rows = (await answer(tmp_path, "audit list --json")).objects
    assert ("system", "add", "key:first") in [(row["actor"], row["verb"], row["object"]) for row in rows]
    [login] = [row for row in rows if row["verb"] == "first login"]
    assert (login["actor"], login["source"], login["object"]) == ("key:first", "127.0.0.1", "key:first")
    [wrong] = [row for row in rows if row["verb"] == "wrong key"]
    assert (wrong["actor"], wrong["source"], wrong["times"]) == ("stranger", "127.0.0.1", 2)
    assert not [row for row in rows if row["object"] == "options"], "the first start differs from nothing"
    lines: list[str] = []
    stopped = asyncio.Event()
    given: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": 0,
        "tcp_port": 0,
        "mqtt_url": "mqtt://me:geheim@b",
        "keep_days": 9,
    }
    settings = Settings(data_dir=tmp_path, no_mqtt=True, **given)
    running = asyncio.create_task(Gateway(settings, lines.append).run(stopped))
    await until(lambda: running.done() or bool(lines and lines[-1].startswith("Ready")))
    stopped.set()
    await running
    [options] = (await answer(tmp_path, "audit list --object options --json")).objects
    assert options["actor"] == "system"
    assert options["detail"] == "keep-days: default -> 9; mqtt-url: default -> mqtt://b"
