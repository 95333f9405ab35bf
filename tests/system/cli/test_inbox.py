"""`inbox` and `devices bind`, `unbind`, `forget`, with a running gateway and without one."""

import re
from pathlib import Path

from tests.payloads import ispindel
from tests.program.program import answer, post, refusal
from tests.system.cli.conftest import gateway, stored


async def names(data: Path) -> list[tuple[str, str, int]]:
    found = (await answer(data, "inbox list --json")).objects
    return [(entry["key"], entry["reason"], entry["readings"]) for entry in found if not entry["refused"]]


async def test_a_device_is_accepted_or_refused_by_its_name(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with gateway(data, new_devices="ask") as (server, http):
        for number in (1, 2, 3):
            assert await post(http, server, ispindel(number)) == 200
        assert await names(data) == [(f"ispindel:{number}", "new device", 1) for number in (1, 2, 3)]
        table = (await answer(data, "inbox list")).lines
        assert table[0].split() == ["NUMBER", "KEY", "NAME", "FROM", "REASON", "READINGS", "FIRST", "LAST"]
        assert table[1].split()[:6] == ["1", "ispindel:1", "spindle1", "127.0.0.1", "new", "device"]
        assert table[-1].startswith("3 of at most 200 devices, 3 readings, ")
        assert "ispindel:1 is accepted, with 1 readings." in (await answer(data, "inbox accept spindle1")).err
        assert "spindle2 is refused; 1 readings" in (await answer(data, "inbox refuse spindle2")).err
        assert await post(http, server, ispindel(1, gravity="12.4")) == 200
        assert await post(http, server, ispindel(2, gravity="12.4")) == 200
        assert (await answer(data, "inbox list")).lines[2].startswith("refused until ")
        async with http.get(
            f"{server.url}/manage/status", headers={"X-API-KEY": server.first_key or ""}
        ) as found:
            status = await found.json()
        assert status["inbox"]["names"] == 1
        assert (status["since_start"]["waiting"], status["since_start"]["refused"]) == (3, 1)
        assert "1 of at most 200 devices wait" in (await answer(data, "doctor --json")).out
    # Without a gateway the commands work in this process.
    assert await names(data) == [("ispindel:3", "new device", 1)]
    assert "spindle2 is no longer refused." in (await answer(data, "inbox accept spindle2")).err
    await answer(data, "inbox accept 3")
    assert await names(data) == []
    devices = (await answer(data, "devices list --json")).objects
    assert [(device["name"], device["readings"]) for device in devices] == [("spindle1", 2), ("spindle3", 1)]
    assert "nothing of 'spindle9' waits" in await refusal(data, "inbox accept spindle9")
    rows = (await answer(data, "audit list --json")).objects
    verbs = {(row["verb"], row["object"]) for row in rows}
    assert {("accept", "inbox:ispindel:1"), ("refuse", "inbox:ispindel:2")} <= verbs


async def test_a_device_is_bound_to_its_address(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await stored(data, ispindel(1))
    assert "--source" in await refusal(data, "devices bind spindle1")
    assert "no address" in await refusal(data, "devices bind spindle1 --source here")
    assert "DHCP" in (await answer(data, "devices bind spindle1 --source 192.168.1.37")).err
    async with gateway(data) as (server, http):
        assert await post(http, server, ispindel(1, gravity="12.4")) == 200
        assert await names(data) == [("ispindel:1", "not from its address", 1)]
        shown = (await answer(data, "devices show spindle1")).out
        assert "192.168.1.37; what comes from elsewhere waits in the inbox" in shown
        assert "1 readings in the inbox" in shown
        assert (await answer(data, "devices list")).lines[0].endswith("BOUND TO      WAITING")
        await answer(data, "devices unbind spindle1")
        assert await post(http, server, ispindel(1, gravity="12.3")) == 200
        await answer(data, "inbox accept spindle1 --source 127.0.0.1")
        [device] = (await answer(data, "devices list --json")).objects
        assert (device["readings"], device["waiting"], device["bound_source"]) == (3, 0, None)


async def test_a_device_is_forgotten_with_its_readings_or_without(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await stored(data, ispindel(1), ispindel(2))
    assert "either" in await refusal(data, "devices forget")
    done = (await answer(data, "devices forget spindle1")).err
    assert "its 1 readings stay, 1 of them in no brew session." in done
    assert "say --yes" in await refusal(data, "devices forget spindle2 --with-readings")
    async with gateway(data) as (server, http):
        await answer(data, "devices forget spindle2 --with-readings --yes")
        assert await post(http, server, ispindel(1)) == 200
        assert len((await answer(data, "readings --json")).objects) == 2
        assert "Every device has reported" in (await answer(data, "devices forget --unused 30d")).err
    [device] = (await answer(data, "devices list --json")).objects
    assert (device["key"], device["readings"]) == ("ispindel:1", 1)


async def test_a_device_with_a_key_of_its_own_reports_with_it_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await stored(data, ispindel(1))
    async with gateway(data) as (server, http):
        added = await answer(data, "keys add vat --scope ingest --device spindle1")
        key = re.findall(r"hg_[\w-]+", added.out)[0]
        for gravity, path in (
            ("12.1", "/ingest"),
            ("12.2", f"/ingest/{key}"),
            ("12.3", "/ingest/hg_unknown"),
        ):
            await post(http, server, ispindel(1, gravity=gravity), path)
        assert await post(http, server, ispindel(2), f"/ingest/{key}") == 200
        found = [(entry[0], entry[1]) for entry in await names(data)]
        assert ("ispindel:1", "without its key") in found
        assert ("ispindel:2", "with the key of another device") in found
        [device] = (await answer(data, "devices list --json")).objects
        assert (device["readings"], device["bound_keys"]) == (2, ["vat"])
        rows = (await answer(data, "audit list --json")).objects
        assert [row["object"] for row in rows if row["verb"] == "key of another device"] == ["key:vat"]
