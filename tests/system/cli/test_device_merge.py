"""`devices merge`, beside a gateway and without one, and the hint that two devices may be one."""

import json
from pathlib import Path

import pytest

from tests.program.program import HTTP_ONLY, answer, command, refusal, serving

from .conftest import gateway
from .filling import fill_with

TILT = "Timepoint=1&Temp={}&SG=1.048&Beer=&Color=RED&Comment="
BRIDGE = '{{"mdns_id":"b","tilts":{{"Red":{{"color":"Red","temp":"{}","tempUnit":"F","gravity":"1.047"}}}}}}'
SENT = [form.format(temp) for temp in (68, 67) for form in (TILT, BRIDGE)]


@pytest.fixture
async def tilt(tmp_path: Path) -> Path:
    """A data directory with one Tilt that two programs have reported; nothing runs."""
    await fill_with(tmp_path / "data", SENT)
    return tmp_path / "data"


async def devices(data: Path) -> list[tuple[str, int]]:
    lines = (await answer(data, "devices list --json")).out.splitlines()
    return [(device["key"], device["readings"]) for device in map(json.loads, lines)]


async def check_merge(data: Path) -> None:
    """Hinted, looked at, done, and refused a second time."""
    listed = await answer(data, "devices list")
    assert "Devices 1, 2 have the same colour and may be one: see `devices merge 1 2 --dry-run`" in listed.err
    before = await devices(data)
    looked = (await answer(data, "devices merge 1 2 --dry-run")).out
    assert await devices(data) == before == [("tilt:RED", 2), ("tiltbridge:Red@b", 2)]
    assert "Device 2 (tiltbridge:Red@b, Red) would become part of device 1 (tilt:RED, RED)." in looked
    assert "Device 2 has 2 readings in no brew session from " in looked
    assert "2 readings of device 2 lie within 60 seconds of one of device 1" in looked
    assert looked.splitlines()[-1] == "Nothing is changed yet: without --dry-run it is done."
    done = (await answer(data, "devices merge RED tiltbridge:Red@b")).out
    assert "Device 2 (tiltbridge:Red@b, Red) is part of device 1 (tilt:RED, RED)." in done
    assert await devices(data) == [("tilt:RED", 4)]
    again = await answer(data, "devices list")
    assert again.err == ""
    shown = [line.split() for line in (await answer(data, "devices show 1")).out.splitlines()]
    assert ["merged", "in", "tiltbridge:Red@b"] in shown
    assert "one device already" in await refusal(data, "devices merge 1 tiltbridge:Red@b")


async def test_without_a_gateway(tilt: Path) -> None:
    await check_merge(tilt)
    async with gateway(tilt) as (server, http):
        async with http.post(f"{server.url}/ingest", data=BRIDGE.format(66)) as response:
            assert response.status == 200
        assert await devices(tilt) == [("tilt:RED", 5)]


async def test_beside_a_running_gateway_the_next_reading_is_the_devices(tilt: Path) -> None:
    async with gateway(tilt) as (server, http):
        await check_merge(tilt)
        async with http.post(f"{server.url}/ingest", data=BRIDGE.format(66)) as response:
            assert response.status == 200
        assert await devices(tilt) == [("tilt:RED", 5)]
    async with serving(tilt, *HTTP_ONLY):
        assert await devices(tilt) == [("tilt:RED", 5)]


async def test_nobody_is_merged_with_nobody(tilt: Path) -> None:
    assert "no device '9'" in await refusal(tilt, "devices merge 1 9")
    assert (await command(tilt, "devices merge 1")).status == 2
