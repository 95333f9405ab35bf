"""Simulated hydrometers of all kinds, a gateway, a second one as its upstream: read back is what was sent.

The full size is `FLEET_MINUTES=5 pytest tests/program/test_fleet.py --timeout 600`: 200 devices of all
kinds and another 200 with every fault, for five minutes.
"""

import asyncio
import contextlib
import os
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.cli.client import ask_running
from gateway.cli.demo_brewery import CHOSEN_TOPICS
from sample_devices import devices
from sample_devices.faults import FAULTS

from .judge import THINNED, judge_fleet, thinning
from .program import FREE_PORTS, HTTP_ONLY, MANY_NAMES, Server, answer, ended, launch, serving, until

KINDS = ("ispindel-http", "ispindel-mqtt", "gravitymon-http", "gravitymon-mqtt", "tiltpi-http")
MEASURED = ("gravity", "gravity_unit", "temp", "temp_unit")
FACTS = ("_id", "name", *MEASURED, "beer", "created_at", "source")

Values = tuple[str, ...]

MINUTES = float(os.environ.get("FLEET_MINUTES", "0"))
COUNT, EVERY_S, SECONDS = (200, 5.0, MINUTES * 60) if MINUTES else (len(devices.KINDS), 1.0, 2.5)
FAULT_SHARE = 0.5


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


async def mixed_fleet(gateway: Server, *options: str) -> list[dict[str, Any]]:
    """Every kind in turn by its own transport; what the devices say of their reports."""
    where = ("--http", gateway.url, "--mqtt", f"127.0.0.1:{gateway.mqtt_port}", "--tcp", tcp_of(gateway))
    pace = ("--all-kinds", "--count", str(COUNT), "--every", str(EVERY_S), "--seconds", str(SECONDS))
    child = await launch("fleet", *where, *pace, *options, "--json", module="sample_devices")
    finished = await ended(child, SECONDS + 60)
    assert (finished.status, finished.err) == (0, "")
    return finished.objects


def tcp_of(gateway: Server) -> str:
    address = gateway.found(r"^TCP on (\S+)")
    assert address, gateway.lines
    return address


async def test_a_mixed_brewery_is_read_as_it_speaks_and_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One fleet as it should be, and at the same time one with every fault that there is."""
    topics = [word for topic in CHOSEN_TOPICS for word in ("--mqtt-topic", topic)]
    faults = ("--fault", ",".join(FAULTS), "--fault-share", str(FAULT_SHARE))
    async with serving(tmp_path, *FREE_PORTS, *MANY_NAMES, *topics) as gateway:
        sound, faulty = await asyncio.gather(
            mixed_fleet(gateway, "--seed", "1"), mixed_fleet(gateway, "--seed", "3", *faults)
        )

        health: dict[str, Any] = {}

        async def complete() -> bool:
            verdict = judge_fleet([sound, faulty], await stored(tmp_path))
            health.update(await ask_running(gateway.data, "/healthz"))
            return not verdict.missing and verdict.thinned <= health["thinned"]

        with contextlib.suppress(AssertionError):  # the verdict says what is missing
            await until(complete)
        await gateway.stop()  # what was still open, and should not be there, is stored by now
        verdict = judge_fleet([sound, faulty], await stored(tmp_path))
    if MINUTES:
        with capsys.disabled():
            print(f"\n{verdict}")
    assert not verdict.invented, verdict
    assert not verdict.misread, verdict
    assert not verdict.missing, verdict
    assert verdict.answered == verdict.sent, verdict
    assert verdict.thinned <= health["thinned"], verdict  # a copy that is left out counts, too
    assert verdict.stored + verdict.thinned + verdict.twins == verdict.due, verdict
    assert {line["kind"] for line in sound if "kind" in line} == {
        name for name, kind in devices.KINDS.items() if not kind.alone
    }
    assert {line.get("fault") for line in faulty} == {None, *FAULTS}


async def stored(data: Path) -> list[dict[str, Any]]:
    return (await answer(data, "readings --json --last 10000000")).objects


def test_the_kinds_that_are_not_kept_in_full_are_those_of_the_drivers() -> None:
    assert set(THINNED.values()) == thinning()


LINE: dict[str, Any] = {
    "kind": "ispindel-http",
    "name": "a",
    "device_id": "42",
    "gravity": "12.5",
    "gravity_unit": "P",
    "temp": "20",
    "temp_unit": "C",
}
SENT_AT = datetime(2026, 3, 4, 12, tzinfo=UTC)
FURTHER = {"battery": "4.10", "beer": "Helles"}
SENT = LINE | {"answered": True, "sent_at": SENT_AT.timestamp(), "facts": FURTHER}
STORED = LINE | {"created_at": SENT_AT.isoformat(), "source": "ispindel", "battery": 4.1, "beer": "Helles"}


@pytest.mark.parametrize(
    ("answered", "expected", "stored", "missing", "invented"),
    [
        (True, True, [], 1, 0),
        (True, True, [STORED], 0, 0),
        (True, True, [STORED, STORED], 0, 1),
        (True, True, [STORED | {"temp": "20.0"}], 1, 1),
        (True, False, [STORED], 0, 1),
        (False, True, [STORED], 0, 0),
        (False, True, [], 0, 0),
    ],
    ids=["lost", "stored", "twice", "changed", "not due", "stored after all", "not answered"],
)
def test_the_judge_sees(
    answered: bool, expected: bool, stored: list[dict[str, Any]], missing: int, invented: int
) -> None:
    verdict = judge_fleet([[SENT | {"answered": answered, "expected": expected}]], stored)
    assert (sum(verdict.missing.values()), verdict.invented.total()) == (missing, invented)
    assert verdict.misread == []


def at(moment: datetime) -> dict[str, str]:
    return {"created_at": moment.isoformat()}


HALF_AN_HOUR, DAY = timedelta(minutes=30), timedelta(days=1)
WRONG_CLOCK = {"measured_at": 60, "fault": "wrong-clock"}
LATE = {"measured_at": (SENT_AT - HALF_AN_HOUR).timestamp(), "fault": "late"}


@pytest.mark.parametrize(
    ("sent", "stored", "trouble"),
    [
        ({}, at(SENT_AT + timedelta(seconds=9)), None),
        ({}, at(SENT_AT - DAY), "created_at"),
        ({}, at(SENT_AT + HALF_AN_HOUR), "created_at"),
        (LATE, at(SENT_AT - HALF_AN_HOUR), None),
        (LATE, at(SENT_AT), "created_at"),
        (WRONG_CLOCK, {}, None),
        (WRONG_CLOCK, at(datetime(1970, 1, 1, 0, 1, tzinfo=UTC)), "created_at"),
        ({}, {"device_id": "43"}, "device_id 43, not 42"),
        ({"device_id": None}, {"device_id": "43"}, None),
        ({}, {"battery": 4.0}, "battery 4.0, not 4.10"),
        ({}, {"battery": None}, "battery None"),
        ({}, {"beer": ""}, "beer , not Helles"),
    ],
)
def test_the_judge_compares_whose_it_is_and_when_and_what_else_was_said(
    sent: dict[str, Any], stored: dict[str, Any], trouble: str | None
) -> None:
    verdict = judge_fleet([[SENT | sent]], [STORED | stored])
    assert len(verdict.misread) == (trouble is not None)
    assert (trouble or "") in str(verdict)
