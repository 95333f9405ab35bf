"""Who may do what from where: the table of docs/trust.md, over real sockets."""

import asyncio
import re
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from gateway import app
from gateway.domain.key import ALL_SCOPES
from gateway.http.connections import ConnectionLimits
from gateway.network import SOURCE_BURST, SOURCE_RATE
from gateway.services.wrong_keys import WRONG_KEY_BURST, WRONG_KEY_RATE
from gateway.settings import Settings
from gateway.transports.tcp import TcpLimits
from tests.keys import allow_wrong_keys
from tests.program.program import ispindel
from tests.system.http.test_proxies import Gateway
from tests.system.http.test_proxies import gateway as gateway
from tests.system.transports.conftest import wait_for

TRUSTED = "127.0.0.9"
TRUST = Path(__file__).parents[3] / "docs" / "trust.md"


class Place(NamedTuple):
    """Where a request comes from, and whether a report from there needs a key."""

    name: str
    address: str
    headers: dict[str, str]
    needs_key: bool


PLACES = (
    Place("this machine", "127.0.0.1", {}, False),
    Place("a neighbour", "127.0.0.2", {}, False),
    Place("a neighbour by a trusted proxy", TRUSTED, {"X-Forwarded-For": "192.168.1.37"}, False),
    Place("a program beside a trusted proxy", TRUSTED, {"X-Forwarded-For": "127.0.0.1"}, False),
    Place("a neighbour with IPv6", TRUSTED, {"Forwarded": 'for="[fd00::7]:80"'}, False),
    Place("the Internet by a trusted proxy", TRUSTED, {"X-Forwarded-For": "192.168.1.1, 8.8.8.8"}, True),
    Place("the Internet with IPv6", TRUSTED, {"Forwarded": 'for="[2001:db8::7]"'}, True),
    Place("IPv4 in the clothes of IPv6", TRUSTED, {"X-Forwarded-For": "::ffff:8.8.4.4"}, True),
    Place("a proxy on this machine that is not trusted", "127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, True),
    Place("a neighbour who forwards", "127.0.0.3", {"X-Real-IP": "127.0.0.1"}, True),
    Place("a neighbour who claims to forward", "127.0.0.4", {"Forwarded": "for=192.168.1.37"}, True),
)

REPORT, LOOK, WATCH, CHANGE = "/ingest", "/v1/recipes", "/manage/status", "/manage/folders"

MAY = {
    # key: looks, watches, changes
    "none": (401, 401, 401),
    "wrong": (401, 401, 401),
    "read": (200, 200, 401),
    "ingest": (401, 401, 401),
    "admin": (200, 200, 200),
    "another account's": (200, 403, 200),
}
"""What each key may do, wherever it comes from."""

REPORTING = {"ingest", "admin", "another account's"}


@pytest.mark.parametrize("require_key", [False, True])
async def test_who_may_do_what_from_where(gateway: Gateway, require_key: bool) -> None:
    access = gateway.parts.access
    allow_wrong_keys(access)
    await access.add_account("other")
    keys = {"none": "", "wrong": "hg_" + "x" * 43}
    for scope in ("read", "ingest", "admin"):
        keys[scope] = await access.add(scope, frozenset({scope}))
    keys["another account's"] = await access.add("theirs", ALL_SCOPES, account="other")
    await gateway.start(trusted_proxy=[TRUSTED], require_key=require_key)
    [port] = gateway.ports("HTTP on ")
    wrong, number = [], 0
    for place in PLACES:
        connector = aiohttp.TCPConnector(local_addr=(place.address, 0))
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=connector) as http:
            for key, text in keys.items():
                number += 1
                reports = key in REPORTING or not (place.needs_key or require_key)
                headers = {**place.headers, "X-API-KEY": text} if text else place.headers
                folder = {"kind": "recipe", "name": f"{key} {number}"}
                answers = {
                    REPORT: await http.post(REPORT, data=ispindel(number), headers=headers),
                    LOOK: await http.get(LOOK, headers=headers),
                    WATCH: await http.get(WATCH, headers=headers),
                    CHANGE: await http.post(CHANGE, json=folder, headers=headers),
                }
                expected = (200 if reports else 401, *MAY[key])
                for (path, answer), status in zip(answers.items(), expected, strict=True):
                    await answer.read()
                    if answer.status != status:
                        wrong.append(f"{place.name}, key {key}, {path}: {answer.status}, not {status}")
    assert not wrong


def test_the_document_has_the_figures_of_the_code() -> None:
    text = " ".join(TRUST.read_text("utf-8").split())
    rate = f"{SOURCE_RATE:g} readings a second and {SOURCE_BURST:g} at once"
    connections = (
        f"{ConnectionLimits().per_source} HTTP, {TcpLimits().per_source} TCP and 16 MQTT connections"
    )
    assert f"{rate}, over all listeners together; {connections}" in text
    assert f"{WRONG_KEY_BURST:g} wrong keys a minute" in text
    assert WRONG_KEY_RATE * 60 == WRONG_KEY_BURST


def connect_packet(password: str) -> bytes:
    """MQTT 3.1.1, clean session, keep-alive 60 s, with a user if there is a password."""
    texts = [b"spindle", b"any", password.encode()] if password else [b"spindle"]
    body = b"\x00\x04MQTT\x04" + (b"\xc2" if password else b"\x02") + b"\x00\x3c"
    body += b"".join(len(text).to_bytes(2) + text for text in texts)
    return bytes([0x10, len(body)]) + body


async def test_require_key_reaches_every_listener(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = Settings(
        data_dir=tmp_path, host="127.0.0.1", port=0, mqtt_port=0, tcp_port=0, require_key=True
    )
    whole, stopped = app.Gateway(settings, lines.append), asyncio.Event()
    running = asyncio.create_task(whole.run(stopped))
    try:
        await wait_for(lambda: running.done() or any(line.startswith("Ready") for line in lines))
        key = await whole._parts.access.add("mine", frozenset({"ingest"}))
        [http, mqtt] = [
            int(found[1]) for line in lines if (found := re.match(r"(?:HTTP|MQTT) on \S+?:(\d+) ", line))
        ]
        assert not [line for line in lines if line.startswith("TCP on")]
        async with aiohttp.ClientSession() as client:
            for presented, status in ((key, 200), ("hg_wrong", 401)):
                headers = {"X-API-KEY": presented}
                url = f"http://127.0.0.1:{http}/ingest"
                async with client.post(url, data=ispindel(1), headers=headers) as answer:
                    assert answer.status == status
        for presented, is_taken in ((key, True), ("hg_wrong", False), ("", False)):
            reader, writer = await asyncio.open_connection("127.0.0.1", mqtt)
            writer.write(connect_packet(presented))
            assert ((await reader.readexactly(4))[3] == 0) is is_taken
            writer.close()
    finally:
        stopped.set()
        await running
