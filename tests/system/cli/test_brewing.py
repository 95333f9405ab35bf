"""`sessions` and `devices`: what is printed, what is refused."""

from datetime import date
from pathlib import Path

from tests.program.program import HTTP_ONLY, answer, ispindel, post, refusal, serving

from .conftest import gateway, stored

DEVICE_MEMBERS = {
    *("id", "key", "device_id", "name", "label", "family", "session", "gravity_unit", "interval_s"),
    "readings",
    *("first_seen_at", "last_seen_at", "last_gravity", "last_gravity_unit", "last_temp", "last_temp_unit"),
    *("bound_source", "bound_keys", "waiting"),
}


async def test_sessions_add_prints_only_the_id(data: Path) -> None:
    first = await answer(data, "sessions add --batchcode HP001")
    second = await answer(data, "sessions add --batchcode HP002 --phase Lagering --upstream-id 77")
    assert [(first.out, first.err), (second.out, second.err)] == [("1\n", ""), ("2\n", "")]
    listed = await answer(data, "sessions list --json")
    created = [entry.pop("created_at") for entry in listed.objects]
    assert all(moment.endswith("+00:00") for moment in created)
    days = [entry.pop("userdate") for entry in listed.objects]
    assert [date.fromisoformat(day).isoformat() for day in days] == days
    unsaid = {"recipe_id": None, "recipe_title": "", "folder_id": None, "folder_name": None}
    added = [
        {k: v for k, v in entry.items() if k not in {"created_at", "userdate"}} for entry in listed.objects
    ]
    assert added == [
        {**unsaid, "id": 1, "batchcode": "HP001", "phase": "Primary Fermentation", "upstream_id": None},
        {**unsaid, "id": 2, "batchcode": "HP002", "phase": "Lagering", "upstream_id": 77},
    ]
    table = (await answer(data, "sessions list")).lines
    assert table[0].split() == [
        *("ID", "BATCHCODE", "PHASE", "BREWED", "RECIPE", "FOLDER", "UPSTREAM", "CREATED")
    ]
    assert table[2].split()[:5] == ["2", "HP002", "Lagering", days[1], "77"]


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("sessions", "add", "--batchcode", " "), "the batch code is empty"),
    (("sessions", "add", "--batchcode", "\udcff"), "the batchcode is not UTF-8 text: '\\udcff'"),
    (
        ("sessions", "add", "--batchcode", "A", "--phase", "\udcff"),
        "the phase is not UTF-8 text: '\\udcff'",
    ),
    (("devices", "assign", "red", "1"), "no device 'red'; `devices list` shows them"),
    (("devices", "assign", "", "1"), "no device ''; `devices list` shows them"),
    (("devices", "release", "red"), "no device 'red'; `devices list` shows them"),
    (("devices", "release", "\udcff"), "the device is not UTF-8 text: '\\udcff'"),
    *(
        (
            ("devices", "assign", "red", "1", "--since", since),
            f"{since!r} is no time; write 2026-03-01 or 2026-03-01T18:30 or ...+01:00",
        )
        for since in ("yesterday", "0001-01-01", "2026-02-30", "")
    ),
]


async def test_what_cannot_be_done(data: Path) -> None:
    for words, message in REFUSED:
        assert await refusal(data, words) == message


async def test_a_device_is_assigned_and_released_by_any_of_its_names(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        assert await post(http, server, ispindel(77, name="Cellar left")) == 200
        await answer(tmp_path, "sessions add --batchcode A")
        for name in ("1", "77", "Cellar left", "ispindel:77"):
            assigned = await answer(tmp_path, "devices assign", name, "1")
            sentence = "'Cellar left' reports into brew session 1 (A) from now on."
            assert (assigned.out, assigned.err.splitlines()[0]) == ("", sentence)
            [device] = (await answer(tmp_path, "devices list --json")).objects
            assert (device["session"], device["name"]) == (1, "Cellar left")
            await answer(tmp_path, "devices release", name)
            [device] = (await answer(tmp_path, "devices list --json")).objects
            assert device["session"] is None
        assert set(device) == DEVICE_MEMBERS
        assert device["device_id"] == "77"
        assert (device["last_gravity"], device["last_gravity_unit"]) == ("12.5", "P")
        table = (await answer(tmp_path, "devices list")).lines
        assert table[0].split()[:3] == ["ID", "KEY", "NAME"]
        assert "ispindel:77" in table[1]
        refused = await refusal(tmp_path, "devices assign", "77", "5")
        assert refused == "no brew session 5; `sessions list` shows them"


async def test_an_ambiguous_name_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await stored(data, ispindel(1, name="twin", angle="1"), ispindel(2, name="twin", angle="2"))
    await answer(data, "sessions add --batchcode A")
    message = "'twin' is ambiguous, it could be ispindel:1, ispindel:2: use one of these"
    assert await refusal(data, "devices assign twin 1") == message
    assert await refusal(data, "devices release twin") == message
    assert await refusal(data, "readings --device twin") == message
    async with serving(data, *HTTP_ONLY):
        assert await refusal(data, "devices assign twin 1") == message
        await answer(data, "devices assign ispindel:2 1")


async def test_readings_of_an_unknown_device_wait_until_it_is_assigned(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        assert await post(http, server, ispindel(5, angle="1")) == 200
        assert await post(http, server, ispindel(5, angle="2")) == 200
        await answer(tmp_path, "sessions add --batchcode A")
        assert (await answer(tmp_path, "devices assign 5 1")).err == (
            "spindle5 reports into brew session 1 (A) from now on.\n"
            "2 earlier readings of it are in no brew session; "
            "`devices assign spindle5 1 --since DAY` puts those since a day into it.\n"
        )
        assert await post(http, server, ispindel(5, angle="3")) == 200
        readings = (await answer(tmp_path, "readings --json")).objects
        assert [(r["angle"], r["brewevent_id"]) for r in readings] == [(1, None), (2, None), (3, 1)]
        claimed = await answer(tmp_path, "devices assign 5 1 --since 2020-01-01")
        assert (claimed.out, claimed.err) == (
            "",
            "spindle5 reports into brew session 1 (A) from now on; 2 earlier readings were put into it.\n",
        )
        readings = (await answer(tmp_path, "readings --json --session 1")).objects
        assert sorted(r["angle"] for r in readings) == [1, 2, 3]
        again = await answer(tmp_path, "devices assign 5 1 --since 2020-01-01")
        assert again.err.endswith("; no earlier readings were put into it.\n")


async def test_since_leaves_what_came_before(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        assert await post(http, server, ispindel(5)) == 200
        await answer(tmp_path, "sessions add --batchcode A")
        claimed = await answer(tmp_path, "devices assign 5 1 --since 2999-01-01T18:30+01:00")
        assert claimed.err.endswith("; no earlier readings were put into it.\n")
