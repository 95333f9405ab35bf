"""`readings`, and what every command does with a closed pipe, a full disk or no database."""

import re
from pathlib import Path

import pytest

from gateway.config import NO_DATABASE
from gateway.domain.reading import SPEC_MEMBERS
from gateway.store.sqlite.engine.database import DATABASE_NAME
from tests.program.program import answer, command, ispindel, refusal

from .conftest import gateway, stored, texts_in

GRAVITYMON = (
    '{"name":"gm","ID":"7a84dc","token":"","interval":900,"temperature":21.5,"temp_units":"C",'
    '"gravity":1.0123,"angle":%d,"battery":88,"RSSI":-70,"gravity-unit":"G"}'
)


async def test_json_has_the_members_of_the_specification_and_what_the_device_told(tmp_path: Path) -> None:
    tilt = "Timepoint=46000.5&Temp=68&SG=1.050&Beer=Malt%20&%20Hops&Color=RED&Comment="
    await stored(tmp_path, ispindel(5), GRAVITYMON % 1, tilt)
    readings = {r["name"]: r for r in (await answer(tmp_path, "readings --json")).objects}
    calibrated = {"calibrated_gravity", "calibrated_temp"}
    always = {*SPEC_MEMBERS, *calibrated, "device_id", "received_from", "flags", "original", "delivery"}
    assert set(readings["spindle5"]) == always | {"angle", "battery", "rssi", "interval_s"}
    assert set(readings["gm"]) == always | {"angle", "battery_percent", "rssi", "interval_s"}
    assert set(readings["RED"]) == always | {"device_time_local"}
    spindle = readings["spindle5"]
    assert list(spindle)[: len(SPEC_MEMBERS)] == list(SPEC_MEMBERS)
    facts = ("device_id", "angle", "battery", "rssi", "interval_s", "flags")
    assert [spindle[fact] for fact in facts] == ["5", 45.25, 3.95, -61, 900, []]
    assert (spindle["gravity"], spindle["gravity_unit"], spindle["temp"]) == ("12.5", "P", "20.5")
    assert readings["gm"]["battery_percent"] == 88
    assert (readings["RED"]["temp_unit"], readings["RED"]["beer"]) == ("F", "Malt & Hops")


async def test_a_name_cannot_write_on_the_terminal(tmp_path: Path) -> None:
    await stored(tmp_path, '{"name":"a\\u001b[2Jb\\nc","ID":1,"angle":45,"temperature":20,"gravity":12}')
    for words in ("readings", "devices list", "devices show 1"):
        finished = await answer(tmp_path, words)
        assert "\x1b" not in finished.out
        assert ("a[2Jbc" if "devices" in words else "a\\x1b[2Jb\\nc") in finished.out


async def test_newest_last_and_of_whom(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        await answer(tmp_path, "sessions add --batchcode A")
        for number in range(6):
            body = ispindel(number % 2 + 1, angle=str(number))
            async with http.post(server.url + "/ingest", data=body.encode()) as response:
                assert response.status == 200
            if number == 1:
                await answer(tmp_path, "devices assign 2 1")
        for _ in range(2):
            for options, angles in (
                ("", [0, 1, 2, 3, 4, 5]),
                ("--last 2", [4, 5]),
                ("--device spindle1", [0, 2, 4]),
                ("--session 1", [3, 5]),
                ("--session 1 --device 1 --last 5", []),
            ):
                finished = await answer(tmp_path, f"readings --json {options}")
                assert [r["angle"] for r in finished.objects] == angles
            if server.process.returncode is None:
                await server.stop()
    table = (await answer(tmp_path, "readings --last 1")).lines
    assert table[0].split()[:3] == ["TIME", "(UTC)", "NAME"]
    assert table[1].split()[1:] == ["spindle2", "12.5", "P", "20.5", "C", "1"]
    assert len(table) == 2
    assert await refusal(tmp_path, "readings --device nobody") == (
        "no device 'nobody'; `devices list` shows them"
    )
    assert await refusal(tmp_path, "readings --session 9") == "no brew session 9; `sessions list` shows them"


@pytest.mark.parametrize(
    "words",
    [
        "readings --last 0",
        "readings --last 99999999999999999999",
        "sessions add --batchcode A --upstream-id 99999999999999999999",
    ],
)
async def test_numbers_out_of_range_are_refused(tmp_path: Path, words: str) -> None:
    finished = await command(tmp_path, words)
    assert finished.status == 2
    assert re.search("is the (most|least) that it can be", finished.err)


@pytest.mark.parametrize("words", ["readings --session", "devices assign 1", "sessions show"])
async def test_a_number_that_no_session_can_have_is_none(tmp_path: Path, words: str) -> None:
    number = "9" * 20
    said = await refusal(tmp_path, words, number)
    assert said == f"no brew session {number}; `sessions list` shows them"


@pytest.mark.parametrize("words", ["readings", "devices list", "sessions list --json", "keys list"])
async def test_where_there_is_no_database(tmp_path: Path, words: str) -> None:
    assert await refusal(tmp_path, words) == NO_DATABASE.format(tmp_path)
    assert texts_in(tmp_path) == []


async def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(b"no database at all, but long enough to look at" * 40)
    for words in ("readings", "keys list", "keys add x"):
        assert "the file is no database" in await refusal(tmp_path, words)
