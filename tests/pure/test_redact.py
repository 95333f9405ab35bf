"""Redaction: in every format nothing is left of whose it is, and every figure stays as it was written."""

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.drivers import identity
from gateway.redact import Redactor
from gateway.redact.kinds import Kind, kind_of
from gateway.redact.pseudonyms import Pseudonyms, shape
from tests.cases import examples

NAME, TOKEN, MAC = "Annas-Keller7", "s3cr3tTok", "F6:BD:D3:46:3A:05"
MAIL, BEER, ADDRESS = "anna.b+brew@example.org", "Annas Hochzeitsbier", "192.168.178.23"

LONG = 32 * 1024
LONG_S = 3.0
"""Twenty times what it takes; what is quadratic takes minutes."""

PLANTED = {
    "JSON": (
        f'{{"name":"{NAME}", "ID":5312877,"token":"{TOKEN}","angle":52.33711,"temperature": 19.8125,'
        f'"temp_units":"C","gravity":1.0450,"Email":"{MAIL}","ip":"{ADDRESS}", }}',
        [NAME, "5312877", TOKEN, MAIL, ADDRESS],
        ['"angle":52.33711,', '"temperature": 19.8125,', '"temp_units":"C"', '"gravity":1.0450,', ", }"],
    ),
    "JSON with escapes": (
        '{"name":"Kell\\u00e4r \\"Nord\\"","beer":"M\\u00e4rzen","gravity":nan}\x00',
        ["Kell", "Nord", "rzen", "u00e4"],
        ['"gravity":nan}\x00', '\\"'],
    ),
    "JSON under names that nobody knows": (
        '{"cellar_of":"Annas Mutter","wifi_password":"hunter22","note1":"call +49","temp":20.5,"on":true}',
        ["Annas", "Mutter", "hunter", "call"],
        ['"temp":20.5', '"on":true'],
    ),
    "JSON by Fermentrack": (
        f'{{"api_key": "{TOKEN}", "gravity_sensors": [{{"name": "{NAME}", "internal_id": 38, '
        '"gravity": 1.0221}]}',
        [TOKEN, NAME, "38"],
        ['"gravity": 1.0221'],
    ),
    "JSON by brewblox-tilt": (
        '{"key": "tilt", "data": {"FermKeg 1": {"Specific gravity": 1.045}, "Red": {"SG": 1.0}}}',
        ["FermKeg"],
        ['"Specific gravity": 1.045', '"Red"', '"data"'],
    ),
    "JSON with a MAC and a GUID anywhere": (
        f'{{"where":"x {MAC}","type":"a495bb80c5b1","version":"3d1f0c52-8f0e-4a57-9a51-0d1c2b3a4f5e"}}',
        [MAC, "a495bb80c5b1", "3d1f0c52", "0d1c2b3a4f5e"],
        [],
    ),
    "form": (
        f"Timepoint=45730.8125&Temp=68.0&SG=1.0450&Beer={BEER.replace(' ', '%20')},4821&Color=RED:{MAC}"
        f"&Comment={MAIL.replace('@', '%40')}",
        ["Annas", "Hochzeit", "4821", MAC, "anna"],
        ["Timepoint=45730.8125&Temp=68.0&SG=1.0450&Beer=", "&Color=RED:", "%20"],
    ),
    "form with a colour and a MAC as tilt_tools have it": (
        "Timepoint=45730.8125&Temp=68.0&SG=1.0450&Color=RED_F6BDD3463A05&Comment=",
        ["F6BDD3463A05"],
        ["&SG=1.0450&Color=RED_", "&Comment="],
    ),
    "JSON with a place and a serial number": (
        '{"pos":{"lat":52.5163,"lng": -13.3777},"Location":[47.1,8.2],"altitude":"5170.3","geo":"Mitte",'
        '"device":{"serial":"80417","Serial":90518},"temp":20.5}',
        ["52.5163", "13.3777", "47.1", "8.2", "5170", "Mitte", "80417", "90518"],
        ['{"lat":11.1111,"lng": -11.1111},"Location":[11.1,1.1],"altitude":"1111.1"', '"temp":20.5'],
    ),
    "form with & and = in the beer": (
        "Temp=68&SG=1.045&Beer=Malt%20&%20Hops=Anna&Color=BLACK%3AF6%3ABD%3AD3%3A46%3A3A%3A05&Comment",
        ["Malt", "Hops", "Anna", "BD%3AD3"],
        ["Temp=68&SG=1.045&Beer=", "&Color=BLACK%3A", "&Comment"],
    ),
    "query": (
        f"name={NAME}&id=7f3a2c&token={TOKEN}&interval=900&temperature=20.56&gravity=1.0456&key=x77y?run-time=4.21",
        [NAME, "7f3a2c", TOKEN, "x77y"],
        ["&interval=900&temperature=20.56&gravity=1.0456&", "?run-time=4.21"],
    ),
    "FHEM": (
        f"cmd.Test=set%20{NAME}%2052.33%2019.81%20C%203.96%2012.48%205312877&XHR=1",
        [NAME, "5312877"],
        ["cmd.Test=set%20", "%2052.33%2019.81%20C%203.96%2012.48%20", "&XHR=1"],
    ),
    "FHEM without a unit": (
        f"cmd.Test=set+{NAME}+52.33+19.81+3.96+12.48+5312877&XHR=1",
        [NAME, "5312877"],
        ["+52.33+19.81+3.96+12.48+"],
    ),
    "line protocol": (
        f"measurement,host={NAME},device=7f3a2c,temp-format=C gravity=1.0456,angle=45.123,"
        f'beer="{BEER}",rssi=-70i\n',
        [NAME, "7f3a2c", "Annas", "Hochzeit"],
        ["measurement,", ",temp-format=C gravity=1.0456,angle=45.123,", ",rssi=-70i\n"],
    ),
    "line protocol with an unescaped name": (
        "measurements,source=Anna,im=Keller tilt=52.33711,temperature=19.8,temp_units=\"C\",gravity=12.48",
        ["Anna", "im=", "Keller"],
        ['tilt=52.33711,temperature=19.8,temp_units="C",gravity=12.48'],
    ),
    "Prometheus": (
        f'# TYPE gravity gauge\n# HELP gravity of {MAIL}\ngravity{{name="{NAME}",cellar="Annas"}} 12.48\n',
        [MAIL, NAME, "Annas"],
        ["# TYPE gravity gauge\n", " 12.48\n"],
    ),
    "Prometheus without comments": (
        f'gravity{{name="{NAME}"}} 1.050 1741979400000\ntemperature{{name="{NAME}"}} 20',
        [NAME],
        ["gravity{", "} 1.050 1741979400000\ntemperature{", "} 20"],
    ),
    "line protocol with escapes, comments and other lines": (
        "measurement,host=Annas\\ Keller\\,\\ 2 gravity=1.0456,"
        'note="of, Anna \\"B\\" d=e" 1741978800\n# Annas\n',
        ["Annas", "Keller", "Anna"],
        [" gravity=1.0456,note=", " 1741978800\n# "],
    ),
    "JSON in JSON": (
        '{"json":"[{\\"channel\\": 7,\\"value\\": 1.0456,\\"name\\":\\"Anna\\"}]","2":"temp,c=21.10"}',
        ["Anna"],
        ['\\"channel\\": 7,\\"value\\": 1.0456', "temp,c=21.10"],
    ),
    "TCONTROL": ("T: 19.8 D: 52.3 U: 3.96 G: null\r\n", [], ["T: 19.8 D: 52.3 U: 3.96 G: null\r\n"]),
    "Ubidots with values in objects": (
        '{"temperature":{"value":20.5,"context":{"who":"Anna"}},"gravity":{"value":"1,0456"}}',
        ["Anna"],
        ['"temperature":{"value":20.5', '"gravity":{"value":"1,0456"}'],
    ),
    "one-value topics": (
        f'{{"tilt":"52.33711","temperature":"19.8125","temp_units":"C","name":"{NAME}","RSSI":"-67"}}',
        [NAME],
        ['{"tilt":"52.33711","temperature":"19.8125","temp_units":"C"', '"RSSI":"-67"}'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", PLANTED)
def test_nothing_of_whose_it_is_is_left_and_every_figure_is(form: str) -> None:
    text, planted, kept = PLANTED[form]
    redacted = Redactor().body(text)
    for word in planted:
        assert word.casefold() not in redacted.casefold(), redacted
    for piece in kept:
        assert piece in redacted, redacted
    assert len(redacted) == len(text)


def test_the_same_text_is_the_same_pseudonym_in_every_format_and_spelling() -> None:
    redactor = Redactor()
    (name,) = re.findall('"name":"(.*?)"', redactor.body(f'{{"name":"{NAME}"}}'))
    assert redactor.word(NAME) == name
    assert redactor.body(f"name={NAME}&interval=1") == f"name={name}&interval=1"
    assert redactor.word(NAME.upper()) == name.upper()
    assert re.fullmatch("[A-Z][a-z]{4}-[A-Z][a-z]{5}[0-9]", name)
    assert redactor.body('{"ID":5312877}')[6:-1] == redactor.body("id=5312877")[3:]


def test_another_run_has_other_pseudonyms() -> None:
    assert len({Redactor().word(NAME) for _ in range(5)}) == 5


def test_different_texts_are_different_pseudonyms_as_long_as_there_are_any() -> None:
    pseudonyms = Pseudonyms()
    found = [pseudonyms.identity(str(number)) for number in range(1, 9)]
    assert len(set(found)) == 8
    assert all(new != str(old) and new != "0" for old, new in enumerate(found, 1))


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("gravmon7f3a2c[SG]", r"[a-z]{7}[0-9][a-z][0-9][a-z][0-9][a-z]\[SG\]"),
        ("38,SG", "[0-9]{2},SG"),
        ("7f3a2c", "[1-9][a-f][0-9][a-f][0-9][a-f]"),
        ("Käse 2", "[A-Z]é[a-z]{2} [0-9]"),
        ("0", "0"),
        ("", ""),
        ("null", "null"),
    ],
)
def test_a_pseudonym_keeps_length_classes_separators_and_what_has_a_meaning(name: str, pattern: str) -> None:
    assert re.fullmatch(pattern, Pseudonyms().identity(name))


@pytest.mark.parametrize("text", ["RED_F6BDD3463A05", "RED:F6:BD:D3:46:3A:05", "black_f6:bd:d3:46:3a:05"])
def test_a_tilts_mac_stays_one(text: str) -> None:
    body = Redactor().body(f"Color={text}&SG=1.045")
    color, mark, mac = re.split(r"([:_])", text, maxsplit=1)
    found = re.fullmatch(rf"Color={color}{mark}([0-9A-Fa-f:]+)&SG=1.045", body)
    assert found is not None
    assert (len(found[1]), found[1].count(":")) == (len(mac), mac.count(":"))
    assert found[1] != mac


@pytest.mark.parametrize("topic", ["Yellow", "tilt_Black", "Pink"])
def test_a_tilts_colour_is_nobodys(topic: str) -> None:
    assert Redactor().word(topic) == topic


@pytest.mark.parametrize("mark", ["Untitled", "Undefined", "P", "End of log", ""])
def test_what_firmware_writes_itself_stays(mark: str) -> None:
    body = f"Beer={mark}&Comment={mark}"
    assert Redactor().body(body) == body


def test_a_secret_keeps_its_shape_only() -> None:
    assert shape("s3cr3t-Tok") == "r1ed1a-Cte"
    assert shape("*") == "*"
    assert Redactor().body('{"token":"*","api_key":1234}') == '{"token":"*","api_key":1111}'


@pytest.mark.parametrize(
    "text", ["2025-03-14 19:30:00.123456", "2025-03-14T19:30:00Z", "7.3.3", "12,5", "-3.2e1"]
)
def test_moments_versions_and_figures_are_no_addresses(text: str) -> None:
    body = f'{{"timestamp":"{text}","unheard_of":"{text}"}}'
    assert Redactor().body(body) == body


@pytest.mark.parametrize("address", ["10.0.0.7", "fe80::1c2b:3aff:fe4d:5e6f", "2001:db8:0:1:2:3:4:5", "::1"])
def test_network_addresses_are_taken_out_anywhere(address: str) -> None:
    assert address not in Redactor().body(f'{{"type":"at {address} now"}}')


@pytest.mark.parametrize("piece", ["a", "1", "a:", ",a=", '"', "&", "\\u0041", "{"])
def test_a_long_payload_takes_no_time(piece: str) -> None:
    began = time.process_time()
    for head in ("", "{", "m,"):
        Redactor().body(head + piece * (LONG // len(piece)))
    assert time.process_time() - began < LONG_S


@settings(max_examples=examples(2))
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_any_text_can_be_redacted(text: str) -> None:
    for head in ("", '{"name":"', "Beer=", "measurement,host=", "# TYPE x\n", "cmd.Test=set%20"):
        Redactor().body(head + text)


@given(
    st.dictionaries(
        st.sampled_from(["name", "ID", "beer", "token", "mac", "x", "gravity"]),
        st.text(max_size=20) | st.integers(0, 10**9) | st.none() | st.booleans(),
    )
)
def test_json_stays_json_with_the_same_members(said: dict[str, Any]) -> None:
    for ascii_only in (True, False):
        redacted = json.loads(Redactor().body(json.dumps(said, ensure_ascii=ascii_only)))
        assert {name: type(value) for name, value in redacted.items()} == {
            name: type(value) for name, value in said.items()
        }


@pytest.mark.parametrize("name", [*identity.MAC_NAMES, *identity.ID_NAMES, *identity.NAMES])
def test_whatever_tells_devices_apart_is_taken_out_as_such(name: str) -> None:
    """Under its own name, or a captured case would be of another device."""
    assert kind_of(name) is Kind.IDENTITY


@pytest.mark.parametrize("name", identity.COLOR_NAMES)
def test_the_colour_of_a_tilt_is_known_by_all_its_names(name: str) -> None:
    assert kind_of(name) is Kind.COLOR
