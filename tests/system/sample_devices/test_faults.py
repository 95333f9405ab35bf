"""The faults as a fleet sends them: what arrives, and what the fleet says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from sample_devices import fleet
from sample_devices.devices import Broker, Targets, simulate_fleet
from sample_devices.faults import Faults
from sample_devices.wire.report import Address, HttpReport
from tests.pure.sample_devices.test_faults import HOURS_48, STEP_S, device

from .servers import WAIT_S, Heard, http_talk, mqtt_talk, serving, tcp_talk


async def test_a_cut_connection_has_no_answer() -> None:
    async with serving(http_talk()) as heard:
        target = device("gravitymon-http", Targets(Address("127.0.0.1", heard.port)))
        report = target.report(HOURS_48)
        assert isinstance(report, HttpReport)
        cut = replace(report, request=report.request[:-20], cut=True)
        assert await target.send(cut) == "cut off, nothing to be answered"
        await heard.connection_ended()
    assert heard.items == []


@asynccontextmanager
async def told_by(
    kinds: list[str], targets: Targets, planner: Faults, heard: Heard, enough: int
) -> AsyncIterator[list[fleet.Outcome]]:
    """Let a fleet report until a server has heard enough, then give what it told."""
    stop, told = asyncio.Event(), list[fleet.Outcome]()
    devices = simulate_fleet(kinds, len(kinds), 1, targets)
    beat = fleet.Beat(0.001, STEP_S)
    running = asyncio.create_task(fleet.run(devices, beat, stop, told.append, planner))
    await heard.at_least(enough)
    stop.set()
    await asyncio.wait_for(running, WAIT_S)
    yield told


@pytest.mark.parametrize("fault", ["duplicate", "truncated", "garbage", "burst"])
async def test_the_fleet_names_the_fault_of_each_report(fault: str) -> None:
    async with serving(http_talk()) as heard:
        targets = Targets(Address("127.0.0.1", heard.port))
        async with told_by(["ispindel-http"], targets, Faults((fault,), 1), heard, 6) as told:
            lines = [json.loads(outcome.as_json()) for outcome in told]
    assert {line["fault"] for line in lines} == {fault}
    assert {line.get("expected", True) for line in lines} == {fault in {"duplicate", "burst"}}
    assert all(line["answered"] for line in lines)
    numbers = [line["number"] for line in lines]
    assert sorted(numbers) == list(range(1, len(lines) + 1))
    if fault == "truncated":  # of which some are cut off
        assert 0 < len(heard.items) <= len(lines)
    else:
        assert len(heard.items) == len(lines) * (2 if fault == "duplicate" else 1)
    assert told[0].as_text().endswith(f"answered ({fault})")


async def test_a_report_without_faults_says_nothing_of_them() -> None:
    async with serving(http_talk()) as heard:
        targets = Targets(Address("127.0.0.1", heard.port))
        async with told_by(["ispindel-http"], targets, Faults(), heard, 2) as told:
            assert not json.loads(told[0].as_json()).keys() & {"readings", "fault", "expected"}


async def test_each_reading_of_a_report_has_a_line_and_all_the_same_number() -> None:
    async with serving(http_talk()) as heard:
        targets = Targets(Address("127.0.0.1", heard.port))
        async with told_by(["tiltbridge-http"], targets, Faults(), heard, 3) as told:
            lines = [json.loads(outcome.as_json()) for outcome in told]
    assert {line["readings"] for line in lines} == {2}
    assert [line["number"] for line in lines] == [1 + index // 2 for index in range(len(lines))]
    assert len({line["name"] for line in lines}) == 2


async def test_a_report_without_a_reading_has_a_line_that_expects_none() -> None:
    async with serving(tcp_talk(b"\x06")) as heard:
        targets = Targets(tcp=Address("127.0.0.1", heard.port))
        async with told_by(["ispindel-tcontrol"], targets, Faults(), heard, 1) as told:
            line = json.loads(told[0].as_json())
    assert (line["readings"], line["expected"], line["gravity"], line["temp"]) == (0, False, None, None)
    assert " - " in told[0].as_text()


async def test_a_coarse_device_does_not_send_the_same_bytes_twice_in_a_minute() -> None:
    async with serving(mqtt_talk()) as heard:
        targets = Targets(mqtt=Broker("127.0.0.1", heard.port))
        async with told_by(["smartpid-mqtt"], targets, Faults(), heard, 12) as told:
            published = [item for item in heard.items if item[0] == 0x30]
    assert len(set(published)) == len(published)
    assert told[-1].number > len(told)
    assert all((outcome.gravity, outcome.gravity_unit) == (None, None) for outcome in told)
