"""The command line as users run it: a subprocess, real sockets, real signals."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sample_devices.devices import KINDS, Broker, Targets
from sample_devices.targets import DEFAULTS, targets_from
from sample_devices.wire.report import Address
from tests.system.sample_devices.servers import WAIT_S, http_talk, mqtt_talk, serving, tcp_talk
from tests.system.sample_devices.test_transports import unused_port

FIVE = ("ispindel-http", "ispindel-mqtt", "gravitymon-http", "gravitymon-mqtt", "tiltpi-http")
PROJECT = Path(__file__).parents[2]


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sample_devices", *arguments, stdout=PIPE, stderr=PIPE, cwd=PROJECT
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ran(*arguments: str) -> tuple[int, str, str]:
    async with started(*arguments) as process:
        out, err = await asyncio.wait_for(process.communicate(), 4 * WAIT_S)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


async def test_kinds_lists_every_kind() -> None:
    status, out, _ = await ran("kinds")
    assert status == 0
    words = [line.split() for line in out.splitlines()]
    assert [(name, transport) for name, transport, *_ in words] == [
        (name, kind.transport) for name, kind in KINDS.items()
    ]


async def test_kinds_says_the_option_that_a_kind_needs() -> None:
    _, out, _ = await ran("kinds")
    needing = [line for line in out.splitlines() if "Needs" in line]
    assert [line.split()[0] for line in needing] == [name for name, kind in KINDS.items() if kind.needs]
    assert needing[0].endswith(" Needs --mqtt-topic brewery/{label}=brewpiless")


@pytest.mark.parametrize("options", [[], ["--all-kinds"]])
async def test_a_fleet_has_the_kinds_that_a_gateway_hears_by_itself_and_others_on_request(
    options: list[str],
) -> None:
    port = unused_port()
    quick = ["--mqtt", f"127.0.0.1:{port}", "--every", "0.1", "--seconds", "1", "--json"]
    _, out, _ = await ran("fleet", *quick, *options)
    kinds = {line["kind"] for line in objects(out) if "kind" in line}
    mqtt = {name: kind for name, kind in KINDS.items() if kind.transport == "mqtt"}
    assert kinds == {name for name, kind in mqtt.items() if (options or not kind.needs) and not kind.alone}
    assert kinds


def test_a_fleet_without_targets_reports_to_this_machine() -> None:
    here = "127.0.0.1"
    assert targets_from(*DEFAULTS) == Targets(Address(here, 8080), Broker(here, 1883), Address(here, 9501))


def test_tcp_targets_have_the_port_of_the_spindle_where_none_is_given() -> None:
    assert targets_from(None, None, "cellar").tcp == Address("cellar", 9501)
    assert targets_from(None, None, "cellar:95").tcp == Address("cellar", 95)


async def test_send_tcp_shows_the_bytes_and_the_reply() -> None:
    async with serving(tcp_talk(b"\x06")) as heard:
        where = f"127.0.0.1:{heard.port}"
        status, out, err = await ran("send", "ispindel-tcp", "--tcp", where, "--hours", "48", "--show")
    assert (status, err) == (0, "")
    assert heard.items[0].endswith(b'"gravity":7.375617,"interval":900,"RSSI":-65}\r\n')
    assert out.splitlines() == [repr(heard.items[0]), "answered: replied b'\\x06'"]


async def test_send_makes_one_report_for_each_fault() -> None:
    async with serving(mqtt_talk()) as heard:
        options = ["--fault", "duplicate,retained", "--fault", "garbage"]
        status, out, err = await ran("send", "torpedo-mqtt", "--mqtt", f"127.0.0.1:{heard.port}", *options)
    assert (status, err, out.count("answered: 1 messages handed over")) == (0, "", 5)
    published = [item for item in heard.items if item[0] & 0xF0 == 0x30]
    first, again, retained, live, noise = published
    assert first == again == live
    assert (retained[0], retained[1:]) == (0x31, first[1:])
    assert b"\xff\xfe" in noise


@pytest.mark.parametrize("arguments", [["--help"], ["send", "--help"], ["fleet", "--help"]])
async def test_help_has_examples(arguments: list[str]) -> None:
    status, out, _ = await ran(*arguments)
    assert status == 0
    assert "  python -m sample_devices send tiltpi-http --http http://127.0.0.1:8080" in out


async def test_send_http_shows_exactly_what_arrives() -> None:
    async with serving(http_talk()) as heard:
        status, out, err = await ran("send", "ispindel-http", "--http", heard.url, "--hours", "48", "--show")
    assert (status, err) == (0, "")
    shown, _, summary = out.rpartition("\nanswered: ")
    assert [shown.encode()] == heard.items
    assert heard.items[0].startswith(
        f"POST /ingest/ispindel HTTP/1.1\r\nHost: 127.0.0.1:{heard.port}\r\n".encode()
    )
    assert b'"gravity":7.375617' in heard.items[0]
    assert summary == '200 OK {"result":"success"}\n'


@pytest.mark.parametrize(
    ("url_end", "path", "target"),
    [
        ("/", None, "/ingest/tilt"),
        ("/all?k=1", None, "/all?k=1"),
        ("/all", "/own", "/own"),
        ("", "own", "own"),
    ],
)
async def test_send_takes_the_path_from_option_or_url(url_end: str, path: str | None, target: str) -> None:
    async with serving(http_talk()) as heard:
        options = ["--path", path] if path else []
        status, _, err = await ran("send", "tiltpi-http", "--http", heard.url + url_end, *options)
    assert (status, err) == (0, "")
    assert heard.items[0].startswith(f"POST {target} HTTP/1.1\r\n".encode())


async def test_send_mqtt_with_login_and_show() -> None:
    async with serving(mqtt_talk()) as heard:
        where = f"me:s%40cret@127.0.0.1:{heard.port}"
        status, out, err = await ran("send", "gravitymon-mqtt", "--mqtt", where, "--name", "vat1", "--show")
        await heard.connection_ended()
    assert (status, err) == (0, "")
    assert heard.items[0] == b"\x10\x1c\x00\x04MQTT\x04\xc2\x00\x0a\x00\x04vat1\x00\x02me\x00\x06s@cret"
    assert [item[4:].split(b"/")[-1][:4] for item in heard.items[1:-1]] == [
        b"tilt", b"temp", b"temp", b"batt", b"grav", b"velo", b"inte", b"RSSI",
    ]  # fmt: skip
    assert heard.items[-1] == b"\xe0\x00"
    assert out.splitlines()[1:-1] == [repr(item) for item in heard.items[1:]]
    assert out.splitlines()[-1] == "answered: 8 messages handed over"


async def test_send_fails_when_the_answer_is_not_200() -> None:
    async with serving(http_talk(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")) as heard:
        status, out, err = await ran("send", "gravitymon-http", "--http", heard.url)
    assert (status, out) == (1, "")
    assert err == f"error: 127.0.0.1:{heard.port}: answered 503 Service Unavailable\n"


async def test_send_fails_in_one_line_when_nobody_listens() -> None:
    port = unused_port()
    for kind, option in (
        ("ispindel-http", f"--http=http://127.0.0.1:{port}"),
        ("ispindel-mqtt", f"--mqtt=127.0.0.1:{port}"),
    ):
        status, out, err = await ran("send", kind, option)
        assert (status, out, err) == (1, "", f"error: 127.0.0.1:{port}: connection refused\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["send", "ispindel-http"], "ispindel-http needs --http"),
        (["send", "ispindel-mqtt", "--http", "http://h"], "ispindel-mqtt needs --mqtt"),
        (["send", "toaster", "--http", "http://h"], "there is no kind 'toaster'; there are ispindel-http,"),
        (["send", "ispindel-http", "--http", "https://h"], "--http must look like http://HOST:PORT"),
        (["send", "ispindel-http", "--http", "http://h:99999"], "Port out of range"),
        (["send", "ispindel-mqtt", "--mqtt", "http://h"], "--mqtt must look like HOST:PORT"),
        (["send", "ispindel-tcp", "--http", "http://h"], "ispindel-tcp needs --tcp"),
        (["send", "ispindel-tcp", "--tcp", "http://h"], "--tcp must look like HOST:PORT"),
        (["fleet", "--kind", "toaster"], "there is no kind 'toaster'; there are ispindel-http,"),
        (["fleet", "--fault", "late,loud"], "there is no fault 'loud'; there are duplicate, late,"),
        (["send", "ispindel-http", "--http", "http://h", "--fault", "retained"], "only MQTT messages can be"),
        (["send", "ispindel-http", "--http", "http://h", "--fault", "wrong-clock"], "ispindel-http sends no"),
        (["fleet", "--http", "http://h", "--kind", "ispindel-mqtt"], "ispindel-mqtt needs --mqtt"),
        (["fleet", "--http", "http://h", "--seconds", "1", "--minutes", "1"], "give --seconds or --minutes"),
    ],
)  # fmt: skip
async def test_wrong_use_is_one_line_and_exit_1(arguments: list[str], why: str) -> None:
    status, out, err = await ran(*arguments)
    assert (status, out) == (1, "")
    assert err.startswith(f"error: {why}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            ["send", "ispindel-http", "--http", "http://h", "--hours", hours]
            for hours in ("1e308", "inf", "nan")
        ),
        *(
            ["fleet", "--http", "http://h", f"--{option}", value]
            for option in ("every", "step", "seconds", "minutes")
            for value in ("inf", "nan", "-1")
        ),
    ],
)
async def test_figures_that_no_curve_has_are_an_error(arguments: list[str]) -> None:
    status, out, err = await ran(*arguments)
    assert (status, out) == (2, "")
    assert f"Invalid value for '{arguments[-2]}'" in err
    assert "Traceback" not in err


async def test_fleet_reports_in_json_and_says_what_was_on_the_wire() -> None:
    async with serving(http_talk()) as heard, serving(mqtt_talk()) as broker:
        where = ["--http", heard.url, "--mqtt", f"127.0.0.1:{broker.port}"]
        where += [option for kind in FIVE for option in ("--kind", kind)]
        async with started("fleet", *where, "--every", "0.2", "--json") as process:
            await heard.at_least(7)  # three devices, at least two rounds
            await broker.at_least(45)  # two devices; a report is 9 or 10 packets
            process.send_signal(signal.SIGTERM)
            out, err = await asyncio.wait_for(process.communicate(), 2 * WAIT_S)
    assert (process.returncode, err) == (0, b"")
    *reports, summary = objects(out.decode())
    assert summary == {"summary": {"sent": len(reports), "answered": len(reports)}}
    assert {report["kind"] for report in reports} == set(FIVE)
    assert list(reports[0]) == [
        "kind", "name", "device_id", "transport", "gravity", "gravity_unit", "temp", "temp_unit",
        "answered", "error", "number", "sent_at", "facts",
    ]  # fmt: skip
    posted = [report for report in reports if report["transport"] == "http"]
    assert len(heard.items) == len(posted)
    for report in posted:
        number = report["gravity"].encode()
        assert any(number in item and report["name"].encode() in item for item in heard.items)
    for kind in FIVE:
        numbers = [report["number"] for report in reports if report["kind"] == kind]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_fleet_lets_a_report_in_flight_finish_after_a_signal(number: signal.Signals) -> None:
    hold = asyncio.Event()
    async with serving(http_talk(hold=hold)) as heard:
        options = ["--kind", "tiltpi-http", "--every", "60", "--json"]
        async with started("fleet", "--http", heard.url, *options) as process:
            await heard.at_least(1)
            process.send_signal(number)
            hold.set()
            out, err = await asyncio.wait_for(process.communicate(), WAIT_S)
    assert (process.returncode, err) == (0, b"")
    report, summary = objects(out.decode())
    assert (report["name"], report["answered"], report["temp_unit"]) == ("RED", True, "F")
    assert summary == {"summary": {"sent": 1, "answered": 1}}


async def test_fleet_tells_every_line_at_once_and_goes_on_after_errors() -> None:
    port = unused_port()
    options = ["--count", "2", "--every", "0.05", "--json"]
    async with started("fleet", "--http", f"http://127.0.0.1:{port}", *options) as process:
        assert process.stdout is not None
        lines = [await asyncio.wait_for(process.stdout.readline(), WAIT_S) for _ in range(6)]
        process.send_signal(signal.SIGTERM)
        out, _ = await asyncio.wait_for(process.communicate(), WAIT_S)
    reports = [json.loads(line) for line in lines]
    assert {report["answered"] for report in reports} == {False}
    assert {report["error"] for report in reports} == {f"127.0.0.1:{port}: connection refused"}
    assert process.returncode == 0
    assert objects(out.decode())[-1]["summary"]["answered"] == 0


@pytest.mark.parametrize("limit", [["--minutes", "0.01"], ["--seconds", "0.6"]])
async def test_fleet_ends_by_itself_and_talks_in_plain_words(limit: list[str]) -> None:
    async with serving(http_talk()) as heard:
        options = ["--kind", "gravitymon-http", "--every", "60", *limit]
        status, out, err = await ran("fleet", "--http", heard.url, *options)
    assert (status, err) == (0, "")
    line, summary = out.splitlines()
    assert line.startswith("gravitymon-http gravmon5bd1ea   #1    ")
    assert line.endswith(" C   answered")
    assert summary == "sent 1, answered 1"


async def test_fleet_stops_quietly_when_its_reader_goes_away() -> None:
    async with serving(http_talk()) as heard:
        command = (
            f"{sys.executable} -m sample_devices fleet --http {heard.url} --count 5 --every 0.05 --json"
            " | head -n 1"
        )
        process = await asyncio.create_subprocess_shell(command, stdout=PIPE, stderr=PIPE, cwd=PROJECT)
        out, err = await asyncio.wait_for(process.communicate(), 2 * WAIT_S)
    assert len(objects(out.decode())) == 1
    assert err == b""
