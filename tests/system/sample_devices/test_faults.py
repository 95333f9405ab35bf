"""The faults: what each does to the bytes, which devices can have it, how often, and what the fleet says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sample_devices import faults, fleet
from sample_devices.devices import KINDS, Broker, Simulated, Targets, simulate, simulate_fleet
from sample_devices.faults import FAULTS, Faults, NotApplicable, Sending, faulty, plain
from sample_devices.wire.report import Address, HttpReport, MqttReport, Place, Report, TcpReport

from .servers import WAIT_S, Heard, http_talk, mqtt_talk, serving, tcp_talk

HOURS_48 = 48 * 3600.0
STEP_S = 900.0


def device(kind: str, targets: Targets = Targets()) -> Simulated:  # noqa: B008 - immutable
    return simulate(kind, Place(1), targets)


def one(kind: str, fault: str) -> Sending:
    (sending,) = faulty(device(kind), fault, HOURS_48, STEP_S)
    return sending


def bodies(report: Report) -> list[bytes]:
    match report:
        case HttpReport():
            return [report.request.partition(b"\r\n\r\n")[2]]
        case MqttReport():
            return [message.payload for message in report.messages]
        case TcpReport():
            return [report.data]


def data_of(sending: Sending) -> dict[str, object]:
    said: dict[str, object] = json.loads(bodies(sending.copies[0])[-1])
    return said


@pytest.mark.parametrize("kind", KINDS)
def test_a_duplicate_is_the_same_bytes_twice(kind: str) -> None:
    sending = one(kind, "duplicate")
    first, second = sending.copies
    assert first == second
    assert sending.expected is bool(sending.said)


@pytest.mark.parametrize("kind", ["ispindel-http", "gravitymon-influx", "ispindel-tcp", "tiltbridge-mqtt"])
@pytest.mark.parametrize("fault", ["truncated", "garbage"])
def test_broken_bodies_are_not_expected(kind: str, fault: str) -> None:
    sending = one(kind, fault)
    whole = device(kind).report(HOURS_48)
    assert (sending.fault, sending.expected, len(sending.copies)) == (fault, False, 1)
    for broken, body in zip(bodies(sending.copies[0]), bodies(whole), strict=True):
        if fault == "truncated":
            assert broken != body
            assert body.startswith(broken)
        else:
            assert broken.startswith(b"\xff\xfe")


def json_kinds() -> list[str]:
    return [
        kind
        for kind in KINDS
        if all(body.lstrip()[:1] in {b"{", b"["} for body in bodies(device(kind).report(HOURS_48)))
    ]


@pytest.mark.parametrize("kind", json_kinds())
def test_truncated_json_never_parses(kind: str) -> None:
    for body in bodies(one(kind, "truncated").copies[0]):
        with pytest.raises(ValueError, match=r"Expecting|Unterminated|Invalid|delimiter"):
            json.loads(body)


def test_truncated_text_has_no_value_left() -> None:
    assert bodies(one("ispindel-influx", "truncated").copies[0]) == [b"mea"]
    assert bodies(one("tiltpi-http", "truncated").copies[0]) == [b"Tim"]


@pytest.mark.parametrize("kind", ["tiltpi-http", "ispindel-ubidots", "gravitymon-http"])
@pytest.mark.parametrize("fault", ["truncated", "garbage"])
def test_the_length_declared_for_a_broken_body_is_true_unless_the_connection_is_cut(
    kind: str, fault: str
) -> None:
    cuts = 0
    for elapsed_s in range(100):
        (sending,) = faulty(device(kind), fault, elapsed_s, STEP_S)
        (report,) = sending.copies
        assert isinstance(report, HttpReport)
        head, _, body = report.request.partition(b"\r\n\r\n")
        declared = int(head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0])
        assert (declared > len(body)) if report.cut else (declared == len(body))
        cuts += report.cut
    assert (fault == "truncated") == (30 < cuts < 70)


async def test_a_cut_connection_has_no_answer() -> None:
    async with serving(http_talk()) as heard:
        target = device("gravitymon-http", Targets(Address("127.0.0.1", heard.port)))
        report = target.report(HOURS_48)
        assert isinstance(report, HttpReport)
        cut = replace(report, request=report.request[:-20], cut=True)
        assert await target.send(cut) == "cut off, nothing to be answered"
        await heard.connection_ended()
    assert heard.items == []


@pytest.mark.parametrize(
    ("kind", "fault", "why"),
    [
        ("ispindel-fhem", "truncated", "without a body"),
        ("ispindel-fhem", "garbage", "without a body"),
        ("ispindel-mqtt", "truncated", "one value"),
        ("gravitymon-http", "wrong-clock", "gravitymon-http sends no time"),
        ("ispindel-tcp", "retained", "only MQTT"),
    ],
)
def test_what_a_device_cannot_have_is_refused(kind: str, fault: str, why: str) -> None:
    with pytest.raises(NotApplicable, match=why):
        faulty(device(kind), fault, HOURS_48, STEP_S)


def test_an_unknown_fault_is_no_fault() -> None:
    with pytest.raises(ValueError, match="no fault 'loud'"):
        faulty(device("ispindel-http"), "loud", HOURS_48, STEP_S)


def test_wrong_clocks_are_at_the_ends_of_32_bits() -> None:
    stamps = {
        data_of(faulty(device("tiltbridge-mqtt"), "wrong-clock", elapsed_s, STEP_S)[0])["timeStamp"]
        for elapsed_s in range(20)
    }
    assert stamps == {60, 2**32 - 1}
    assert one("tiltbridge-mqtt", "wrong-clock").expected


@pytest.mark.parametrize("kind", ["tiltpi-http", "brewblox-tilt", "raptpill2mqtt", "brewpiless-http"])
def test_devices_with_a_clock_can_have_a_wrong_one(kind: str) -> None:
    assert one(kind, "wrong-clock").copies != (device(kind).report(HOURS_48),)


def test_a_late_report_has_its_own_earlier_time() -> None:
    sending = one("tiltbridge-mqtt", "late")
    stamp = data_of(sending)["timeStamp"]
    assert isinstance(stamp, int)
    assert abs(datetime.now(UTC).timestamp() - stamp - faults.LATE_BY.total_seconds()) < WAIT_S
    assert (sending.expected, sending.pause_s) == (True, faults.LATE_PAUSE_S)


def test_a_burst_is_five_moments_a_step_apart() -> None:
    sendings = faulty(device("ispindel-http"), "burst", HOURS_48, STEP_S)
    moments = [device("ispindel-http").report(HOURS_48 + STEP_S * number) for number in range(5)]
    assert [sending.copies for sending in sendings] == [(report,) for report in moments]
    assert {sending.fault for sending in sendings} == {"burst"}


def test_retained_messages_come_live_as_well() -> None:
    sending = one("ispindel-mqtt", "retained")
    flags = [[m.retain for m in copy.messages] for copy in sending.copies if isinstance(copy, MqttReport)]
    assert flags == [[True] * 7, [False] * 7]
    assert bodies(sending.copies[0]) == bodies(sending.copies[1])


def test_a_share_of_the_reports_has_a_fault_and_the_seed_decides_which() -> None:
    def faulty_ones(seed: int, share: float) -> list[int]:
        planner = Faults(("duplicate",), share, seed)
        plans = [planner.sendings(device("ispindel-http"), 0, moment, STEP_S) for moment in range(1000)]
        return [moment for moment, (sending,) in enumerate(plans) if sending.fault]

    assert 70 <= len(faulty_ones(1, 0.1)) <= 130
    assert faulty_ones(1, 0.1) == faulty_ones(1, 0.1) != faulty_ones(2, 0.1)
    assert (len(faulty_ones(1, 0)), len(faulty_ones(1, 1))) == (0, 1000)


def test_a_fault_that_a_device_cannot_have_leaves_it_as_it_should_be() -> None:
    planner = Faults(("retained", "wrong-clock"), 1)
    (sending,) = planner.sendings(device("ispindel-http"), 0, HOURS_48, STEP_S)
    assert sending == plain(device("ispindel-http").report(HOURS_48))
    (sending,) = planner.sendings(device("ispindel-mqtt"), 0, HOURS_48, STEP_S)
    assert sending.fault == "retained"


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


def test_every_fault_is_explained() -> None:
    assert list(FAULTS) == ["duplicate", "late", "truncated", "garbage", "wrong-clock", "burst", "retained"]
