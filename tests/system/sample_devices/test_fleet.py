"""The fleet's bounded end, with the bound made small."""

import asyncio

import pytest

from sample_devices import fleet
from sample_devices.devices import Targets, simulate_fleet
from sample_devices.wire.report import Address

from .servers import WAIT_S, http_talk, serving


async def test_reports_that_nobody_answers_are_cut_off_after_the_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet, "FINISH_DEADLINE_S", 0.05)
    hold, stop, told = asyncio.Event(), asyncio.Event(), list[fleet.Outcome]()
    async with serving(http_talk(hold=hold)) as heard:
        devices = simulate_fleet(["ispindel-http"], 2, 1, Targets(Address("127.0.0.1", heard.port)))
        running = asyncio.create_task(fleet.run(devices, fleet.Beat(0.01, 900), stop, told.append))
        await heard.at_least(2)
        stop.set()
        tally = await asyncio.wait_for(running, WAIT_S)
        hold.set()
    assert tally == fleet.Tally(sent=2, answered=0)
    assert [outcome.error for outcome in told] == ["stopped before it was answered"] * 2


async def test_each_report_advances_the_simulated_time_by_the_step() -> None:
    stop, told = asyncio.Event(), list[fleet.Outcome]()
    async with serving(http_talk()) as heard:
        (device,) = simulate_fleet(["tiltpi-http"], 1, 1, Targets(Address("127.0.0.1", heard.port)))
        running = asyncio.create_task(fleet.run([device], fleet.Beat(0, 7200), stop, told.append))
        await heard.at_least(40)
        stop.set()
        await asyncio.wait_for(running, WAIT_S)
    for outcome in told:
        point = device.beer.at((outcome.number - 1) * 7200)
        assert outcome.gravity == f"{round(point.gravity_sg, 3):g}"
