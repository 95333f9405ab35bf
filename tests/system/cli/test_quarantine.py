"""`quarantine`: what was not understood, looked at safely and tried again, with a gateway or without."""

import json
import os
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.output import harmless
from gateway.config import NO_DATABASE
from gateway.store.sqlite.store import SqliteStore
from tests.program.program import answer, command, ispindel, refusal, run

ARRIVAL_MS = 1_772_616_600_123
"""2026-03-04T09:30:00.123Z."""

INSERT = """
INSERT INTO quarantine (received_at, channel, source, driver, query, label, reason, body, hint)
VALUES (:received_at, :channel, :source, :driver, :query, :label, :reason, :body, :hint)
"""


async def put(data: Path, *bodies: bytes, **details: Any) -> None:
    """As an earlier version would have left them, behind the back of a gateway that runs."""
    if not (data / "gateway.sqlite3").exists():
        store = SqliteStore(data)
        await store.open()
        await store.close()
    row = {
        "received_at": ARRIVAL_MS, "channel": "http /ingest", "source": "192.0.2.7", "driver": None,
        "query": "", "label": "", "reason": "no driver yet", "hint": None,
    }  # fmt: skip
    with sqlite3.connect(data / "gateway.sqlite3", timeout=20) as connection:
        connection.executemany(INSERT, [{**row, "body": body, **details} for body in bodies])
    connection.close()


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def test_the_list_says_what_came_when_how_and_why(data: Path) -> None:
    await put(data, b"x" * 60, b"second")
    found = (await answer(data, "quarantine list")).lines
    assert found[0].split() == ["NUMBER", "ARRIVED", "BY", "FROM", "REASON", "BYTES", "BEGINS"]
    assert re.split("  +", found[1]) == [
        "1", "2026-03-04 09:30", "http /ingest", "192.0.2.7", "no driver yet", "60", "x" * 48,
    ]  # fmt: skip
    assert found[2].endswith("6      second")
    assert found[3:] == [
        "2 of at most 10,000 payloads, 0.0 of at most 64 MiB",
        "0 were pushed out by newer ones",
    ]


async def test_the_list_as_json_is_one_object_a_line_of_the_newest(data: Path) -> None:
    await put(data, b"first", b"", query="a=1", hint="tilt", label="red")
    (found,) = (await answer(data, "quarantine list --json --last 1")).objects
    assert found == {
        "number": 2, "received_at": "2026-03-04T09:30:00+00:00", "channel": "http /ingest",
        "source": "192.0.2.7", "reason": "no driver yet", "kind": "other", "bytes": 3, "driver": None,
        "hint": "tilt", "label": "red", "query": "a=1", "begins": "a=1",
    }  # fmt: skip


NASTY = "\x1b]0;pwned\x07\x9b31m\u202eevil\r\nNUMBER\x00"


@pytest.mark.parametrize("words", ["quarantine list", "quarantine list --json", "quarantine show 1"])
async def test_no_payload_reaches_the_terminal_with_control_characters(tmp_path: Path, words: str) -> None:
    await put(tmp_path, NASTY.encode(), label=NASTY, reason=NASTY, channel=NASTY, source=NASTY)
    shown = (await answer(tmp_path, words)).out
    assert "pwned" in shown
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert not any(line.startswith("NUMBER\x00") for line in shown.splitlines())


def test_harmless_text_is_left_as_it_is() -> None:
    assert harmless("Käse 20 °C 🍺") == "Käse 20 °C 🍺"
    assert harmless("a\tb\x1b") == "a\\tb\\x1b"


async def test_show_tells_everything_and_what_is_understood_today(tmp_path: Path) -> None:
    await put(tmp_path, ispindel().encode(), hint="ispindel")
    found = (await answer(tmp_path, "quarantine show 1")).lines
    assert dict(line.split(maxsplit=1) for line in found[:6]) == {
        "number": "1", "arrived": "2026-03-04 09:30:00", "by": "http /ingest", "from": "192.0.2.7",
        "reason": "no driver yet", "driver": "ispindel, usually",
    }  # fmt: skip
    assert found[7] == (
        "today    a reading of ispindel:1 'spindle1': gravity 12.5 (unit not sent), temp 20.5 C"
    )
    assert found[8] == f"  {ispindel()}"


@pytest.mark.parametrize(
    ("body", "details", "today"),
    [
        (b"?", {}, "not understood: "),
        (b"{}", {"channel": "forward brew"}, "`quarantine replay 1` puts it into the forwarding queue again"),
        (b'{"name":"x","temp":null}', {"driver": "stream"}, "understood, and holds no measurement"),
    ],
)
async def test_show_says_what_would_become_of_it(
    tmp_path: Path, body: bytes, details: dict[str, Any], today: str
) -> None:
    await put(tmp_path, body, **details)
    assert f"today    {today}" in (await answer(tmp_path, "quarantine show 1")).out


async def test_what_is_no_text_is_shown_in_hex_and_raw_as_it_came(tmp_path: Path) -> None:
    body = bytes(range(250, 256)) + b"plain\x00"
    await put(tmp_path, body)
    assert (await answer(tmp_path, "quarantine show 1")).lines[-1].split() == [
        "000000", *body.hex(" ").split(), "......plain.",
    ]  # fmt: skip
    await put(tmp_path, "Bräu\n".encode())
    finished = await run(
        "quarantine", "show", "2", "--raw", "--config", os.devnull, "--data-dir", str(tmp_path)
    )
    assert finished.out == "Bräu\n"


async def test_replay_makes_readings_of_what_is_understood_by_now(data: Path) -> None:
    await put(data, ispindel(1).encode(), b"?", ispindel(2).encode())
    done = await answer(data, "quarantine replay")
    assert done.lines[0] == "2 understood, 1 still not"
    assert done.lines[1].startswith("  1 x ")
    assert [line["created_at"] for line in (await answer(data, "readings --json")).objects] == [
        "2026-03-04T09:30:00+00:00"
    ] * 2
    assert [line["number"] for line in (await answer(data, "quarantine list --json")).objects] == [2]
    again = await command(data, "quarantine replay")
    assert (again.status, again.lines[0]) == (0, "0 understood, 1 still not")
    assert len((await answer(data, "readings --json")).objects) == 2


async def test_replay_of_some_and_of_a_device(tmp_path: Path) -> None:
    await put(tmp_path, *(ispindel(number).encode() for number in (1, 2, 3)))
    assert (await answer(tmp_path, "quarantine replay 2")).lines == ["1 understood, 0 still not"]
    assert (await answer(tmp_path, "quarantine replay --device spindle3")).lines == [
        "1 understood, 0 still not"
    ]
    assert [line["name"] for line in (await answer(tmp_path, "readings --json")).objects] == [
        "spindle2",
        "spindle3",
    ]


async def test_what_is_not_there_is_said_with_the_remedy(tmp_path: Path) -> None:
    await put(tmp_path, ispindel().encode())
    remedy = "nothing in quarantine has the number 7; `quarantine list` shows what is there"
    assert await refusal(tmp_path, "quarantine show 7") == remedy
    assert await refusal(tmp_path, "quarantine replay 1 7") == remedy
    assert (
        await refusal(tmp_path, "quarantine replay 1 --device red") == "either numbers or --device, not both"
    )
    assert (await answer(tmp_path, "readings --json")).objects == []


async def test_where_there_are_no_data_replay_makes_none(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    for words in ("quarantine replay", "devices list"):
        assert await refusal(nowhere, words) == NO_DATABASE.format(nowhere)
    assert not nowhere.exists()


async def test_a_refused_reading_is_forwarded_again(tmp_path: Path) -> None:
    await put(tmp_path, json.dumps({"_id": {"$oid": "0" * 24}}).encode(), channel="forward brew")
    assert (await answer(tmp_path, "quarantine replay")).lines == [
        "0 understood, 1 still not",
        "  1 x the reading is gone, or in no brew session",
    ]
