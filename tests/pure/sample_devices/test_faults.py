"""The faults: what each does to the bytes, which devices can have it, and how often."""

import json
from datetime import UTC, datetime

import pytest

from sample_devices import faults
from sample_devices.devices import KINDS, Simulated, Targets, simulate
from sample_devices.faults import FAULTS, Faults, NotApplicable, Sending, faulty, plain
from sample_devices.wire.report import HttpReport, MqttReport, Place, Report, TcpReport
from tests.cases import each

HOURS_48 = 48 * 3600.0
STEP_S = 900.0
PATIENCE_S = 10.0


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


@each("kind", KINDS)
def test_a_duplicate_is_the_same_bytes_twice(kind: str) -> None:
    sending = one(kind, "duplicate")
    first, second = sending.copies
    assert first == second
    assert sending.expected is bool(sending.said)


@each("kind", ["ispindel-http", "gravitymon-influx", "ispindel-tcp", "tiltbridge-mqtt"])
@each("fault", ["truncated", "garbage"])
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


@each("kind", json_kinds())
def test_truncated_json_never_parses(kind: str) -> None:
    for body in bodies(one(kind, "truncated").copies[0]):
        with pytest.raises(ValueError, match=r"Expecting|Unterminated|Invalid|delimiter"):
            json.loads(body)


def test_truncated_text_has_no_value_left() -> None:
    assert bodies(one("ispindel-influx", "truncated").copies[0]) == [b"mea"]
    assert bodies(one("tiltpi-http", "truncated").copies[0]) == [b"Tim"]


@each("kind", ["tiltpi-http", "ispindel-ubidots", "gravitymon-http"])
@each("fault", ["truncated", "garbage"])
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


@each(
    "kind, fault, why",
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


@each("kind", ["tiltpi-http", "brewblox-tilt", "raptpill2mqtt", "brewpiless-http"])
def test_devices_with_a_clock_can_have_a_wrong_one(kind: str) -> None:
    assert one(kind, "wrong-clock").copies != (device(kind).report(HOURS_48),)


def test_a_late_report_has_its_own_earlier_time() -> None:
    sending = one("tiltbridge-mqtt", "late")
    stamp = data_of(sending)["timeStamp"]
    assert isinstance(stamp, int)
    assert abs(datetime.now(UTC).timestamp() - stamp - faults.LATE_BY.total_seconds()) < PATIENCE_S
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


def test_every_fault_is_explained() -> None:
    assert list(FAULTS) == ["duplicate", "late", "truncated", "garbage", "wrong-clock", "burst", "retained"]
