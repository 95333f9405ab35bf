"""Simulated hydrometers of all kinds, a gateway, a second one as its upstream: read back is what was sent."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import aiohttp

from .program import FREE_PORTS, HTTP_ONLY, Server, answer, ended, launch, serving, until

KINDS = ("ispindel-http", "ispindel-mqtt", "gravitymon-http", "gravitymon-mqtt", "tiltpi-http")
MEASURED = ("gravity", "gravity_unit", "temp", "temp_unit")
FACTS = ("_id", "name", *MEASURED, "beer", "created_at", "source")

Values = tuple[str, ...]


async def fleet(gateway: Server) -> dict[str, list[Values]]:
    """Let it report for a while; what each device sent and got an answer for, oldest first."""
    where = ("--http", gateway.url, "--mqtt", f"127.0.0.1:{gateway.mqtt_port}")
    kinds_wanted = [option for kind in KINDS for option in ("--kind", kind)]
    pace = (*kinds_wanted, "--every", "0.4", "--seconds", "3", "--seed", "4")
    finished = await ended(await launch("fleet", *where, *pace, "--json", module="sample_devices"))
    assert finished.status == 0, finished.err
    sent: dict[str, list[Values]] = defaultdict(list)
    kinds = set()
    for report in finished.objects:
        if "summary" not in report:
            assert report["answered"], report
            kinds.add(report["kind"])
            sent[report["device_id"] or report["name"]].append(tuple(report[m] for m in MEASURED))
    assert kinds == set(KINDS)
    assert len(sent) == len(KINDS)
    assert all(len(reports) >= 5 for reports in sent.values())
    return dict(sent)


async def read_back(
    http: aiohttp.ClientSession, server: Server, key: str, session: int
) -> list[dict[str, Any]]:
    url = f"{server.url}/v1/fermentation/{session}"
    async with http.get(url, headers={"X-API-KEY": key}) as response:
        assert response.status == 200
        readings: list[dict[str, Any]] = (await response.json())["readings"]
        return readings


def measured(readings: list[dict[str, Any]]) -> list[Values]:
    return [tuple(reading[member] for member in MEASURED) for reading in readings]


async def test_what_the_devices_sent_comes_back_from_the_upstream(tmp_path: Path) -> None:
    here, there = tmp_path / "gateway", tmp_path / "upstream"
    async with serving(there, *HTTP_ONLY) as upstream, aiohttp.ClientSession() as http:
        assert upstream.first_key
        key_file = tmp_path / "key"
        key_file.write_text(upstream.first_key + "\n")
        forwarding = ("--upstream-url", upstream.url, "--upstream-key-file", str(key_file))
        async with serving(here, *FREE_PORTS, *forwarding, "--forward-seconds", "0.2") as gateway:
            assert gateway.first_key
            sent = await fleet(gateway)
            total = sum(map(len, sent.values()))

            async def all_stored() -> bool:
                return len((await answer(here, "readings --json --last 1000")).lines) == total

            await until(all_stored)
            sessions: dict[str, tuple[int, int]] = {}
            for number, device in enumerate(sent, start=3):
                added = await answer(there, f"sessions add --batchcode UP{number}")
                # So that no session has the same number on both sides.
                await answer(here, f"sessions add --batchcode SPARE{number}")
                own = await answer(
                    here, f"sessions add --batchcode B{number} --upstream-id {added.out.strip()}"
                )
                sessions[device] = int(own.out), int(added.out)
                await answer(here, "devices assign", device, own.out.strip(), "--since", "2020-01-01")
            for device, (own_id, upstream_id) in sessions.items():

                async def arrived(device: str = device, upstream_id: int = upstream_id) -> bool:
                    found = await read_back(http, upstream, upstream.first_key or "", upstream_id)
                    return len(found) >= len(sent[device])

                await until(arrived)
                kept = await read_back(http, gateway, gateway.first_key, own_id)
                forwarded = await read_back(http, upstream, upstream.first_key, upstream_id)
                assert measured(kept) == sent[device]
                assert measured(forwarded) == sent[device]
                facts = [[reading[fact] for fact in FACTS] for reading in kept]
                assert [[reading[fact] for fact in FACTS] for reading in forwarded] == facts
            assert (await gateway.stop())[0] == 0
        assert (await upstream.stop())[0] == 0
