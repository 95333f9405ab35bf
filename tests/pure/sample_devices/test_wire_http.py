"""The HTTP kinds: their shape against the samples of devices.md, and what holds for all of them."""

import re
from datetime import UTC, timedelta

from sample_devices.kinds_http import HTTP_KINDS
from sample_devices.wire.report import Address, HttpReport, Place
from tests.cases import each
from tests.pure.sample_devices.http_tables import KEYS

from . import golden
from .golden import BEER, EVENING, GATEWAY, POINT

RAW_SOCKET = {"tiltbridge-1.0", "brew-bubbles"}
HEADERS_ONLY = {"rapt-headers"}
APPENDS_QUERY = {"gravitymon-get", "brewpiless-get"}
NAMELESS = {"irelay", "brewpiless-get"}
ONE_NAME_FOR_ALL = NAMELESS | {"home-assistant"}


def make(kind: str, place: Place = Place(1), to: Address = GATEWAY) -> HttpReport:  # noqa: B008 - immutable
    report = golden.make(kind, place, to)
    assert isinstance(report, HttpReport)
    return report


def split(report: HttpReport) -> tuple[str, list[str], bytes]:
    """Give request line, header fields and body."""
    head, _, body = report.request.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    return line, fields, body


def content(report: HttpReport) -> str:
    """Give the body, or the query of a GET."""
    line, _, body = split(report)
    return body.decode().removesuffix("\r\n") or line.split(" ")[1].partition("?")[2]


def is_get(kind: str) -> bool:
    return make(kind).request.startswith(b"GET ")


@each("kind", KEYS)
def test_keys_and_their_order_are_the_documented_ones(kind: str) -> None:
    text = content(make(kind))
    keys = r'"([^"]+)"\s*:' if '"' in text else r"(?:^|&)([^=&]+)="
    assert " ".join(re.findall(keys, text)) == KEYS[kind]


@each("kind", [kind for kind in HTTP_KINDS if not is_get(kind)])
def test_content_length_is_as_wrong_as_the_firmware_has_it(kind: str) -> None:
    _, fields, body = split(make(kind))
    declared = int(next(field for field in fields if field.startswith("Content-Length: ")).split(" ")[1])
    extra = {"tilt-pico": len("Kölsch".encode()) - len("Kölsch")} | dict.fromkeys(RAW_SOCKET, len("\r\n"))
    assert len(body) - declared == extra.get(kind, 0)


@each("kind", HTTP_KINDS)
def test_what_is_said_stands_in_the_request(kind: str) -> None:
    report = make(kind)
    text = report.request.decode().replace("%20", " ")
    for said in report.said:
        assert all(word in text for word in (said.name, said.device_id, said.temp) if word)
        assert not said.gravity or said.gravity in text or f"{float(said.gravity) * 1000:g}" in text


@each("kind", HTTP_KINDS)
@each("path", ["/", "api/x", "/ingest/hg_key"])
def test_request_target_is_sent_as_given(kind: str, path: str) -> None:
    target = split(make(kind, to=Address("h", 80, path)))[0].split(" ")[1]
    assert target.partition("?")[0] == path
    assert ("?" in target) == (is_get(kind) and kind not in HEADERS_ONLY)


@each("kind", sorted(APPENDS_QUERY))
def test_query_is_appended_with_a_second_question_mark(kind: str) -> None:
    target = split(make(kind, to=Address("h", 80, "/ingest?key=x")))[0].split(" ")[1]
    assert target == f"/ingest?key=x?{content(make(kind))}"


@each("kind", [kind for kind in HTTP_KINDS if kind not in ONE_NAME_FOR_ALL])
def test_first_devices_of_a_kind_differ_in_name_or_id(kind: str) -> None:
    places = [Place(1, number, number) for number in range(4)]
    said = [each for place in places for each in make(kind, place).said]
    assert len({(each.name, each.device_id) for each in said}) == len(said) >= 4


@each("kind", [kind for kind in HTTP_KINDS if make(kind).said[0].device_id])
def test_ids_differ_for_a_whole_fleet(kind: str) -> None:
    ids = [each.device_id for number in range(300) for each in make(kind, Place(7, number, number)).said]
    assert len(set(ids)) == len(ids)


@each("kind", ["tilt-app", "tilt-pico", "tilty"])
def test_tilts_of_different_programs_and_seeds_have_different_macs(kind: str) -> None:
    others = [
        make(other, place) for other in ("tilt-app", "tilt-pico", "tilty") for place in (Place(1), Place(2))
    ]
    assert [other.said[0].device_id for other in others].count(make(kind).said[0].device_id) == 1


def test_names_can_be_chosen() -> None:
    for kind in HTTP_KINDS.keys() - NAMELESS:
        name = "BLUE" if "ilt" in kind else "Cellar"
        if not kind.endswith("grainfather"):
            assert name.lower() in make(kind, Place(1, name=name)).said[0].name.lower()
    app = make("tilt-app", Place(1, name="BLUE:AA:BB:CC:DD:EE:FF")).said[0]
    assert (app.name, app.device_id) == ("BLUE", "AA:BB:CC:DD:EE:FF")


def test_second_tilt_of_a_bridge_never_has_the_colour_of_the_first() -> None:
    for name in ("RED", "PINK", "Magenta"):
        first, second = make("tiltbridge-http", Place(1, name=name)).said
        assert (first.name, second.name) == (name.capitalize(), "Red" if name != "RED" else "Green")


@each("kind", ["tiltbridge-grainfather", "tilt-pitch-grainfather"])
def test_grainfather_readings_are_named_by_their_url_alone(kind: str) -> None:
    assert make(kind, to=Address("h", 80, "/iot/my-tilt/tilt")).said[0].name == "my-tilt"
    assert make(kind, to=Address("h", 80, "/ingest")).said[0].name == ""


def test_pico_marks_only_its_first_log() -> None:
    pico = HTTP_KINDS["tilt-pico"].factory(Place(1))
    first = pico.report(BEER.at(0), GATEWAY, EVENING)
    assert isinstance(first, HttpReport)
    assert first.request.endswith(b"&Comment=P")
    assert make("tilt-pico").request.endswith(b"&Comment=")


def test_the_moment_is_on_the_wire_where_the_device_has_a_clock() -> None:
    later = EVENING.astimezone(UTC) + timedelta(minutes=7)
    clocks = {
        kind
        for kind, made in HTTP_KINDS.items()
        if made.factory(Place(1)).report(POINT, GATEWAY, later) != make(kind)
    }
    zone_alone = {"tiltbridge-sheets"}
    assert clocks == zone_alone | {kind for kind in HTTP_KINDS if says_the_time(kind)}


def says_the_time(kind: str) -> bool:
    return any(said.measured_at or "device_time_local" in said.facts for said in make(kind).said)


def test_every_kind_is_an_http_kind_with_a_sentence() -> None:
    assert all(kind.transport == "http" and kind.about.endswith(".") for kind in HTTP_KINDS.values())
    assert set(KEYS) <= set(HTTP_KINDS)
